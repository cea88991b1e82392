"""What a context costs a server: few round trips, and rows that do not grow with the thread."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from sqlalchemy import event

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing.contracts.samples import said

TURNS = 10_000
MOST = 4


@contextmanager
def server_calls(hiermem):
    """Give the list of what is sent and waited for, and of how many rows come back, meanwhile.

    A transaction begins in the round trip of its first statement; its end is one of its own.
    """
    engine = hiermem._services.database._engine
    calls = []

    def sent(connection, cursor, statement, *ignored):
        rows = cursor.rowcount if cursor.description else 0
        calls.append((statement, rows))

    def ended(connection):
        calls.append(("end", 0))

    hooks = [("after_cursor_execute", sent), ("commit", ended), ("rollback", ended)]
    for name, hook in hooks:
        event.listen(engine, name, hook)
    yield calls
    for name, hook in hooks:
        event.remove(engine, name, hook)


@pytest.fixture(scope="module")
def module_location(postgres_database):
    return f"{postgres_database}?schema=round_trips"


@pytest.fixture(scope="module")
def hiermem(module_location):
    with HierMem.open(
        module_location, counter=ApproximateCounter(), local_embedder=False
    ) as hiermem:
        tenant = hiermem.tenant("acme")
        for name, turns, words in (("short", 200, 34), ("long", TURNS, 34), ("tiny", 4000, 1)):
            for start in range(0, turns, 2000):
                batch = said(f"turn {number}" + " word" * words for number in range(2000))
                tenant.thread(name).append(batch[: turns - start])
        yield hiermem


def context_calls(hiermem, name, budget=1000):
    thread = hiermem.tenant("acme").thread(name)
    with server_calls(hiermem) as calls:
        context = thread.context(budget_tokens=budget, recall=False)
    assert budget / 2 < context.receipt.total
    return calls


@pytest.mark.parametrize("budget", [1000, 4000])
def test_a_context_of_ten_thousand_turns_takes_four_round_trips_at_most(hiermem, budget):
    assert hiermem.tenant("acme").thread("long").count() == TURNS

    calls = context_calls(hiermem, "long", budget)

    assert 1 < len(calls) <= MOST, calls


@pytest.mark.parametrize("budget", [1000, 20_000])
def test_a_window_of_many_tiny_turns_takes_one_round_trip_more_whatever_its_length(hiermem, budget):
    assert len(context_calls(hiermem, "tiny", budget)) <= MOST + 1


def test_a_context_of_ten_thousand_turns_reads_as_many_rows_as_one_of_two_hundred(hiermem):
    short, long = (
        sum(rows for _, rows in context_calls(hiermem, name)) for name in ("short", "long")
    )

    assert 0 < long <= short + 1
