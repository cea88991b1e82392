"""What every backend must hold of forgetting."""
# ruff: noqa: D102, SLF001 - a test's name says what it holds; it looks below the public face

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select

from hiermem_core.errors import InvalidInputError, ThreadNotFoundError
from hiermem_core.forgetting.erasing import STORES
from hiermem_core.models.events import Forgotten
from hiermem_core.models.notes import Fact, ThreadState
from hiermem_core.models.turns import TurnDraft
from hiermem_core.storage import tables
from hiermem_core.testing.contracts.entries_base import (
    DIMENSIONS,
    MemoryContract,
    everything,
    ids_of,
    modes_of,
    settle,
)
from hiermem_core.testing.contracts.probes import notes_store

if TYPE_CHECKING:
    from hiermem_core import HierMem, Tenant, Thread
    from hiermem_core.models.events import Event
    from hiermem_core.testing.clocks import FakeClock
    from hiermem_core.testing.embedders import FakeEmbedder

NOTHING = dict.fromkeys(STORES, 0)


class ForgettingContract(MemoryContract):
    """Every promise of `forget` about what is read; the files are looked at elsewhere."""

    @pytest.fixture
    def tenant(self, hiermem: HierMem) -> Tenant:
        """Give the tenant that forgets."""
        return hiermem.tenant("acme")

    @pytest.mark.parametrize(
        "selectors",
        [
            {},
            {"ids": ["a"], "user_id": "u"},
            {"ids": [], "namespace": "n"},
            {"thread_id": "t", "everything": True},
            {"everything": False},
            {"everything": 1},
            {"namespace": ""},
            {"namespace": "/"},
            {"thread_id": ""},
            {"user_id": ""},
            {"ids": "abc"},
            {"ids": [""]},
        ],
        ids=str,
    )
    def test_anything_but_one_selector_that_names_something_is_refused(
        self, tenant: Tenant, selectors: dict[str, Any]
    ) -> None:
        entry_id = tenant.remember("alpha", namespace="n", user_id="u")

        with pytest.raises(InvalidInputError):
            tenant.forget(**selectors)

        assert tenant.memory.retrieve(entry_id) is not None

    def test_an_empty_list_of_ids_forgets_nothing_and_tells_nobody(
        self, tenant: Tenant, events: list[Event]
    ) -> None:
        tenant.remember("alpha")
        before = tenant.memory.generation()

        receipt = tenant.forget(ids=[])

        assert (receipt.counts, receipt.complete) == (NOTHING, True)
        assert tenant.memory.generation() == before
        assert forgotten(events) == []

    @pytest.mark.parametrize(
        "selector",
        [{"ids": ["x"]}, {"namespace": "x"}, {"thread_id": "x"}, {"user_id": "x"}],
        ids=str,
    )
    def test_what_is_not_there_is_forgotten_already(
        self, tenant: Tenant, events: list[Event], selector: dict[str, Any]
    ) -> None:
        tenant.remember("alpha")

        receipt = tenant.forget(**selector)

        assert (receipt.counts, receipt.complete) == (NOTHING, True)
        assert len(tenant.memory.search()) == 1
        assert forgotten(events) == []

    def test_entries_are_forgotten_by_id_in_every_way_of_reading(self, tenant: Tenant) -> None:
        ids = [tenant.remember(f"alpha {n}", key=f"alpha {n}", tags=["alpha"]) for n in range(6)]
        settle(tenant.memory)
        tenant.memory.bulk_get(ids)
        tenant.memory.retrieve(ids[0])

        receipt = tenant.forget(ids=[*ids[:3], ids[0], "unknown"])

        assert receipt.complete
        assert receipt.counts["entries"] == 3
        assert tenant.memory.retrieve(ids[0]) is None
        assert tenant.memory.bulk_get(ids[:3]) == dict.fromkeys(ids[:3])
        for mode in modes_of(tenant.memory):
            text = {"exact": "alpha 0", "tag": "alpha"}.get(mode, "alpha")
            assert not set(ids[:3]) & set(ids_of(tenant.memory.search(text, mode=mode))), mode

    def test_a_namespace_is_forgotten_with_what_is_below_it_by_whole_segments(
        self, tenant: Tenant
    ) -> None:
        for name in ("t/a", "t/a/b", "t/ab", "t"):
            tenant.remember("alpha", namespace=name)

        receipt = tenant.forget(namespace=("t", "a"))

        assert receipt.counts["entries"] == 2
        assert tenant.memory.list_namespaces() == ["t", "t/ab"]

    def test_expired_entries_are_forgotten_too(self, tenant: Tenant, clock: FakeClock) -> None:
        tenant.remember("alpha", ttl=60, user_id="u")
        clock.advance(61)

        receipt = tenant.forget(user_id="u")

        assert receipt.counts["entries"] == 1
        assert tenant.memory.stats().expired == 0

    def test_a_thread_is_forgotten_with_its_turns_archived_ones_and_notes(
        self, hiermem: HierMem, tenant: Tenant
    ) -> None:
        tenant.thread("gone").append([TurnDraft(role="user", content="replaced")])
        tenant.thread("gone").replace([])
        gone, kept = noted(hiermem, tenant.thread("gone")), noted(hiermem, tenant.thread("kept"))
        before = rows_of(hiermem)

        receipt = tenant.forget(thread_id="gone")

        assert receipt.complete
        assert {**receipt.counts, "vectors": 0} == NOTHING | {"turns": 3, "threads": 1, "notes": 1}
        with pytest.raises(ThreadNotFoundError):
            gone.turns()
        assert kept.state().summary
        assert rows_of(hiermem) < before
        assert {getattr(hit, "thread_id", "") for hit in tenant.recall("another question")} == {
            "kept"
        }

    def test_a51_nothing_of_others_is_changed_when_a_user_is_forgotten(
        self, hiermem: HierMem, tenant: Tenant
    ) -> None:
        other = hiermem.tenant("other")
        for one in (tenant, other):
            for user in ("bob", "eve", None):
                one.remember(f"alpha of {user}", user_id=user, tags=["t"], key=f"k {user}")
                noted(hiermem, one.thread(f"of {user}"), user=user)
        for one in (tenant, other):
            settle(one.memory)
        rows, entries = rows_of(hiermem), everything(tenant.memory)
        others, turns = everything(other.memory), tenant.thread("of eve").turns()

        receipt = tenant.forget(user_id="bob")

        assert receipt.complete
        assert {**receipt.counts, "vectors": 0} == NOTHING | {
            "entries": 1,
            "turns": 2,
            "threads": 1,
            "notes": 1,
        }
        assert everything(tenant.memory) == [e for e in entries if e.user_id != "bob"]
        assert everything(other.memory) == others
        assert tenant.thread("of eve").turns() == turns
        assert tenant.thread("of eve").state() == other.thread("of eve").state()
        assert rows_of(hiermem) < rows

    def test_a_user_is_forgotten_in_the_threads_of_others_with_the_notes_of_those(
        self, hiermem: HierMem, tenant: Tenant
    ) -> None:
        thread = noted(hiermem, tenant.thread("both"), user="eve")
        (mine,) = thread.append([TurnDraft(role="user", content="by bob", user_id="bob")])
        thread.append([TurnDraft(role="user", content="old, by bob", user_id="bob", id="old")])
        thread.append([TurnDraft(role="assistant", content="to bob")], removing=["old"])

        receipt = tenant.forget(user_id="bob")

        contents = [turn.content for turn in thread.turns()]
        assert {**receipt.counts, "vectors": 0} == NOTHING | {"turns": 2, "notes": 1}
        assert contents == ["a question", "an answer", "to bob"]
        assert thread.turns(status="archived") == []
        assert thread.state() == ThreadState()
        assert thread.info().turns == 3
        assert thread.append([TurnDraft(role="user", content="next")])[0].seq > mine.seq

    def test_everything_of_one_tenant_is_forgotten(self, hiermem: HierMem, tenant: Tenant) -> None:
        other = hiermem.tenant("other")
        for one in (tenant, other):
            one.remember("alpha")
            noted(hiermem, one.thread("t1"))
        generation = tenant.memory.generation()

        receipt = tenant.forget(everything=True)

        assert receipt.complete
        assert (len(tenant.memory.search()), tenant.threads()) == (0, [])
        assert tenant.memory.stats().index.indexed == 0
        assert tenant.memory.generation() > generation
        assert (len(other.memory.search()), len(other.threads())) == (1, 1)
        assert tenant.memory.retrieve(tenant.remember("beta")) is not None

    def test_a52_ten_thousand_and_one_rows_are_forgotten_or_cleared(self, tenant: Tenant) -> None:
        vector = [1.0, *[0.0] * (DIMENSIONS - 1)]
        for name in ("forgotten", "cleared"):
            for start in (0, 10_000):
                rows = [
                    {"content": f"{n}", "namespace": name, "embedding": vector}
                    for n in range(start, min(start + 10_000, 10_001))
                ]
                tenant.memory.bulk_insert(rows, batch_size=5_000)

        receipt = tenant.forget(namespace="forgotten")
        cleared = tenant.memory.clear_namespace("cleared")

        assert receipt.complete
        assert (receipt.counts["entries"], receipt.counts["vectors"]) == (10_001, 10_001)
        assert cleared == 10_001
        assert tenant.memory.stats().entries == 0
        assert tenant.memory.stats().index.indexed == 0

    def test_what_was_derived_from_the_turns_of_a_forgotten_thread_goes_too(
        self, tenant: Tenant
    ) -> None:
        first = tenant.thread("one").append([{"role": "user", "content": "Ebba keeps llamas"}])[0]
        other = tenant.thread("two").append([{"role": "user", "content": "Ebba has hay"}])[0]
        gone = tenant.remember("fact of one", derived_from=[str(first.id)])
        kept = tenant.remember("fact of both", derived_from=[str(first.id), str(other.id)])

        tenant.forget(thread_id="one")

        assert tenant.memory.retrieve(gone) is None
        left = tenant.memory.retrieve(kept)
        assert left is not None
        assert left.derived_from == (other.id,)

    def test_entries_derived_only_from_forgotten_ones_go_too(
        self, tenant: Tenant, clock: FakeClock
    ) -> None:
        root, other = tenant.remember("root"), tenant.remember("other")
        only = tenant.remember("only", derived_from=[root])
        deep = tenant.remember("deep", derived_from=[only, root])
        both = tenant.remember("both", derived_from=[root, other])
        from_both = tenant.remember("from both", derived_from=[both, deep])
        before = tenant.memory.bulk_get([both, from_both, other])
        clock.advance(5)

        receipt = tenant.forget(ids=[root])

        assert receipt.counts["entries"] == 3
        assert tenant.memory.bulk_get([root, only, deep]) == dict.fromkeys([root, only, deep])
        assert tenant.memory.retrieve(other) == before[other]
        for name, left in ((both, (other,)), (from_both, (both,))):
            old = before[name]
            assert old is not None
            assert tenant.memory.retrieve(name) == replace(
                old, derived_from=left, version=2, updated_at=clock.now()
            )

    @pytest.mark.parametrize(
        "selector", [{"user_id": "bob"}, {"everything": True}, {"thread_id": "t1"}], ids=str
    )
    def test_a_dry_run_counts_the_same_and_changes_nothing(
        self, hiermem: HierMem, tenant: Tenant, events: list[Event], selector: dict[str, Any]
    ) -> None:
        source = tenant.remember("alpha", user_id="bob")
        tenant.remember("derived", derived_from=[source])
        noted(hiermem, tenant.thread("t1"), user="bob")
        settle(tenant.memory)
        before = rows_of(hiermem), everything(tenant.memory), tenant.memory.generation()

        rehearsed = tenant.forget(**selector, dry_run=True)
        after = rows_of(hiermem), everything(tenant.memory), tenant.memory.generation()
        done = tenant.forget(**selector)

        assert after == before
        assert rehearsed.counts == done.counts
        assert rehearsed.dry_run
        assert not rehearsed.complete
        assert rehearsed.remaining == sum(rehearsed.counts.values()) > 0
        assert len(forgotten(events)) == 1

    def test_the_receipt_and_the_event_tell_figures_and_nothing_else(
        self, tenant: Tenant, events: list[Event], clock: FakeClock, embedder: FakeEmbedder
    ) -> None:
        tenant.remember("secret-text", user_id="secret-user", key="secret-key")
        calls = len(embedder.calls)

        receipt = tenant.memory.forget(user_id="secret-user")

        assert receipt.complete
        assert (receipt.failed, receipt.remaining, receipt.vacuumed) == ((), 0, True)
        assert receipt.at == clock.now()
        assert receipt.counts == NOTHING | {"entries": 1, "vectors": 1}
        assert len(receipt.selector) == 64
        assert forgotten(events) == [Forgotten("acme", receipt.counts)]
        assert "secret" not in repr(receipt)
        assert len(embedder.calls) == calls

    def test_a_foreign_tenants_things_are_not_found(self, hiermem: HierMem, tenant: Tenant) -> None:
        entry_id = tenant.remember("alpha", namespace="n", user_id="u")
        noted(hiermem, tenant.thread("t1"), user="u")
        foreign = hiermem.tenant("other")

        receipts = [
            foreign.forget(ids=[entry_id]),
            foreign.forget(namespace="n"),
            foreign.forget(user_id="u"),
            foreign.forget(thread_id="t1"),
            foreign.forget(everything=True),
        ]

        assert [receipt.counts for receipt in receipts] == [NOTHING] * 5
        assert tenant.memory.retrieve(entry_id) is not None
        assert len(tenant.thread("t1").turns()) == 2


def forgotten(events: list[Event]) -> list[Event]:
    """Return the events that tell of something forgotten."""
    return [event for event in events if isinstance(event, Forgotten)]


def noted(hiermem: HierMem, thread: Thread, *, user: str | None = None) -> Thread:
    """Return a thread with an exchange by a user and notes of it."""
    thread.append([TurnDraft(role="user", content="a question", user_id=user)])
    thread.append([TurnDraft(role="assistant", content="an answer", user_id=user)])
    notes = notes_store(hiermem)
    mark = notes.read(thread.tenant_id, thread.id).mark
    state = ThreadState("Something was asked.", (Fact("It was answered.", 2, ((1, 2),)),), 2)
    assert notes.commit(thread.tenant_id, thread.id, state, onto=mark)
    return thread


def rows_of(hiermem: HierMem) -> set[tuple[Any, ...]]:
    """Return every row of what is kept, but for what is only counted or queued."""
    passing = {"metadata", "tenants", "outbox"}
    kept = [table for table in tables.schema.sorted_tables if table.name not in passing]
    with hiermem._services.database.read() as connection:
        words = connection.exec_driver_sql("SELECT * FROM keywords").all()
        found = {("keywords", *row) for row in words}
        for table in kept:
            found |= {(table.name, *row) for row in connection.execute(select(table))}
    return found
