"""A SQLite driver that fails when it is told to, as a full or broken disk would."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager

import pytest

REAL_CONNECT = sqlite3.connect


class Trouble:
    """Fail the driver's call number `first`, from 1; know which one committed the last write."""

    def __init__(self):
        self.clear()

    def set(self, first, error):
        self.seen, self.first, self.error = 0, first, error
        self.is_writing, self.written = False, 0

    def clear(self):
        self.set(None, None)

    def step(self):
        self.seen += 1
        if self.seen == self.first:
            raise self.error

    def note(self, statement):
        """Know whether what is committed next is a write."""
        if statement.startswith("BEGIN"):
            self.is_writing = statement == "BEGIN IMMEDIATE"

    def __repr__(self):
        return f"call {self.first} of {self.seen} fails with {self.error!r}"


@contextmanager
def troubled_driver():
    """Have every SQLite connection opened in the block ask a `Trouble` before each call."""
    trouble = Trouble()

    class Cursor(sqlite3.Cursor):
        def execute(self, *arguments):
            trouble.step()
            trouble.note(arguments[0])
            return super().execute(*arguments)

        def executemany(self, *arguments):
            trouble.step()
            return super().executemany(*arguments)

        def fetchall(self):
            trouble.step()
            return super().fetchall()

        def fetchone(self):
            trouble.step()
            return super().fetchone()

    class Connection(sqlite3.Connection):
        def cursor(self, factory=Cursor):
            return super().cursor(factory)

        def execute(self, *arguments):
            trouble.step()
            return super().execute(*arguments)

        def commit(self):
            trouble.step()
            super().commit()
            if trouble.is_writing:
                trouble.written = trouble.seen

    def connect(*arguments, **options):
        trouble.step()
        return REAL_CONNECT(*arguments, **options, factory=Connection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sqlite3.connect", connect)
        patch.setattr("sqlite3.dbapi2.connect", connect)
        yield trouble
