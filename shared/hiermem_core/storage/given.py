"""Lists of values as one bound parameter, so that a statement is the same for every length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, bindparam, literal_column, select

from hiermem_core.models.plain import dump_json
from hiermem_core.storage.portable import Each, Item, Plain
from hiermem_core.storage.tables import TEXT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Select
    from sqlalchemy.types import TypeEngine

_NUMBER = BigInteger()


def given_numbers(name: str) -> Select[Any]:
    """Return the subquery of the numbers that `as_given` binds under a name."""
    return select(Plain(_each(name).c.value, type_=_NUMBER))


def given_texts(name: str) -> Select[Any]:
    """Return the subquery of the texts that `as_given` binds under a name."""
    return select(Plain(_each(name).c.value, type_=TEXT))


def given_pairs(name: str) -> Select[Any]:
    """Return the subquery of the pairs of texts that `as_given` binds under a name."""
    value = _each(name).c.value
    return select(*(_item(value, place, TEXT) for place in range(2)))


def given_triples(name: str) -> tuple[Any, ...]:
    """Return the table of the triples of numbers that `as_given` binds, and its columns."""
    each = _each(name)
    return each, *(_item(each.c.value, place, _NUMBER) for place in range(3))


def as_given(values: Iterable[Any]) -> str:
    """Return numbers, texts, or pairs or triples of them as what is bound."""
    return dump_json(list(values))


def _each(name: str) -> Any:
    return Each(bindparam(name)).table_valued("value")


def _item(value: Any, place: int, kind: TypeEngine[Any]) -> Any:
    return Item(value, literal_column(str(place)), type_=kind)
