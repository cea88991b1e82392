"""The server that the tests of PostgreSQL share."""

from __future__ import annotations

import psutil
import pytest
from postgres_server import running_server
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError


def ask(url, *statements):
    """Return what the last statement gives."""
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            *_, answer = [connection.execute(text(one)) for one in statements]
            return answer.scalar()
    finally:
        engine.dispose()


def test_a_database_is_empty_and_the_tests_own(postgres_server, postgres_url):
    other = postgres_server.new_database()

    assert ask(postgres_url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0
    assert ask(postgres_url, "SELECT current_database()") != ask(other, "SELECT current_database()")


def test_a_server_keeps_its_port_and_its_data_when_it_is_killed_and_started():
    with running_server() as server:
        url = server.new_database()
        ask(url, "CREATE TABLE kept AS SELECT 7 AS seven", "SELECT 1")
        server.stop("immediate")
        with pytest.raises(OperationalError):
            ask(url, "SELECT 1")
        server.start()

        assert ask(url, "SELECT seven FROM kept") == 7


def test_no_server_is_left_when_its_block_ends():
    with running_server() as server:
        process = psutil.Process(server._process.pid)

    assert not process.is_running()
