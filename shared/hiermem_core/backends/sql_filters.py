"""Filters over metadata as SQL conditions, with the answers of `models.filters.matches`.

The column holds JSON text as `models.plain.dump_json` writes it. A condition is true for a row that
matches, and false or NULL for any other; negation takes both for false. Everything compared is a
bound parameter, but for the paths of indexed fields: they stand in the statement as in the index.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from sqlalchemy import and_, false, or_, true

from hiermem_core.backends.sqlite_json import JsonField, literal_path
from hiermem_core.backends.sqlite_places import is_not_true
from hiermem_core.models.filters import And, Comparison, Not, Or

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import ColumnElement

    from hiermem_core.backends.json_numbers import Order
    from hiermem_core.models.filters import Filter

_DIGEST_DIGITS = 16


def sql_filter(
    filter: Filter,  # noqa: A002 - the glossary's word
    column: ColumnElement[str],
    *,
    indexed: frozenset[str] = frozenset(),
) -> ColumnElement[bool]:
    """Return the condition that the metadata in `column` satisfies a filter.

    Args:
        indexed: Fields that have the index of `metadata_index_ddl`. The answers do not depend on
            it.

    Raises:
        ConfigurationError: The filter names an indexed field that no index can be on.
    """
    return _Statement(column, indexed).that(filter)


def metadata_index_ddl(field: str) -> str:
    """Return the statement that makes the index on one metadata field, unless it is there.

    It serves equality, `$in` over scalars, and order, of one tenant.

    Raises:
        ConfigurationError: The name holds a quotation mark, a lone surrogate or NUL.
    """
    path = literal_path(field)
    digest = hashlib.sha256(field.encode()).hexdigest()[:_DIGEST_DIGITS]
    return (
        f"CREATE INDEX IF NOT EXISTS memory_entries_metadata_{digest} "
        f"ON memory_entries (tenant, json_extract(metadata, {path}))"
    )


@dataclass(frozen=True, slots=True)
class _Statement:
    """Say of the metadata in a column that a filter holds, or that it does not.

    Negations are handed down to the comparisons, so that a deep filter stays a flat condition:
    SQLite up to 3.43 reads no deeper than 100 open brackets and operators; 3.46 does.
    """

    column: ColumnElement[str]
    indexed: frozenset[str]

    def that(self, filter: Filter) -> ColumnElement[bool]:  # noqa: A002 - the glossary's word
        match filter:
            case And(parts):
                return and_(true(), *map(self.that, parts))
            case Or(parts):
                return or_(false(), *map(self.that, parts))
            case Not(part):
                return self.that_not(part)
            case Comparison():
                return self._compared(filter)

    def that_not(self, filter: Filter) -> ColumnElement[bool]:  # noqa: A002 - as above
        match filter:
            case And(parts):
                return or_(false(), *map(self.that_not, parts))
            case Or(parts):
                return and_(true(), *map(self.that_not, parts))
            case Not(part):
                return self.that(part)
            case Comparison():
                return is_not_true(self._compared(filter))

    def _compared(self, comparison: Comparison) -> ColumnElement[bool]:
        name, operand = comparison.operator, comparison.operand
        is_indexed = comparison.field in self.indexed
        field = JsonField(self.column, comparison.field, operand, is_indexed=is_indexed)
        if name == "$exists":
            return field.exists() if operand else is_not_true(field.exists())
        if name in _NEGATED:
            return and_(field.exists(), is_not_true(_NEGATED[name](field)))
        if name in _PLAIN:
            return _PLAIN[name](field)
        return field.compares(cast("Order", name))


_PLAIN: Mapping[str, Callable[[JsonField], ColumnElement[bool]]] = {
    "$eq": JsonField.equals,
    "$in": JsonField.is_one_of,
    "$contains": JsonField.contains,
    "subset": JsonField.includes,
}
_NEGATED: Mapping[str, Callable[[JsonField], ColumnElement[bool]]] = {
    "$ne": JsonField.equals,
    "$nin": JsonField.is_one_of,
}
