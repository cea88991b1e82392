"""What every thread memory that learns notes must hold."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.learning.prompts import parse_prompt
from hiermem_core.models.calls import CallMeta, Completion
from hiermem_core.models.events import Event, FactsDropped, NotesLearned, UpdateFailed
from hiermem_core.models.notes import ThreadState
from hiermem_core.models.threads import Profile, ThreadOptions
from hiermem_core.models.turns import ToolCall, TurnDraft
from hiermem_core.testing.contracts.learning_base import (
    Guard,
    UpdatesContract,
    echo,
    every,
    reply,
    seqs,
    talk,
    talk_in,
)
from hiermem_core.testing.contracts.samples import asked_and_answered
from hiermem_core.testing.models import ScriptedModel
from hiermem_core.tokens.counters import FunctionCounter

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import HierMem
    from hiermem_core.testing.models import Scripted

UNREADABLE = {
    "it raises": RuntimeError("no network"),
    "empty": "",
    "prose": "They spoke about a trip to Kyoto.",
    "a refusal": "I'm sorry, but I can't help with that.",
    "cut JSON": '{"summary": "They spoke about a trip", "facts": [{"text": "They land in Kyo',
    "a wrong type": '{"summary": ["They spoke"], "facts": []}',
    "facts of a wrong type": '{"summary": "They spoke.", "facts": "none"}',
    "an empty object": '{"summary": "", "facts": [], "retract": []}',
    "two objects": '{"summary": "One.", "facts": []} or {"summary": "Two.", "facts": []}',
    "no completion": Completion(None),  # type: ignore[arg-type]  # a model of a user's own
}


class LearningContract(UpdatesContract):
    """Every promise of learning: when, by whom, and what replies do to the notes.

    A subclass gives the fixture `opened`: a function that opens a HierMem with options, which
    learns in the caller's thread.
    """

    @pytest.mark.parametrize("bad", UNREADABLE.values(), ids=UNREADABLE)
    def test_b19_a_reply_that_cannot_be_read_changes_nothing_and_all_turns_are_learned_next(
        self, opened: Callable[..., HierMem], bad: Scripted
    ) -> None:
        model = ScriptedModel([reply("They greet.", ["Ada is new"]), bad, reply("All is known.")])
        events: list[Event] = []
        thread = talk(opened(chat_model=model, observer=events.append), 3)
        old = thread.state()

        talk_in(thread, 3)
        kept = thread.state()
        talk_in(thread, 1)

        failures = [event for event in events if isinstance(event, UpdateFailed)]
        assert kept == old
        assert [(event.stage, bool(event.reason)) for event in failures] in (
            [("call", True)],
            [("reply", True)],
        )
        assert seqs(model.calls[1]) == list(range(7, 13))
        assert seqs(model.calls[2]) == list(range(7, 15))
        assert thread.state().turn_count == 14
        assert thread.state().facts == old.facts

    def test_b20_an_update_is_due_by_the_sixth_turn_and_never_before_the_answer(
        self, opened: Callable[..., HierMem]
    ) -> None:
        model = ScriptedModel([reply("They spoke.")])
        thread = opened(chat_model=model).tenant("acme").thread("t1")
        turns = asked_and_answered("abc")

        thread.append(turns[:5])
        thread.save_context()
        after_five = len(model.calls)
        thread.append([TurnDraft(role="assistant", tool_calls=[ToolCall("c1", "find", {})])])
        thread.save_context()
        with_a_call = len(model.calls)
        thread.append([TurnDraft(role="tool", content="found", tool_call_id="c1"), turns[5]])
        thread.save_context()

        assert (after_five, with_a_call, len(model.calls)) == (0, 0, 1)
        assert seqs(model.calls[0]) == list(range(1, 9))

    def test_b23_a_denied_call_is_not_made_and_told_and_made_once_it_is_allowed(
        self, opened: Callable[..., HierMem]
    ) -> None:
        guard, model = Guard(is_open=False), ScriptedModel([reply("They spoke.")])
        events: list[Event] = []
        hiermem = opened(chat_model=model, usage_guard=guard, observer=events.append)

        thread = talk(hiermem, 3)
        denied = [event for event in events if isinstance(event, UpdateFailed)]
        calls_before, state_before = len(model.calls), thread.state()
        guard.is_open = True
        talk_in(thread, 1)

        assert [(event.stage, event.reason) for event in denied] == [("guard", "usage_denied")]
        assert (calls_before, state_before) == (0, ThreadState())
        assert seqs(model.calls[0]) == list(range(1, 9))
        assert len(model.calls) == 1
        (meta, estimated), (recorded, completion) = guard.checked[-1], guard.recorded[-1]
        assert meta == recorded == model.calls[0].meta
        assert completion.input_tokens + model.calls[0].max_tokens == estimated
        assert completion.output_tokens == hiermem.counter.count(completion.text)

    def test_a_guard_that_raises_denies_and_one_that_cannot_record_changes_nothing(
        self, opened: Callable[..., HierMem]
    ) -> None:
        guard, model = Guard(), ScriptedModel([reply("They spoke.")])
        events: list[Event] = []
        guard.broken = {"check"}
        thread = talk(opened(chat_model=model, usage_guard=guard, observer=events.append), 3)
        calls = len(model.calls)
        guard.broken = {"record"}
        talk_in(thread, 1)

        failed = [event for event in events if isinstance(event, UpdateFailed)]
        assert [(event.stage, event.reason) for event in failed] == [("guard", "ZeroDivisionError")]
        assert (calls, len(model.calls)) == (0, 1)
        assert thread.state().turn_count == 8

    def test_b24_the_cheap_model_is_called_and_told_what_for(
        self, opened: Callable[..., HierMem]
    ) -> None:
        model = ScriptedModel([reply("They spoke.")])
        hiermem = opened(chat_model=model, cheap_model_id="of the settings")
        own = Profile("own", cheap_model_id="of the profile")
        given = CallMeta("MEMORY_WORKING", "other", "other", trace_id="trace-7")

        talk(hiermem, 3, meta=given, user_id="bob")
        talk(hiermem, 3, name="t2", profile=own)

        first, second = model.calls
        assert (first.model_id, second.model_id) == ("of the settings", "of the profile")
        assert first.meta == CallMeta("MEMORY_WORKING", "acme", "t1", "bob", "trace-7")
        assert second.meta.thread_id == "t2"
        assert second.meta.trace_id

    def test_b27_a_model_that_echoes_what_it_reads_does_not_make_the_notes_grow(
        self, opened: Callable[..., HierMem]
    ) -> None:
        hiermem = opened(chat_model=ScriptedModel([echo]))
        thread = hiermem.tenant("acme").thread("t1")

        for number in range(50):
            context = thread.context(current="Where do I live?", budget_tokens=1000)
            spoken = context.messages[-1].content or ""
            thread.append([TurnDraft(role="user", content=spoken)])
            thread.append([TurnDraft(role="assistant", content="I live in Lund.")])
            thread.save_context(profile=every(2))
            assert len(thread.state().facts) <= 1, number

        (fact,) = thread.state().facts
        assert fact.text == "I live in Lund."
        assert "<" not in fact.text

    def test_b28_a_new_fact_joins_the_others_and_a_retracted_one_goes(
        self, opened: Callable[..., HierMem]
    ) -> None:
        nine = [f"Fact number {n}" for n in range(8)] + ["The port is 8090"]
        joined = reply("Two.", ["The port is 8091"])
        retracted = reply("Three.", ["The port is 8092"], retract=[9, 10, 77, -1, 0])
        thread = talk(opened(chat_model=ScriptedModel([reply("One.", nine), joined, retracted])), 3)

        talk_in(thread, 3)
        ten = [fact.text for fact in thread.state().facts]
        talk_in(thread, 3)

        assert ten == [*nine, "The port is 8091"]
        assert [fact.text for fact in thread.state().facts] == [*nine[:-1], "The port is 8092"]

    def test_b29_the_fifty_facts_confirmed_last_remain(
        self, opened: Callable[..., HierMem]
    ) -> None:
        replies = [reply(f"{n}.", [f"Fact {n}-{i}" for i in range(6)]) for n in range(10)]
        events: list[Event] = []
        hiermem = opened(chat_model=ScriptedModel(replies), observer=events.append)

        thread = talk(hiermem, 30)

        dropped = sum(event.count for event in events if isinstance(event, FactsDropped))
        kept = [fact.text for fact in thread.state().facts]
        assert dropped == 10
        assert kept == [f"Fact {n}-{i}" for n in range(10) for i in range(6)][10:]

    def test_b30_an_update_without_new_turns_makes_no_call(
        self, opened: Callable[..., HierMem]
    ) -> None:
        model = ScriptedModel([reply("They spoke.")])
        hiermem = opened(chat_model=model)
        thread = talk(hiermem, 3)

        thread.save_context()
        thread.save_context(profile=every(1))
        resumed = hiermem.updates.resume()

        assert len(model.calls) == 1
        assert resumed == 0

    def test_the_old_notes_are_given_to_the_model(self, opened: Callable[..., HierMem]) -> None:
        model = ScriptedModel([reply("They greet.", ["Ada is new", "Bea is not"]), reply("More.")])

        talk(opened(chat_model=model), 6)

        prompt = parse_prompt(model.calls[1].messages)
        assert prompt.summary == "They greet."
        assert prompt.facts == ("Ada is new", "Bea is not")

    def test_an_empty_summary_does_not_replace_the_old_one(
        self, opened: Callable[..., HierMem]
    ) -> None:
        model = ScriptedModel([reply("They greet."), reply("", ["Ada is new"])])

        thread = talk(opened(chat_model=model), 6)

        assert thread.state().summary == "They greet."
        assert thread.state().turn_count == 12

    def test_what_is_learned_is_told_without_content(self, opened: Callable[..., HierMem]) -> None:
        events: list[Event] = []
        model = ScriptedModel([reply("They greet.", ["Ada is new"])])

        talk(opened(chat_model=model, observer=events.append), 3)

        learned = [event for event in events if isinstance(event, NotesLearned)]
        assert learned == [NotesLearned("acme", "t1", turns=6, turn_count=6, facts=1)]

    def test_after_five_failures_a_thread_is_left_alone_until_new_turns_come(
        self, opened: Callable[..., HierMem]
    ) -> None:
        model = ScriptedModel([RuntimeError("no network")])
        hiermem = opened(chat_model=model)
        thread = talk(hiermem, 3)
        before = hiermem.health()

        for _ in range(9):
            thread.save_context()
        parked, health = len(model.calls), hiermem.health()
        talk_in(thread, 1)

        assert parked == 5
        assert (before.queue_depth, before.dead_jobs) == (1, 0)
        assert (health.queue_depth, health.dead_jobs) == (0, 1)
        assert len(model.calls) == 6
        assert hiermem.health().queue_depth == 1

    def test_an_explicit_resume_tries_what_was_given_up(
        self, opened: Callable[..., HierMem]
    ) -> None:
        failures: list[Scripted] = [RuntimeError("no network")] * 5
        model = ScriptedModel([*failures, reply("They spoke.")])
        hiermem = opened(chat_model=model)
        thread = talk(hiermem, 3)
        for _ in range(9):
            thread.save_context()

        found = hiermem.updates.resume()

        assert found == 1
        assert thread.state().turn_count == 6
        assert hiermem.health().dead_jobs == 0

    def test_a_reply_of_which_nothing_can_be_kept_leaves_the_turns_due(
        self, opened: Callable[..., HierMem]
    ) -> None:
        events: list[Event] = []
        model = ScriptedModel([reply("", ["<memory> all of it"], [99]), reply("They spoke.")])

        thread = talk(opened(chat_model=model, observer=events.append), 4)

        failed = [event for event in events if isinstance(event, UpdateFailed)]
        assert [(event.stage, event.reason) for event in failed] == [("reply", "empty")]
        assert seqs(model.calls[1]) == list(range(1, 9))
        assert thread.state().summary == "They spoke."

    def test_a_counter_that_raises_stops_no_learning(self, opened: Callable[..., HierMem]) -> None:
        def count(text: str) -> int:
            if "Bea" in text:
                raise ValueError
            return len(text)

        model = ScriptedModel([reply("They spoke.")])
        hiermem = opened(chat_model=model, counter=FunctionCounter(count, id="picky"))

        assert talk(hiermem, 3).state().turn_count == 6

    def test_a_window_of_the_size_of_the_notes_goes_on_learning(
        self, opened: Callable[..., HierMem]
    ) -> None:
        long = "They spoke about the harbour and the weather there. " * 30
        model = ScriptedModel([reply(long)], window=900)

        thread = talk(opened(chat_model=model), 12)

        assert thread.state().turn_count == 24

    def test_under_the_sliding_window_nothing_is_learned(
        self, opened: Callable[..., HierMem]
    ) -> None:
        model = ScriptedModel([reply("They spoke.")])
        hiermem = opened(chat_model=model)
        window = Profile("window", ThreadOptions(strategy="sliding_window"))

        thread = talk(hiermem, 6, profile=window)
        calls = len(model.calls)
        talk(opened(chat_model=model, strategy="sliding_window"), 6, name="t2")

        assert (calls, len(model.calls)) == (0, 0)
        assert thread.state() == ThreadState()

    def test_a_profile_changes_how_often_is_learned(self, opened: Callable[..., HierMem]) -> None:
        model = ScriptedModel([reply("They spoke.")])

        talk(opened(chat_model=model), 6, profile=every(2))

        assert [seqs(call) for call in model.calls] == [[n, n + 1] for n in range(1, 13, 2)]

    @pytest.mark.parametrize("number", [0, -1])
    def test_a_profile_that_cannot_be_is_told_and_raises_nothing(
        self, opened: Callable[..., HierMem], number: int
    ) -> None:
        events: list[Event] = []
        hiermem = opened(chat_model=ScriptedModel([""]), observer=events.append)
        odd: Any = ThreadOptions(strategy="unheard of")  # type: ignore[arg-type]  # as asked

        talk(hiermem, 1, profile=every(number))
        talk(hiermem, 1, profile=Profile("odd", odd))

        reasons = [event.reason for event in events if isinstance(event, UpdateFailed)]
        assert reasons == ["InvalidInputError", "ConfigurationError"]

    @pytest.mark.parametrize("given", [{"profile": "x"}, {"meta": {"kind": "x"}}])
    def test_arguments_that_cannot_be_are_told_and_raise_nothing(
        self, opened: Callable[..., HierMem], given: Any
    ) -> None:
        events: list[Event] = []
        hiermem = opened(chat_model=ScriptedModel([""]), observer=events.append)

        talk(hiermem, 1, **given)

        failed = [event for event in events if isinstance(event, UpdateFailed)]
        assert [(event.stage, event.reason) for event in failed] == [("enqueue", "AttributeError")]

    def test_without_a_chat_model_the_summary_buffer_says_that_it_cannot_learn(
        self, opened: Callable[..., HierMem]
    ) -> None:
        events: list[Event] = []
        hiermem = opened(strategy="summary_buffer", observer=events.append)

        talk(hiermem, 3)

        reasons = [event.reason for event in events if isinstance(event, UpdateFailed)]
        assert reasons == ["no_chat_model"]
