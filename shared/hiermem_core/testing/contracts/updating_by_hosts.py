"""What must hold where an application brings a thread memory, or makes notes, of its own."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.errors import ConfigurationError, InvalidInputError
from hiermem_core.models.events import Event, UpdateFailed
from hiermem_core.models.notes import Fact, ThreadState
from hiermem_core.models.threads import ModelInfo, Profile, ThreadLoad
from hiermem_core.testing.contracts.learning_base import (
    UpdatesContract,
)
from hiermem_core.testing.contracts.samples import asked_and_answered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hiermem_core import HierMem
    from hiermem_core.models.turns import Turn

SECONDS = 30.0


class HostMemoryContract(UpdatesContract):
    """Every promise about memories and notes of the caller's own.

    A subclass gives the fixture `opened`: a function that opens a HierMem with options.
    """

    def test_resume_says_what_it_lacks(self, opened: Callable[..., HierMem]) -> None:
        with pytest.raises(ConfigurationError, match="chat_model"):
            opened().updates.resume()
        with pytest.raises(ConfigurationError, match="thread_memory"):
            opened(thread_memory=Host()).updates.resume()

    def test_a_function_of_the_callers_own_makes_notes_under_the_same_guard(
        self, opened: Callable[..., HierMem]
    ) -> None:
        events: list[Event] = []
        hiermem = opened(observer=events.append)
        thread = hiermem.tenant("acme").thread("t1")
        thread.append(asked_and_answered("abc"))
        given: list[list[int]] = []

        def make(state: ThreadState, turns: Sequence[Turn]) -> ThreadState | None:
            given.append([turn.seq for turn in turns])
            if len(given) == 1:
                thread.edit_turn(str(turns[0].id), "edited meanwhile")
            return ThreadState(f"{state.summary}{turns[0].content}", (), turns[3].seq)

        thread.learn(make)
        assert hiermem.when_idle(SECONDS)
        state = thread.state()
        thread.learn(lambda state, turns: None)
        thread.learn(lambda state, turns: ThreadState("too far", (), 99))
        assert hiermem.when_idle(SECONDS)

        failed = [event for event in events if isinstance(event, UpdateFailed)]
        assert given == [[1, 2, 3, 4, 5, 6]] * 2
        assert state == thread.state() == ThreadState("edited meanwhile", (), 4)
        assert [(event.stage, event.reason) for event in failed] == [("host", "InvalidInputError")]

    def test_a_memory_of_the_callers_own_gets_every_answer_and_may_raise(
        self, opened: Callable[..., HierMem]
    ) -> None:
        events: list[Event] = []
        host = Host()
        hiermem = opened(thread_memory=host, observer=events.append, cheap_model_id="cheap")
        thread = hiermem.tenant("acme").thread("t1")

        for number in range(3):
            thread.save_context(request={"n": number}, result=number, user_id="bob")
        assert hiermem.when_idle(SECONDS)
        host.failing = True
        thread.save_context()
        assert hiermem.when_idle(SECONDS)

        assert [saved["result"] for saved in host.saved] == [0, 1, 2]
        assert {saved["cheap_model_id"] for saved in host.saved} == {"cheap"}
        assert host.saved[0]["meta"].user_id == "bob"
        failed = [event for event in events if isinstance(event, UpdateFailed)]
        assert [(event.stage, event.reason) for event in failed] == [("host", "ZeroDivisionError")]
        assert thread.state() == ThreadState("a host's")
        thread.reset()
        assert host.resets == [("acme", "t1")]

    def test_a_memory_of_the_callers_own_without_a_method_is_refused(
        self, opened: Callable[..., HierMem]
    ) -> None:
        incomplete: Any = type("Incomplete", (), {"load": lambda self, **given: None})()

        with pytest.raises(InvalidInputError, match="save_context"):
            opened(thread_memory=incomplete)

    @pytest.mark.parametrize(
        "facts",
        [("text",), (Fact(7),), (Fact("x", 1, ("yz",)),)],  # type: ignore[arg-type]  # as a host may
        ids=["text", "number", "source"],
    )
    def test_what_is_no_notes_is_told_and_not_stored(
        self, opened: Callable[..., HierMem], facts: Any
    ) -> None:
        events: list[Event] = []
        hiermem = opened(observer=events.append, inline_updates=True)
        thread = hiermem.tenant("acme").thread("t1")
        thread.append(asked_and_answered("a"))

        thread.learn(lambda state, turns: ThreadState("x", facts, 2))

        assert [event.stage for event in events if isinstance(event, UpdateFailed)] == ["host"]
        assert thread.state() == ThreadState()

    def test_a_fact_without_sources_may_come_from_any_turn(
        self, opened: Callable[..., HierMem]
    ) -> None:
        hiermem = opened(inline_updates=True)
        thread = hiermem.tenant("acme").thread("t1")
        turns = thread.append(asked_and_answered("ab"))

        thread.learn(lambda state, turns: ThreadState("x", (Fact("y"),), 4))
        learned = thread.state().facts
        thread.append(asked_and_answered("c"))
        thread.delete_turns([str(turns[0].id)])

        assert learned == (Fact("y", 4, ((1, 2, 3, 4),)),)
        assert thread.state().facts == ()


class Host:
    """A caller's own memory."""

    def __init__(self) -> None:
        self.saved: list[dict[str, Any]] = []
        self.resets: list[tuple[str, str]] = []
        self.failing = False

    def load(
        self,
        *,
        tenant_id: str,
        thread_id: str,
        budget_tokens: int,
        model: ModelInfo,
        profile: Profile,
    ) -> ThreadLoad:
        return ThreadLoad(())

    def save_context(self, **answered: Any) -> None:
        if self.failing:
            raise ZeroDivisionError
        self.saved.append(answered)

    def get_state(self, *, tenant_id: str, thread_id: str) -> ThreadState:
        return ThreadState("a host's")

    def reset(self, *, tenant_id: str, thread_id: str) -> None:
        self.resets.append((tenant_id, thread_id))
