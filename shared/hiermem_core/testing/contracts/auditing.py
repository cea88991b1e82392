"""What every store must hold of its audit log."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from hiermem_core.errors import InvalidInputError, VersionConflictError
from hiermem_core.testing.contracts.entries_base import MemoryContract
from hiermem_core.testing.faults import FaultPlan, InjectedFault

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import HierMem

SAID = "xyzzy"


class AuditContract(MemoryContract):
    """Every promise of the audit log.

    A subclass gives the fixture `opened`.
    """

    def test_a78_each_operation_is_one_record_in_order_without_content(
        self, opened: Callable[..., HierMem]
    ) -> None:
        tenant = opened(audit=True, audit_reads=True).tenant("acme", actor="ann")
        memory = tenant.memory

        entry_id = tenant.remember(f"the {SAID}", key=SAID, tags=[SAID], user_id="u")
        memory.update(entry_id, content=f"another {SAID}")
        memory.search(SAID)
        tenant.forget(ids=[entry_id])
        with pytest.raises(VersionConflictError):
            memory.update(memory.store("b", id="b"), content=SAID, expected_version=9)
        with pytest.raises(InvalidInputError):
            memory.store("")

        records = tenant.audit()
        assert [(one.operation, one.outcome) for one in records] == [
            ("store", "ok"),
            ("update", "ok"),
            ("search", "ok"),
            ("forget", "ok"),
            ("store", "ok"),
            ("update", "VersionConflictError"),
            ("store", "InvalidInputError"),
        ]
        assert [one.ids for one in records[:2]] == [(entry_id,)] * 2
        assert records[3].ids == (entry_id,)
        assert {(one.tenant_id, one.actor) for one in records} == {("acme", "ann")}
        assert [one.number for one in records] == sorted({one.number for one in records})
        assert SAID not in repr(records)

    def test_a78_of_threads_turns_are_named(self, opened: Callable[..., HierMem]) -> None:
        tenant = opened(audit=True).tenant("acme")
        thread = tenant.thread("t1")

        thread.append([{"role": "user", "content": SAID, "id": str(n)} for n in range(3)])
        thread.edit_turn("1", "other")
        thread.delete_turns(["2", "nobody"])
        thread.turns()
        thread.delete()

        records = tenant.audit()
        assert [(one.operation, one.ids, one.thread_id) for one in records] == [
            ("append", ("0", "1", "2"), "t1"),
            ("edit_turn", ("1",), "t1"),
            ("delete_turns", ("2",), "t1"),
            ("delete", ("0", "1"), "t1"),
        ]
        assert SAID not in repr(records)

    def test_a78_of_patterns_and_sessions_entries_and_steps_are_named(
        self, opened: Callable[..., HierMem]
    ) -> None:
        tenant = opened(audit=True).tenant("acme", actor="ann")
        session = tenant.session("s1")

        learnt = tenant.patterns.learn(SAID, {"then": SAID}).id
        tenant.patterns.reinforce(SAID, success=True)
        tenant.patterns.find(SAID)
        tenant.patterns.delete(SAID)
        session.log(SAID, id="step 1")
        session.log(SAID, id="step 1")
        session.end()
        tenant.forget(thread_id="s1")

        records = tenant.audit()
        assert [(one.operation, one.ids) for one in records] == [
            ("learn", (learnt,)),
            ("reinforce", (learnt,)),
            ("delete", (learnt,)),
            ("log", ("s1", "step 1")),
            ("log", ()),
            ("end", ("s1",)),
            ("forget", ("s1",)),
        ]
        assert {one.actor for one in records} == {"ann"}
        assert SAID not in repr(records)

    def test_reads_are_left_out_unless_asked_for(self, opened: Callable[..., HierMem]) -> None:
        tenant = opened(audit=True).tenant("acme")
        entry_id = tenant.remember("one")

        tenant.memory.retrieve(entry_id)
        tenant.recall("one")

        assert [one.operation for one in tenant.audit()] == ["store"]

    def test_without_it_nothing_is_recorded(self, hiermem: HierMem) -> None:
        tenant = hiermem.tenant("acme")
        tenant.remember("one")

        assert tenant.audit() == []

    def test_a_bulk_operation_names_all_it_wrote_and_a_dry_run_nothing(
        self, opened: Callable[..., HierMem]
    ) -> None:
        tenant = opened(audit=True).tenant("acme")

        ids = tenant.memory.bulk_insert([f"entry {n}" for n in range(7)], batch_size=100).ids
        tenant.forget(everything=True, dry_run=True)
        tenant.memory.bulk_delete(map(str, ids))
        tenant.memory.delete("nobody")

        told = [(one.operation, set(one.ids), one.outcome) for one in tenant.audit()]
        assert told == [
            ("bulk_insert", set(ids), "ok"),
            ("forget", set(), "ok"),
            ("bulk_delete", set(ids), "ok"),
            ("delete", set(), "ok"),
        ]

    def test_a_tenant_reads_its_own_in_pages(self, opened: Callable[..., HierMem]) -> None:
        hiermem = opened(audit=True)
        mine, others = hiermem.tenant("acme"), hiermem.tenant("other")
        for number in range(5):
            mine.remember(f"mine {number}")
            others.remember(f"theirs {number}")

        first = mine.audit(limit=3)
        rest = mine.audit(after=first[-1].number)

        assert [len(first), len(rest), len(others.audit())] == [3, 2, 5]
        assert {one.tenant_id for one in [*first, *rest]} == {"acme"}


class PersistentAuditContract(MemoryContract):
    """What holds where entries and the log are in one database.

    A subclass gives the fixture `opened`.
    """

    def test_a78_a_record_is_there_exactly_where_its_write_is(
        self, opened: Callable[..., HierMem]
    ) -> None:
        tenant = opened(audit=True).tenant("acme")

        with FaultPlan("rows.before_commit"), suppress(InjectedFault):
            tenant.remember("one", id="one")

        records = tenant.audit()
        assert tenant.memory.retrieve("one") is None
        assert [(one.operation, one.ids, one.outcome) for one in records] == [
            ("store", (), "InjectedFault")
        ]
