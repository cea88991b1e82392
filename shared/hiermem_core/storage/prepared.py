"""Statements whose text is made once, for those that every call runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core.storage.sealing import seal_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection, CursorResult, Executable
    from sqlalchemy.engine import Dialect


class Prepared:
    """A statement that is compiled once an engine, and then given to the driver as text.

    Costs less than `Connection.execute`, as types are left out: values and columns pass as the
    driver has them, and SQLite gives 0 and 1 for booleans.

    Args:
        statement: All that changes in it is bound by name, and no list is expanded.
        sets: Of an update, the columns that are set, each to the value of its name.
    """

    def __init__(self, statement: Executable, *, sets: Sequence[str] = ()) -> None:
        self._statement = statement
        self._sets = list(sets) or None
        self._texts: dict[str, tuple[str, tuple[str, ...] | None, Mapping[str, Any]]] = {}

    def run(self, connection: Connection, values: Mapping[str, Any]) -> CursorResult[Any]:
        """Run it with these values."""
        dialect = connection.dialect
        if seal_of(dialect) is not None:  # what is sealed takes the way of types
            return connection.execute(self._statement, values)
        text, places, fixed = self._texts.get(dialect.name) or self._compiled(dialect)
        bound = {**fixed, **values} if fixed else values
        if places is None:
            return connection.exec_driver_sql(text, dict(bound))
        return connection.exec_driver_sql(text, tuple([bound[name] for name in places]))

    def _compiled(self, dialect: Dialect) -> tuple[str, tuple[str, ...] | None, Mapping[str, Any]]:
        compiled: Any = self._statement.compile(  # type: ignore[attr-defined]  # every statement has it
            dialect=dialect, column_keys=self._sets
        )
        fixed = {name: it.value for it, name in compiled.bind_names.items() if not it.required}
        places = tuple(compiled.positiontup) if compiled.positional else None
        self._texts[dialect.name] = made = (str(compiled), places, fixed)
        return made
