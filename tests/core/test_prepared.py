"""Statements that are compiled once."""

from __future__ import annotations

import pytest
from sqlalchemy import bindparam, create_engine, insert, select, update

from hiermem_core.storage.prepared import Prepared
from hiermem_core.storage.tables import metadata

_M = metadata.c
FIND = Prepared(select(_M.value, _M.updated_at).where(_M.key == bindparam("of")))
SET = Prepared(update(metadata).where(_M.key == bindparam("of")), sets=("value", "updated_at"))
RAISE = Prepared(
    update(metadata)
    .where(_M.key == bindparam("of"))
    .values(updated_at=_M.updated_at + 5)
    .returning(_M.updated_at)
)


@pytest.fixture
def connection():
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        metadata.create(connection)
        for key in ("a", "b"):
            row = {"key": key, "value": key.upper(), "updated_at": 1}
            connection.execute(insert(metadata).values(row))
        yield connection
    engine.dispose()


def test_it_runs_with_the_values_of_each_call(connection):
    assert [FIND.run(connection, {"of": key}).first() for key in ("a", "b", "a", "none")] == [
        ("A", 1),
        ("B", 1),
        ("A", 1),
        None,
    ]


def test_an_update_sets_the_columns_it_names(connection):
    assert SET.run(connection, {"of": "a", "value": "x%", "updated_at": 7}).rowcount == 1

    assert FIND.run(connection, {"of": "a"}).one() == ("x%", 7)
    assert FIND.run(connection, {"of": "b"}).one() == ("B", 1)


def test_what_stands_in_the_statement_needs_no_value(connection):
    assert RAISE.run(connection, {"of": "b"}).scalar() == 6
    assert RAISE.run(connection, {"of": "none"}).scalar() is None


def test_a_value_that_is_missing_is_an_error(connection):
    with pytest.raises(KeyError):
        SET.run(connection, {"of": "a", "value": "x"})
