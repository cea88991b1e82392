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


def as_given(values: Iterable[Any]) -> str:
    """Return numbers, texts, or pairs of them as what is bound."""
    return dump_json(list(values))


def _each(name: str) -> Any:
    return func.json_each(bindparam(name)).table_valued("value")
