"""Sealing: what a codec makes of content on its way into the database, and back.

It happens in the types of columns: of what is `Sealed` the codec's text is stored, behind the bytes
it had, so that sizes are counted without the codec; of what is `Blinded`, a digest of content, one
that only the codec's owner can repeat. Without a codec both are plain text, and cost nothing.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from sqlalchemy import Text
from sqlalchemy.types import TypeDecorator

from hiermem_core.errors import BackendError
from hiermem_core.models.quotas import octets

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection, Table
    from sqlalchemy.engine import Dialect

    from hiermem_core.protocols import Codec

_NOTHING = frozenset({"", "[]"})
"""What says nothing stays as it is, so that SQL can ask for it."""

_BLIND_DIGITS = 32


class Undecodable(str):
    """Stands for a stored text that the codec cannot decode, since it was damaged."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Seal:
    """A codec, and the secret of its location by which digests are blinded."""

    codec: Codec
    secret: bytes = field(repr=False)

    def sealed(self, text: str | None) -> str | None:
        """Return a text as it is stored."""
        if text is None:
            return None
        return f"{octets(text)}:{text if text in _NOTHING else encoded(self.codec, text)}"

    def opened(self, stored: str | None) -> str | None:
        """Return the text of what is stored.

        Raises:
            BackendError: It cannot be decoded.
        """
        if stored is None:
            return None
        _, mark, text = stored.partition(":")
        if not mark:
            raise BackendError("decoding", "a stored text was not sealed")
        return text if text in _NOTHING else decoded(self.codec, text)

    def shown(self, stored: str | None) -> str | None:
        """Return the text of what is stored, or what stands for it."""
        try:
            return self.opened(stored)
        except BackendError:
            return Undecodable("[undecodable]")

    def blinded(self, digest: str | None) -> str | None:
        """Return a digest as it is stored."""
        if digest is None:
            return None
        return hmac.digest(self.secret, digest.encode(), "sha256").hex()[:_BLIND_DIGITS]


_seals: WeakKeyDictionary[Dialect, Seal] = WeakKeyDictionary()


def seal_of(dialect: Dialect) -> Seal | None:
    """Return what seals the content of a database; `None`: it is plain."""
    return _seals.get(dialect)


def sealed_by(dialect: Dialect, seal: Seal) -> None:
    """Have the content of a database sealed. Call it before any of it is read or written."""
    _seals[dialect] = seal


class _Content(TypeDecorator[str]):
    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        collation = "C" if dialect.name == "postgresql" else None
        return dialect.type_descriptor(Text(collation=collation))


class Sealed(_Content):
    """A column of content.

    Args:
        has_placeholder: What cannot be decoded is read as `Undecodable`; else reading it raises.
    """

    cache_ok = True

    def __init__(self, *, has_placeholder: bool = False) -> None:
        super().__init__()
        self.has_placeholder = has_placeholder

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any] | None:
        """Return what makes a text one that is stored."""
        seal = seal_of(dialect)
        return None if seal is None else seal.sealed

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        """Return what makes a text of a stored one."""
        del coltype
        seal = seal_of(dialect)
        if seal is None:
            return None
        return seal.shown if self.has_placeholder else seal.opened


class Blinded(_Content):
    """A column of digests of content; one that is read is as it is stored."""

    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any] | None:
        """Return what makes a digest one that is stored."""
        seal = seal_of(dialect)
        return None if seal is None else seal.blinded


def as_stored(
    connection: Connection, target: Table, names: tuple[str, ...]
) -> Callable[[tuple[Any, ...]], tuple[Any, ...]] | None:
    """Return what makes a row of values one that is stored; `None`: it is stored as it is."""
    dialect = connection.dialect
    if seal_of(dialect) is None:
        return None
    processors = {
        place: kind.bind_processor(dialect)
        for place, name in enumerate(names)
        if isinstance(kind := target.c[name].type, _Content)
    }

    def stored(row: tuple[Any, ...]) -> tuple[Any, ...]:
        values = list(row)
        for place, process in processors.items():
            values[place] = process(values[place]) if process else values[place]
        return tuple(values)

    return stored


def encoded(codec: Codec, text: str) -> str:
    """Return what a codec makes of a text.

    Raises:
        BackendError: It raises, or returns no text.
    """
    try:
        made = codec.encode(text)
    except Exception as error:  # noqa: BLE001 - a user's codec may raise anything
        reason = f"the codec raised {type(error).__name__}; nothing was stored"
        raise BackendError("encoding", reason) from None
    if not isinstance(made, str):
        raise BackendError("encoding", f"the codec returned {type(made).__name__}, not text")
    return made


def decoded(codec: Codec, text: str) -> str:
    """Return the text that a codec made this of.

    Raises:
        BackendError: It raises, as this is not what it made, or returns no text.
    """
    try:
        made = codec.decode(text)
    except Exception as error:  # noqa: BLE001 - as above
        reason = f"the codec raised {type(error).__name__}; the stored text is damaged"
        raise BackendError("decoding", reason) from None
    if not isinstance(made, str):
        raise BackendError("decoding", f"the codec returned {type(made).__name__}, not text")
    return made
