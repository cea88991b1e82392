"""Databases on a server of the tests, and what other programs keep in them."""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from uuid import UUID

from sqlalchemy import create_engine, text

SESSION = "7b0a4f9e-4a9f-4a56-9d2c-0d3a0f9f3a01"


@contextmanager
def connection_to(url):
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def digest_of(url):
    """Return what a database's tables hold and how they are made."""
    with connection_to(url) as connection:
        names = connection.execute(
            text("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")
        ).scalars()
        told = [
            (name, [tuple(row) for row in connection.execute(text(f'TABLE "{name}"'))])
            for name in sorted(names)
            if not name.endswith(("_pkey", "_idx")) and not name.startswith("ix_")
        ]
    return hashlib.sha256(repr(told).encode()).hexdigest()


def langchain(kind="JSONB", sessions=1, turns=4):
    """Return what makes a table as langchain-postgres does, `sessions` interleaved."""
    make = f"""CREATE TABLE message_store (id SERIAL PRIMARY KEY, session_id UUID NOT NULL,
    message {kind} NOT NULL, created_at TIMESTAMPTZ NOT NULL DEFAULT '2026-05-01 12:00:00+02')"""
    roles = ("human", "ai")
    values = [
        {
            "session": str(UUID(int=UUID(SESSION).int + session)),
            "message": json.dumps({"type": roles[n % 2], "data": {"content": f"{session} {n} 靴"}}),
        }
        for n in range(turns)
        for session in range(sessions)
    ]
    put = "INSERT INTO message_store (session_id, message) VALUES (:session, CAST(:message AS {}))"
    return {"statements": (make,), "rows": [(put.format(kind), values)]}


def filled(database, shape):
    return database(*shape["statements"], rows=shape["rows"])
