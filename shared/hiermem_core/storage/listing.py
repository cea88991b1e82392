"""Lists handed to a statement in one parameter, so that its text is the same for every length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Integer, bindparam, func, select

from hiermem_core.models.plain import dump_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Select, TableValuedAlias


def among(name: str) -> Select[Any]:
    """Return a subquery of the whole numbers of a parameter; give it as `as_list(numbers)`."""
    return select(_each(name).c.value)


def triples(name: str) -> tuple[TableValuedAlias, Any, Any, Any]:
    """Return a table of the triples of numbers of a parameter, and its three columns."""
    each = _each(name)
    first, second, third = (
        func.json_extract(each.c.value, f"$[{place}]", type_=Integer) for place in range(3)
    )
    return each, first, second, third


def as_list(values: Iterable[Any]) -> str:
    """Return values as the parameter that stands for them."""
    return dump_json(list(values))


def _each(name: str) -> TableValuedAlias:
    return func.json_each(bindparam(name)).table_valued("value")
