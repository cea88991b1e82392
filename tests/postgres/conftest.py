"""Locations on a PostgreSQL server, one a test: a schema of its own in the process's database."""

from __future__ import annotations

import secrets
from contextlib import closing

import pytest
from chroma_server import chroma_server  # noqa: F401 - a fixture of these tests


@pytest.fixture(scope="session")
def postgres_database(postgres_server):
    """Return the URL of this process's database."""
    return postgres_server.new_database()


@pytest.fixture
def location(postgres_database):
    """Return the URL of a location where nothing is stored yet."""
    import psycopg

    schema = f"test_{secrets.token_hex(6)}"
    yield f"{postgres_database}?schema={schema}"
    url = postgres_database.replace("+psycopg", "")
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
