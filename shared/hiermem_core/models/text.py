"""Text that every store can hold: no lone surrogates, no NUL."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

REPLACEMENT = "\ufffd"
SHOWN = 100
"""Characters of a text in a line for people."""

_UNSTORABLE = re.compile(r"[\ud800-\udfff\x00]")


def is_clean(text: str) -> bool:
    """Tell whether `text` can be stored as it is."""
    return _UNSTORABLE.search(text) is None


def folded(text: str) -> str:
    """Return `text` to compare it by: in NFC, runs of white space as one space, none at its ends.

    Letter case, digits and signs count.
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


def shortened(text: str) -> str:
    """Return `text` on one line, cut to be shown."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"


class TextCleaner:
    """Redact texts, and replace what no store can hold by U+FFFD, and count it; all else stays.

    Attributes:
        replaced: Code points replaced so far.
        redacted: Texts that redacting changed so far.

    Args:
        redact: Returns what stands in place of a text.
    """

    def __init__(self, redact: Callable[[str], str] | None = None) -> None:
        self.replaced = 0
        self.redacted = 0
        self._redact = redact

    @property
    def redacts(self) -> bool:
        """Tell whether texts are redacted."""
        return self._redact is not None

    def name(self, value: str) -> str:
        """Return `value` redacted, and not cleaned."""
        if self._redact is None:
            return value
        redacted = self._redact(value)
        self.redacted += redacted != value
        return redacted

    def text(self, value: str) -> str:
        """Return `value` redacted, with each lone surrogate and NUL as U+FFFD."""
        cleaned, count = _UNSTORABLE.subn(REPLACEMENT, self.name(value))
        self.replaced += count
        return cleaned

    def optional(self, value: str | None) -> str | None:
        """Clean `value` unless it is `None`."""
        return None if value is None else self.text(value)

    def json(self, value: Any) -> Any:
        """Return a copy of a JSON value with every text in it cleaned, keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.json(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.json(item) for item in value]
        return value
