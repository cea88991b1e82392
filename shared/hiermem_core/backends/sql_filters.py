"""Filters over metadata as SQL conditions, with the answers of `models.filters.matches`.

The column holds JSON text as `models.plain.dump_json` writes it. A condition is true for a row that
matches, and false or NULL for any other; negation takes both for false. Everything compared is a
bound parameter, but for the paths of indexed fields: they stand in the statement as in the index.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from sqlalchemy import and_, false, or_, true

from hiermem_core.backends.postgres_json import PostgresField, index_expression
from hiermem_core.backends.sqlite_json import SqliteField, literal_path
from hiermem_core.backends.sqlite_places import is_not_true
from hiermem_core.models.filters import And, Comparison, Not, Or

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import ColumnElement

    from hiermem_core.backends.json_numbers import Order
    from hiermem_core.models.filters import Filter

_DIGEST_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Fields:
    """The metadata fields of a database.

    Attributes:
        indexed: Those that have the index of `metadata_index_ddl`. Answers do not depend on it.
        dialect: SQLAlchemy's name of the engine.
    """

    indexed: frozenset[str] = frozenset()
    dialect: str = "sqlite"


NO_FIELDS = Fields()


def sql_filter(
    filter: Filter,  # noqa: A002 - the glossary's word
    column: ColumnElement[str],
    *,
    fields: Fields = NO_FIELDS,
) -> ColumnElement[bool]:
    """Return the condition that the metadata in `column` satisfies a filter.

    Raises:
        ConfigurationError: The filter names an indexed field that no index can be on.
    """
    return _Statement(column, fields).that(filter)


def metadata_index_ddl(field: str, dialect: str = "sqlite") -> str:
    """Return the statement that makes the index on one metadata field, unless it is there.

    It serves equality and `$in` over scalars of one tenant, and on SQLite order.

    Raises:
        ConfigurationError: The name holds a lone surrogate or NUL, or on SQLite a quotation mark.
    """
    held = (
        f"json_extract(metadata, {literal_path(field)})"
        if dialect == "sqlite"
        else index_expression(field)
    )
    digest = hashlib.sha256(field.encode()).hexdigest()[:_DIGEST_DIGITS]
    name = f"memory_entries_metadata_{digest}"
    return f"CREATE INDEX IF NOT EXISTS {name} ON memory_entries (tenant, ({held}))"


class Field(Protocol):
    """One top-level key of the objects in a column, to be compared with an operand."""

    def exists(self) -> ColumnElement[bool]:
        """Return whether the field is there, null included."""
        ...

    def equals(self) -> ColumnElement[bool]:
        """Return whether the value is the operand, at every level of one type."""
        ...

    def is_one_of(self) -> ColumnElement[bool]:
        """Return whether the value is one of the operand's items."""
        ...

    def includes(self) -> ColumnElement[bool]:
        """Return whether the value is an object that recursively has all the operand has."""
        ...

    def contains(self) -> ColumnElement[bool]:
        """Return whether the value is a list with an item that is the operand."""
        ...

    def compares(self, order: Order) -> ColumnElement[bool]:
        """Return whether the value stands to the operand, a number or text, in an order."""
        ...


@dataclass(frozen=True, slots=True)
class _Statement:
    """Say of the metadata in a column that a filter holds, or that it does not.

    Negations are handed down to the comparisons, so that a deep filter stays a flat condition:
    SQLite up to 3.43 reads no deeper than 100 open brackets and operators; 3.46 does.
    """

    column: ColumnElement[str]
    fields: Fields

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
        is_indexed = comparison.field in self.fields.indexed
        kind = _KINDS[self.fields.dialect]
        field = kind(self.column, comparison.field, operand, is_indexed=is_indexed)
        if name == "$exists":
            return field.exists() if operand else is_not_true(field.exists())
        if name in _NEGATED:
            return and_(field.exists(), is_not_true(_NEGATED[name](field)))
        if name in _PLAIN:
            return _PLAIN[name](field)
        return field.compares(cast("Order", name))


_KINDS: Mapping[str, Callable[..., Field]] = {
    "sqlite": SqliteField,
    "postgresql": PostgresField,
}
_PLAIN: Mapping[str, Callable[[Field], ColumnElement[bool]]] = {
    "$eq": lambda field: field.equals(),
    "$in": lambda field: field.is_one_of(),
    "$contains": lambda field: field.contains(),
    "subset": lambda field: field.includes(),
}
_NEGATED: Mapping[str, Callable[[Field], ColumnElement[bool]]] = {
    "$ne": lambda field: field.equals(),
    "$nin": lambda field: field.is_one_of(),
}
