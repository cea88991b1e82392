"""The lines of an export, each sealed, so that a cut or an edit is found at its line. Pure.

A line is one compact JSON object whose last member is `sum`: the first 16 hexadecimal digits of the
SHA-256 of all lines so far, each without its `sum` and with a line feed after it. The header is
sealed by itself and the body from its second line on, so that two exports of the same things have
equal bodies whenever and wherever they were written.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from hiermem_core.models.plain import dump_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FORMAT = "hiermem/export"
VERSION = 1

_DIGITS = 16
_SEALED = re.compile(rb'(\{.*),"sum":"([0-9a-f]{16})"\}', re.DOTALL)


class Seal:
    """The running digest of some lines."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    @property
    def checksum(self) -> str:
        """The SHA-256 of all lines so far, in hexadecimal."""
        return self._digest.hexdigest()

    def line_of(self, value: Mapping[str, Any]) -> bytes:
        """Return the line of an object that is not empty, with its end."""
        plain = dump_json(value).encode()
        self._take(plain)
        return b'%b,"sum":"%b"}\n' % (plain[:-1], self._sum())

    def opened(self, line: bytes) -> bytes | None:
        """Return what a line holds, as JSON; `None` where it or a line before it was changed."""
        found = _SEALED.fullmatch(line.rstrip(b"\r\n"))
        if found is None:
            return None
        plain = found[1] + b"}"
        self._take(plain)
        return plain if self._sum() == found[2] else None

    def _take(self, plain: bytes) -> None:
        self._digest.update(plain + b"\n")

    def _sum(self) -> bytes:
        return self.checksum[:_DIGITS].encode()
