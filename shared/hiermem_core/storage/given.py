"""Lists of values as one bound parameter, so that a statement is the same for every length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, func, select

from hiermem_core.models.plain import dump_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Select


def given(name: str) -> Select[Any]:
    """Return the subquery of the values that `as_given` binds under a name."""
    return select(_each(name).c.value)


def given_pairs(name: str) -> Select[Any]:
    """Return the subquery of the pairs that `as_given` binds under a name."""
    value = _each(name).c.value
    return select(func.json_extract(value, "$[0]"), func.json_extract(value, "$[1]"))


def given_triples(name: str) -> tuple[Any, ...]:
    """Return the table of the triples that `as_given` binds under a name, and its columns."""
    each = _each(name)
    columns = (func.json_extract(each.c.value, f"$[{place}]") for place in range(3))
    return each, *columns


def as_given(values: Iterable[Any]) -> str:
    """Return numbers, texts, or pairs or triples of them as what is bound."""
    return dump_json(list(values))


def _each(name: str) -> Any:
    return func.json_each(bindparam(name)).table_valued("value")
