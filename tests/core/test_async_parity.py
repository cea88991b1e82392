"""The async mirror is equal to the sync side, in names and in results."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from core import operations
from core.operations import ON_HIERMEM, ON_MEMORY, ON_TENANT, ON_THREAD, TWINS, public_methods
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core import AsyncHierMem, BulkInsertResult, HierMem, errors
from hiermem_core.testing import FakeClock, FakeEmbedder
from hiermem_core.testing.contracts.transcripts import loose_turns
from hiermem_core.tokens.counters import ApproximateCounter


def opened(location):
    fakes = {"counter": ApproximateCounter(), "clock": FakeClock(), "embedder": FakeEmbedder()}
    return HierMem.open(location, **fakes)


@pytest.mark.parametrize(("sync", "mirror"), TWINS.items(), ids=lambda kind: kind.__name__)
def test_e3_every_method_has_a_twin_with_an_equal_signature(sync, mirror):
    assert public_methods(mirror) == public_methods(sync)
    for name in public_methods(sync):
        one, twin = (inspect.signature(getattr(kind, name)) for kind in (sync, mirror))
        assert one.parameters == twin.parameters, name
        awaited = inspect.iscoroutinefunction(getattr(mirror, name))
        assert awaited == (name not in {*operations.IMMEDIATE, "opened"}), name


def test_e3_the_handles_of_the_twins_have_the_same_public_names():
    with opened(":memory:") as hiermem:
        tenant, twin = hiermem.tenant("acme"), AsyncHierMem(hiermem).tenant("acme")
        pairs = [
            (hiermem, AsyncHierMem(hiermem)),
            (tenant, twin),
            (tenant.thread("t1"), twin.thread("t1")),
            (tenant.memory, twin.memory),
            (tenant.patterns, twin.patterns),
            (tenant.session("s1"), twin.session("s1")),
        ]

        missing = {
            type(one).__name__: sorted(public_names(one) - public_names(other))
            for one, other in pairs
        }

    names = ("HierMem", "Tenant", "Thread", "MemoryService", "Patterns", "SessionLog")
    assert missing == {name: [] for name in names}


def public_names(handle):
    """Return the public names of a handle; `pool` is what the mirror itself runs on."""
    return {name for name in dir(handle) if not name.startswith("_")} - {"pool"}


def test_every_public_method_is_among_the_operations():
    assert public_methods(HierMem) - operations.OPENING_AND_CLOSING == set(ON_HIERMEM)
    assert public_methods(operations.Tenant) == set(ON_TENANT)
    assert public_methods(operations.Thread) == set(ON_THREAD)
    assert public_methods(operations.MemoryService) == set(ON_MEMORY)
    assert public_methods(operations.Patterns) == set(operations.ON_PATTERNS)
    assert public_methods(operations.SessionLog) == set(operations.ON_SESSION)


STEPS = {
    "append": lambda tenant, turns, n: tenant.thread("t1").append(turns),
    "append here": lambda tenant, turns, n: tenant.thread("t1").append(turns, expected_seq=n),
    "edit": lambda tenant, turns, n: tenant.thread("t1").edit_turn(f"t{n}", "edited"),
    "delete some": lambda tenant, turns, n: tenant.thread("t1").delete_turns([f"t{n}", "none"]),
    "replace": lambda tenant, turns, n: tenant.thread("t1").replace(turns),
    "prune": lambda tenant, turns, n: tenant.thread("t1").prune(max_turns=n),
    "rehearse": lambda tenant, turns, n: tenant.thread("t1").prune(max_turns=n, dry_run=True),
    "read": lambda tenant, turns, n: tenant.thread("t1").turns(last=n),
    "archived": lambda tenant, turns, n: tenant.thread("t1").turns(status="archived"),
    "info": lambda tenant, turns, n: tenant.thread("t1").info(),
    "state": lambda tenant, turns, n: tenant.thread("t1").state(),
    "context": lambda tenant, turns, n: tenant.thread("t1").context(budget_tokens=40 * n),
    "delete": lambda tenant, turns, n: tenant.thread("t1").delete(),
    "recall": lambda tenant, turns, n: tenant.thread("t1").recall("hello world", limit=n),
    "remember": lambda tenant, turns, n: tenant.remember(f"the fox {n}", id=f"e{n}", key="fox"),
    "update": lambda tenant, turns, n: tenant.memory.update(f"e{n}", content=f"a fox {n}"),
    "search": lambda tenant, turns, n: tenant.memory.search("quick fox", limit=n),
    "insert": lambda tenant, turns, n: tenant.memory.bulk_insert(entries_of(turns)),
    "forget": lambda tenant, turns, n: tenant.forget(ids=[f"e{n}"], dry_run=n % 2 == 0),
    "recall all": lambda tenant, turns, n: tenant.recall("hello fox", limit=n, explain=True),
    "stats": lambda tenant, turns, n: tenant.memory.stats(),
}


def entries_of(turns):
    """Return entries that say what turns say, blank ones too."""
    return [{"content": turn["content"] or "", "id": turn["id"]} for turn in turns]


@st.composite
def scripts(draw):
    """Give steps to take on two stores, with turns whose ids are the same on both."""
    steps = []
    for number in range(draw(st.integers(1, 6))):
        turns = draw(st.lists(loose_turns(), max_size=3))
        named = [
            {"role": turn.role, "content": turn.content, "id": f"t{number}{place}"}
            for place, turn in enumerate(turns)
        ]
        steps.append((draw(st.sampled_from(sorted(STEPS))), named, draw(st.integers(0, 30))))
    return steps


def outcome_of(error):
    return type(error), str(error), vars(error)


def plain(result):
    """Return a result as one that equals another; errors among its failures compare by text."""
    if not isinstance(result, BulkInsertResult):
        return result
    return result.ids, result.pending, [outcome_of(one.error) for one in result.failed]


@given(script=scripts())
def test_e3_the_twins_give_equal_results_on_random_data(script):
    def take(hiermem):
        tenant = hiermem.tenant("acme")
        for name, turns, number in script:
            try:
                yield plain(STEPS[name](tenant, turns, number))
            except errors.HierMemError as error:
                yield outcome_of(error)

    async def await_each(memory):
        tenant = memory.tenant("acme")
        outcomes = []
        for name, turns, number in script:
            try:
                outcomes.append(plain(await STEPS[name](tenant, turns, number)))
            except errors.HierMemError as error:
                outcomes.append(outcome_of(error))
        return outcomes

    with opened(":memory:") as one, opened(":memory:") as other:
        assert list(take(one)) == asyncio.run(await_each(AsyncHierMem(other)))
