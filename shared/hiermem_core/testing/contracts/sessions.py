"""What every backend must hold of sessions and their steps."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.errors import (
    ClosedError,
    ConflictError,
    InvalidInputError,
    LimitExceededError,
    SessionNotFoundError,
)
from hiermem_core.models.events import (
    SessionChanged,
    SessionDeleted,
    SessionEvent,
    StepsLogged,
)
from hiermem_core.models.sessions import SESSION_STATUSES
from hiermem_core.models.turns import ToolCall, TurnDraft
from hiermem_core.testing.contracts.entries_base import MemoryContract

if TYPE_CHECKING:
    from hiermem_core import HierMem, Tenant
    from hiermem_core.models.events import Event
    from hiermem_core.models.sessions import Session
    from hiermem_core.testing.clocks import FakeClock

WRITERS = 16
STEPS_EACH = 5


class SessionContract(MemoryContract):
    """Every promise of `SessionLog`, and of `Tenant.sessions`."""

    @pytest.fixture
    def tenant(self, hiermem: HierMem) -> Tenant:
        """Give the tenant whose agents run."""
        return hiermem.tenant("acme")

    def test_i52_steps_of_many_threads_are_numbered_without_a_gap(self, tenant: Tenant) -> None:
        def log(writer: int) -> list[int]:
            session = tenant.session("s1")
            return [session.log(f"{writer}.{n}").step for n in range(STEPS_EACH)]

        with ThreadPoolExecutor(WRITERS) as pool:
            numbers = [n for some in pool.map(log, range(WRITERS)) for n in some]

        steps = tenant.session("s1").steps()
        assert sorted(numbers) == [*range(1, WRITERS * STEPS_EACH + 1)]
        assert [step.step for step in steps] == sorted(numbers)
        assert len({step.action for step in steps}) == len(steps)

    def test_i52_a_deleted_session_has_no_steps(self, tenant: Tenant) -> None:
        session = tenant.session("s1")
        session.log("look")
        session.log("leap")

        was_there = session.delete()

        assert was_there
        assert (session.steps(), session.get(), tenant.sessions()) == ([], None, [])
        assert not session.delete()
        assert session.log("look again").step == 1

    def test_a_session_is_started_ended_and_started_again(
        self, tenant: Tenant, clock: FakeClock
    ) -> None:
        session = tenant.session("s1")
        before = session.get()
        started = session.start({"task": "book a table"}, user_id="u")
        clock.advance(60)
        paused = session.end("paused")
        ended = session.end(data={"table": 7})
        clock.advance(60)
        again = session.start()

        assert before is None
        assert (started.status, started.data) == ("active", {"task": "book a table"})
        assert (paused.status, paused.ended_at) == ("paused", None)
        assert (ended.status, ended.data) == ("completed", {"table": 7})
        assert ended.ended_at is not None
        assert (ended.ended_at - started.started_at).total_seconds() == 60
        assert (again.status, again.ended_at, again.data) == ("active", None, {"table": 7})
        assert (again.started_at, again.user_id) == (started.started_at, "u")
        assert session.get() == again

    def test_the_first_step_starts_a_session(self, tenant: Tenant) -> None:
        step = tenant.session("s1").log(
            "search", state={"page": 1}, reward=0.5, next_state=["hit"], user_id="u"
        )

        session = tenant.session("s1").get()

        assert session is not None
        assert (session.status, session.data, session.user_id) == ("active", {}, "u")
        assert (step.step, step.session_id, step.reward) == (1, "s1", 0.5)
        assert tenant.session("s1").steps() == [step]

    def test_steps_are_read_from_one_on(self, tenant: Tenant) -> None:
        session = tenant.session("s1")
        steps = [session.log(f"do {n}") for n in range(4)]

        assert session.steps(after=2) == steps[2:]
        assert session.steps(after=9) == []

    @pytest.mark.parametrize(
        "value", [None, False, 0, "", [], {}, [None, {"größe": "日本"}], "👍🏽", -0.5, 2**53]
    )
    def test_states_of_any_kind_come_back_equal(self, tenant: Tenant, value: Any) -> None:
        step = tenant.session("s1").log("do", state=value, next_state=value)

        (read,) = tenant.session("s1").steps()

        assert read == step
        assert (read.state, type(read.next_state)) == (value, type(value))

    def test_a_step_of_an_id_is_stored_once(self, tenant: Tenant, events: list[Event]) -> None:
        session = tenant.session("s1")
        first = session.log("do", id="call-1")
        told = len(events)

        again = session.log("do it otherwise", id="call-1")

        assert again == first
        assert session.steps() == [first]
        assert len(events) == told
        with pytest.raises(ConflictError):
            tenant.session("s2").log("do", id="call-1")
        assert tenant.session("s2").get() is None

    def test_tool_calls_are_logged_as_steps_once(self, tenant: Tenant) -> None:
        turns = [
            TurnDraft(role="tool", content="orphan", tool_call_id="c9", id="r9"),
            TurnDraft(role="user", content="where is it?"),
            TurnDraft(
                role="assistant",
                tool_calls=(ToolCall("c1", "look", {"at": "map"}), ToolCall("c2", "ask", "raw")),
            ),
            TurnDraft(role="tool", content="not there", tool_call_id="c2", id="r2"),
            TurnDraft(role="tool", content="there", tool_call_id="c1", id="r1"),
            TurnDraft(role="assistant", tool_calls=(ToolCall("c1", "go", {}),)),
            TurnDraft(role="tool", content="x" * 1_100_000, tool_call_id="c1", id="r3"),
            TurnDraft(role="assistant", content="It is there."),
        ]
        session = tenant.session("s1")

        steps = session.log_calls(turns)
        again = session.log_calls(turns[1:])

        assert [(one.step, one.action, one.state, one.next_state) for one in steps] == [
            (1, "ask raw", "where is it?", "not there"),
            (2, 'look {"at":"map"}', "where is it?", "there"),
            (3, "go {}", "there", {"turn": "r3"}),
        ]
        assert again == steps == session.steps()
        assert tenant.session("s2").log_calls(turns[:3]) == []
        assert tenant.session("s2").get() is None

    def test_sessions_are_listed_newest_first_by_status(
        self, tenant: Tenant, clock: FakeClock
    ) -> None:
        for name in ("a", "b", "c"):
            tenant.session(name).start()
            clock.advance(1)
        tenant.session("b").end("failed")

        assert names(tenant.sessions()) == ["c", "b", "a"]
        assert names(tenant.sessions(limit=1)) == ["c"]
        assert names(tenant.sessions("failed")) == ["b"]
        assert names(tenant.sessions("active")) == ["c", "a"]

    @pytest.mark.parametrize("status", [s for s in SESSION_STATUSES if s != "active"])
    def test_a_session_may_end_in_every_way(self, tenant: Tenant, status: Any) -> None:
        tenant.session("s1").start()

        ended = tenant.session("s1").end(status)

        assert (ended.ended_at is None) == (status == "paused")
        assert tenant.sessions(status) == [ended]

    def test_only_a_session_that_was_started_can_end(self, tenant: Tenant) -> None:
        with pytest.raises(SessionNotFoundError, match="start it first"):
            tenant.session("s1").end()

        assert tenant.sessions() == []

    @pytest.mark.parametrize(
        ("selector", "left"),
        [
            ({"user_id": "u"}, ["other"]),
            ({"thread_id": "mine"}, ["other"]),
            ({"everything": True}, []),
        ],
        ids=str,
    )
    def test_sessions_are_forgotten_with_their_steps(
        self, tenant: Tenant, selector: dict[str, Any], left: list[str]
    ) -> None:
        tenant.session("mine").start(user_id="u")
        tenant.session("mine").log("look")
        tenant.session("mine").log("leap")
        tenant.session("other").log("look")
        rehearsed = tenant.forget(**selector, dry_run=True)

        receipt = tenant.forget(**selector)

        gone = 2 - len(left)
        assert rehearsed.counts == receipt.counts
        assert (receipt.counts["sessions"], receipt.counts["steps"]) == (gone, 1 + gone)
        assert names(tenant.sessions()) == left
        assert tenant.session("mine").steps() == []
        assert receipt.complete

    def test_sessions_of_other_tenants_are_neither_seen_nor_in_the_way(
        self, hiermem: HierMem
    ) -> None:
        ours, theirs = hiermem.tenant("acme"), hiermem.tenant("other")
        theirs.session("s1").start({"secret": 1}, user_id="u")
        theirs.session("s1").log("a secret", id="call-1")

        assert (ours.session("s1").get(), ours.session("s1").steps()) == (None, [])
        assert ours.sessions() == []
        assert not ours.session("s1").delete()
        assert ours.session("s1").log("look", id="call-1").step == 1
        ours.forget(user_id="u")
        ours.forget(everything=True)
        assert [step.action for step in theirs.session("s1").steps()] == ["a secret"]
        assert (ours.stats().sessions, ours.stats().steps) == (0, 0)
        assert (theirs.stats().sessions, theirs.stats().steps) == (1, 1)

    @pytest.mark.parametrize(
        ("action", "options", "error"),
        [
            ("", {}, InvalidInputError),
            (" \n", {}, InvalidInputError),
            (None, {}, InvalidInputError),
            ("a" * 1_048_577, {}, LimitExceededError),
            ("do", {"state": {1}}, InvalidInputError),
            ("do", {"next_state": float("inf")}, InvalidInputError),
            ("do", {"next_state": "x" * 1_100_000}, LimitExceededError),
            ("do", {"reward": "much"}, InvalidInputError),
            ("do", {"reward": float("nan")}, InvalidInputError),
            ("do", {"id": ""}, InvalidInputError),
        ],
        ids=lambda value: str(value)[:20],
    )
    def test_a_step_that_cannot_be_stored_is_refused_and_starts_nothing(
        self, tenant: Tenant, action: Any, options: dict[str, Any], error: type
    ) -> None:
        with pytest.raises(error):
            tenant.session("s1").log(action, **options)

        assert tenant.session("s1").get() is None

    def test_what_makes_no_sense_is_refused(self, tenant: Tenant) -> None:
        session: Any = tenant.session("s1")
        session.start()

        for wrong in (
            lambda: tenant.session(""),
            lambda: session.start([1]),
            lambda: session.start(user_id=""),
            lambda: session.end("active"),
            lambda: session.end("done"),
            lambda: session.end(data="x"),
            lambda: session.steps(after=-1),
            lambda: tenant.sessions("done"),  # type: ignore[arg-type]  # wrong on purpose
            lambda: tenant.sessions(limit=-1),
        ):
            with pytest.raises(InvalidInputError):
                wrong()

    def test_text_that_no_store_can_hold_is_replaced(self, tenant: Tenant) -> None:
        step = tenant.session("s1").log("a\x00", state={"k\ud800": "v\x00"})

        assert (step.action, step.state) == ("a\ufffd", {"k\ufffd": "v\ufffd"})
        assert tenant.session("s1").steps() == [step]

    def test_observers_are_told_after_each_change(
        self, tenant: Tenant, events: list[Event]
    ) -> None:
        session = tenant.session("s1")
        session.log("look")
        session.end()
        session.delete()
        session.delete()

        assert [event for event in events if isinstance(event, SessionEvent)] == [
            SessionChanged("acme", "s1", "active"),
            StepsLogged("acme", "s1", 1, 1),
            SessionChanged("acme", "s1", "completed"),
            SessionDeleted("acme", "s1"),
        ]

    def test_a_closed_memory_says_so(self, hiermem: HierMem, tenant: Tenant) -> None:
        session = tenant.session("s1")
        hiermem.close()

        for late in (
            session.start,
            session.end,
            session.delete,
            lambda: session.log("look"),
            session.steps,
            session.get,
            tenant.sessions,
            lambda: tenant.session("s2"),
        ):
            with pytest.raises(ClosedError):
                late()


def names(sessions: list[Session]) -> list[str]:
    """Return the ids of sessions, in their order."""
    return [session.id for session in sessions]
