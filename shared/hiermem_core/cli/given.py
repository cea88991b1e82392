"""What is given on the line: text from standard input, and JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

from hiermem_core.errors import InvalidInputError


def given_text(name: str, text: str) -> str:
    """Return a text; that of standard input, without the end of its last line, for `-`.

    Raises:
        InvalidInputError: Standard input is closed, or no UTF-8.
    """
    if text != "-":
        return text
    if sys.stdin is None:
        raise InvalidInputError(name, "standard input is closed; give the text itself")
    try:
        read = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInputError(name, "standard input is no UTF-8; convert it") from None
    return read.removesuffix("\n").removesuffix("\r")


def given_json(name: str, text: str | None) -> Any:
    """Return the value of JSON text, `None` for none.

    Raises:
        InvalidInputError: It is no JSON object.
    """
    if text is None:
        return None
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        reason = f"is no JSON ({error.msg} at character {error.pos}); quote it for the shell"
        raise InvalidInputError(name, reason) from None
    except (ValueError, RecursionError):
        raise InvalidInputError(name, "is no JSON that can be read; write it simpler") from None
    if not isinstance(value, dict):
        raise InvalidInputError(name, 'must be a JSON object, such as {"year": 2026}')
    return value


def given_fields(**fields: Any) -> dict[str, Any]:
    """Return the fields that were given."""
    return {name: value for name, value in fields.items() if value is not None}
