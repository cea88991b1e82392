"""Databases that fail for a while, as SQLite fails itself."""

from __future__ import annotations

from contextlib import contextmanager

from sqlalchemy import event


def read_only(hiermem):
    """Let SQLite change nothing while the block runs."""
    return _set_while(hiermem, "query_only = ON", "query_only = OFF")


def full_disk(hiermem):
    """Let SQLite have no page more than it has while the block runs."""
    return _set_while(hiermem, "max_page_count = 1", "max_page_count = 1000000")


@contextmanager
def _set_while(hiermem, during, after):
    engine = hiermem._services.database._engine

    def begin(connection, *ignored):
        connection.execute(f"PRAGMA {during}")

    def end(connection, *ignored):
        connection.execute(f"PRAGMA {after}")

    event.listen(engine, "checkout", begin)
    event.listen(engine, "checkin", end)
    try:
        yield
    finally:
        event.remove(engine, "checkout", begin)
        event.remove(engine, "checkin", end)
