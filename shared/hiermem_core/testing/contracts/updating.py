"""What updates of notes must hold while everything else goes on."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from hiermem_core.errors import ThreadNotFoundError
from hiermem_core.models.events import Event, NotesLearned
from hiermem_core.models.notes import ThreadState
from hiermem_core.models.turns import TurnDraft
from hiermem_core.models.warnings import warning_of
from hiermem_core.testing.contracts.learning_base import (
    UpdatesContract,
    every,
    prompt_text,
    reply,
    seqs,
    talk,
    talk_in,
)
from hiermem_core.testing.contracts.samples import asked_and_answered
from hiermem_core.testing.models import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hiermem_core import HierMem

SECONDS = 30.0


class UpdatingContract(UpdatesContract):
    """Every promise of updates in the background.

    A subclass gives the fixture `opened`: a function that opens a HierMem with options.
    """

    def test_b16_after_a_reset_nothing_from_before_it_is_learned(
        self, opened: Callable[..., HierMem]
    ) -> None:
        model = ScriptedModel([reply("OLD NOTES.", ["an OLD fact"]), reply("New.")])
        hiermem = opened(chat_model=model)
        thread = talk(hiermem, 6)
        assert hiermem.when_idle(SECONDS)
        before = len(model.calls)

        thread.reset()
        state = thread.state()
        talk_in(thread, 3)
        assert hiermem.when_idle(SECONDS)

        learned = model.calls[before:]
        assert state == ThreadState(turn_count=12)
        assert [seqs(call) for call in learned] == [list(range(13, 19))]
        assert all("OLD" not in prompt_text(call) for call in learned)
        assert thread.state() == ThreadState("New.", (), 18)

    def test_b17_what_is_learned_during_a_reset_is_discarded(
        self, opened: Callable[..., HierMem]
    ) -> None:
        model = ScriptedModel([reply("They spoke.", ["Ada asks"])])
        hiermem = opened(chat_model=model)

        with held(model):
            thread = talk(hiermem, 3)
            assert model.waiting.wait(SECONDS)
            thread.reset()
        assert hiermem.when_idle(SECONDS)

        assert thread.state() == ThreadState(turn_count=6)
        assert len(model.calls) == 1

    def test_b18_an_exchange_that_a_reset_parts_is_not_learned(
        self, opened: Callable[..., HierMem]
    ) -> None:
        model = ScriptedModel([reply("New.")])
        hiermem = opened(chat_model=model)
        thread = hiermem.tenant("acme").thread("t1")
        thread.append([TurnDraft(role="user", content="a SECRET?")])
        thread.reset()
        thread.append([TurnDraft(role="assistant", content="the SECRET!")])
        thread.save_context()

        talk_in(thread, 4)
        assert hiermem.when_idle(SECONDS)

        learned = [seq for call in model.calls for seq in seqs(call)]
        assert learned == list(range(3, learned[-1] + 1))
        assert learned[-1] >= 8
        assert all("SECRET" not in prompt_text(call) for call in model.calls)

    @pytest.mark.parametrize("change", ["edit", "delete", "replace"])
    def test_what_is_learned_while_its_turns_change_is_discarded(
        self, opened: Callable[..., HierMem], change: str
    ) -> None:
        model = ScriptedModel([reply("The port is 8090."), reply("The port is 8091.")])
        hiermem = opened(chat_model=model)

        with held(model):
            thread = talk(hiermem, 4, profile=every(8))
            assert model.waiting.wait(SECONDS)
            turns = thread.turns()
            if change == "edit":
                thread.edit_turn(str(turns[1].id), "8091")
            elif change == "delete":
                thread.delete_turns([str(turns[1].id)])
            else:
                thread.replace(asked_and_answered("wxyz"))
        assert hiermem.when_idle(SECONDS)

        assert thread.state().summary in {"", "The port is 8091."}

    def test_b32_every_turn_is_in_the_window_covered_or_counted(
        self, opened: Callable[..., HierMem]
    ) -> None:
        model = ScriptedModel([reply("They spoke.")])
        hiermem = opened(chat_model=model)
        thread = talk(hiermem, 20)
        assert hiermem.when_idle(SECONDS)
        covered = thread.state().turn_count

        with held(model):
            talk_in(thread, 20)
            for budget in (4000, 900, 500, 300, 150, 60):
                context = thread.context(budget_tokens=budget, recall=False)
                shown = {turn.seq for turn in context.messages if turn.seq}
                missed = {turn.seq for turn in thread.turns() if turn.seq > covered} - shown
                told = warning_of(context.warnings, "turns_not_covered")
                assert (told.count if told else 0) == len(missed), budget
        assert hiermem.when_idle(SECONDS)

        context = thread.context(budget_tokens=500, recall=False)
        assert warning_of(context.warnings, "turns_not_covered") is None
        trimmed = warning_of(context.warnings, "turns_trimmed")
        assert trimmed is not None
        assert trimmed.count == 80 - len({turn.seq for turn in context.messages if turn.seq})

    def test_b34_a_burst_is_covered_with_few_calls(self, opened: Callable[..., HierMem]) -> None:
        model = ScriptedModel([reply("They spoke.")])
        hiermem = opened(chat_model=model)

        with held(model):
            thread = talk(hiermem, 200)
        assert hiermem.when_idle(SECONDS)

        assert thread.state().turn_count == 400
        assert len(model.calls) <= 400 / 6 + 1
        assert [seq for call in model.calls for seq in seqs(call)] == list(range(1, 401))

    def test_b35_a_slow_model_holds_up_nobody(self, opened: Callable[..., HierMem]) -> None:
        model = ScriptedModel([reply("They spoke.")])
        hiermem, other = opened(chat_model=model), opened()

        with held(model):
            talk(hiermem, 3)
            assert model.waiting.wait(SECONDS)
            second = talk(hiermem, 2, name="t2")
            other.tenant("acme").remember("stored meanwhile")
            other.tenant("acme").thread("t1").append(asked_and_answered("x"))
            context = hiermem.tenant("acme").thread("t1").context(budget_tokens=500)
            assert len(second.turns()) == 4
            assert len(context.messages) > 0
            assert not hiermem.when_idle(0)
        assert hiermem.when_idle(SECONDS)

    @pytest.mark.parametrize("change", ["delete", "forget", "forget and begin anew"])
    def test_b36_nothing_is_written_of_a_thread_that_went_meanwhile(
        self, opened: Callable[..., HierMem], change: str
    ) -> None:
        model = ScriptedModel([reply("They spoke.", ["Ada asks"])])
        hiermem = opened(chat_model=model)
        tenant = hiermem.tenant("acme")

        with held(model):
            thread = talk(hiermem, 3)
            assert model.waiting.wait(SECONDS)
            if change == "delete":
                thread.delete()
            else:
                tenant.forget(thread_id="t1")
            if change == "forget and begin anew":
                thread.append(asked_and_answered("xy"))
        assert hiermem.when_idle(SECONDS)

        if change == "forget and begin anew":
            assert thread.state() == ThreadState()
        else:
            with pytest.raises(ThreadNotFoundError):
                thread.state()

    def test_b38_what_was_queued_when_a_process_ended_is_learned_by_the_next_save(
        self, opened: Callable[..., HierMem]
    ) -> None:
        slow, model = ScriptedModel([reply("Late.")]), ScriptedModel([reply("They spoke.")])
        first = opened(chat_model=slow)
        with held(slow):
            talk(first, 4)
            talk(first, 4, name="t2")
            assert slow.waiting.wait(SECONDS)
            first.close(0.05)

        second = opened(chat_model=model)
        idle = second.when_idle(0)
        waiting = second.health().queue_depth
        thread = second.tenant("acme").thread("t1")
        talk_in(thread, 1)
        assert second.when_idle(SECONDS)
        resumed = second.updates.resume()
        assert second.when_idle(SECONDS)

        assert (idle, waiting, resumed) == (True, 2, 1)
        assert thread.state().turn_count == 10
        assert second.tenant("acme").thread("t2").state().turn_count == 8
        assert second.health().queue_depth == 0

    def test_resume_learns_of_one_tenant_or_of_all(self, opened: Callable[..., HierMem]) -> None:
        mute = opened()
        for name in ("ada", "bea"):
            mute.tenant(name).thread("t1").append(asked_and_answered("abc"))
            mute.tenant(name).thread("short").append(asked_and_answered("ab"))
        model = ScriptedModel([reply("They spoke.")])
        hiermem = opened(chat_model=model, strategy="sliding_window")

        one = hiermem.updates.resume("ada")
        assert hiermem.when_idle(SECONDS)
        every_one = hiermem.updates.resume()
        assert hiermem.when_idle(SECONDS)

        assert (one, every_one) == (1, 1)
        for name in ("ada", "bea"):
            assert hiermem.tenant(name).thread("t1").state().summary == "They spoke."
            assert hiermem.tenant(name).thread("short").state() == ThreadState()

    def test_e13_closing_during_an_update_does_not_hang_and_loses_nothing(
        self, opened: Callable[..., HierMem]
    ) -> None:
        model = ScriptedModel([reply("They spoke.")])
        hiermem = opened(chat_model=model)
        failures: list[BaseException] = []

        def close() -> None:
            try:
                hiermem.close(0.05)
                hiermem.close(0.05)
            except BaseException as error:  # noqa: BLE001 - a thread must hand over what it raised
                failures.append(error)

        with held(model):
            talk(hiermem, 3)
            assert model.waiting.wait(SECONDS)
            closing = [threading.Thread(target=close) for _ in range(2)]
            for thread in closing:
                thread.start()
            for thread in closing:
                thread.join(SECONDS)
            hung = [thread for thread in closing if thread.is_alive()]

        again = opened(chat_model=model, inline_updates=True)
        pending = again.tenant("acme").thread("t1").state()
        again.updates.resume()
        assert (hung, failures) == ([], [])
        assert pending == ThreadState()
        assert again.tenant("acme").thread("t1").state().turn_count == 6

    def test_closing_lets_the_running_update_end_within_the_timeout(
        self, opened: Callable[..., HierMem]
    ) -> None:
        model = ScriptedModel([reply("They spoke.")])
        hiermem = opened(chat_model=model)
        with held(model):
            talk(hiermem, 3)
            assert model.waiting.wait(SECONDS)
            closing = threading.Thread(target=hiermem.close)
            closing.start()
        closing.join(SECONDS)

        assert not closing.is_alive()
        assert opened().tenant("acme").thread("t1").state().turn_count == 6

    def test_an_update_that_asks_whether_all_is_idle_is_told_no_at_once(
        self, opened: Callable[..., HierMem]
    ) -> None:
        answers: list[bool] = []

        def asks(messages: object) -> str:
            answers.append(hiermem.when_idle())
            hiermem.tenant("acme").thread("t1").save_context()
            return reply("They spoke.")

        for is_inline in (False, True):
            hiermem = opened(chat_model=ScriptedModel([asks]), inline_updates=is_inline)
            talk(hiermem, 3, name=str(is_inline))
            assert hiermem.when_idle(SECONDS)

        assert answers == [False, False]

    def test_a_model_that_ends_its_thread_holds_up_nobody(
        self, opened: Callable[..., HierMem]
    ) -> None:
        model = ScriptedModel([SystemExit(), reply("They spoke.")])
        hiermem = opened(chat_model=model)

        talk(hiermem, 3)
        assert hiermem.when_idle(SECONDS)
        thread = talk(hiermem, 1)
        assert hiermem.when_idle(SECONDS)

        assert thread.state().turn_count >= 6

    def test_waiting_for_idleness_ends_when_it_is_closed(
        self, opened: Callable[..., HierMem]
    ) -> None:
        model = ScriptedModel([reply("They spoke.")])
        hiermem = opened(chat_model=model)
        answers: list[bool] = []

        with held(model):
            talk(hiermem, 3)
            assert model.waiting.wait(SECONDS)
            waiting = threading.Thread(target=lambda: answers.append(hiermem.when_idle()))
            waiting.start()
            hiermem.close(0.05)
            waiting.join(SECONDS)

        assert answers == [False]

    def test_an_answer_under_another_profile_is_not_lost_to_a_later_one(
        self, opened: Callable[..., HierMem]
    ) -> None:
        model = ScriptedModel([reply("They spoke.")])
        hiermem = opened(chat_model=model)

        with held(model):
            talk(hiermem, 3, name="busy")
            assert model.waiting.wait(SECONDS)
            thread = talk(hiermem, 1, profile=every(2))
            thread.save_context()
        assert hiermem.when_idle(SECONDS)

        assert thread.state().turn_count == 2

    def test_threads_are_served_first_come_first_served(
        self, opened: Callable[..., HierMem]
    ) -> None:
        events: list[Event] = []
        model = ScriptedModel([reply("They spoke.")])
        hiermem = opened(chat_model=model, observer=events.append)

        with held(model):
            for name in ("t1", "t3", "t2", "t4"):
                talk(hiermem, 3, name=name)
        assert hiermem.when_idle(SECONDS)

        learned = [event.thread_id for event in events if isinstance(event, NotesLearned)]
        assert learned == ["t1", "t3", "t2", "t4"]


@contextmanager
def held(model: ScriptedModel) -> Iterator[None]:
    """Have the model wait in each call until the block ends."""
    gate = threading.Event()
    model.gate = gate
    try:
        yield
    finally:
        model.gate = None
        gate.set()
