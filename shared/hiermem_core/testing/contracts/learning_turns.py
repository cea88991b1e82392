"""What every thread memory that learns notes must hold of the turns it learns."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hiermem_core.learning.prompts import parse_prompt
from hiermem_core.models.events import Event, UpdateFailed
from hiermem_core.models.notes import ThreadState
from hiermem_core.models.turns import ToolCall, TurnDraft
from hiermem_core.models.warnings import warning_of
from hiermem_core.testing.contracts.learning_base import (
    UpdatesContract,
    prompt_text,
    prompt_tokens_of,
    reply,
    seqs,
    talk,
    talk_in,
)
from hiermem_core.testing.contracts.samples import asked_and_answered
from hiermem_core.testing.models import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import HierMem
    from hiermem_core.testing.models import Scripted


class LearnedTurnsContract(UpdatesContract):
    """Every promise about which turns are learned, and what becomes of the notes when they change.

    A subclass gives the fixture `opened`: a function that opens a HierMem with options, which
    learns in the caller's thread.
    """

    def test_b21_an_answer_that_a_human_edited_is_what_is_learned(
        self, opened: Callable[..., HierMem]
    ) -> None:
        model = ScriptedModel([reply("They spoke.")])
        thread = opened(chat_model=model).tenant("acme").thread("t1")
        turns = thread.append(asked_and_answered("abc"))

        thread.edit_turn(str(turns[-1].id), "what the human wrote")
        thread.save_context(request={"of": "the model"}, result=None)

        texts = [record["text"] for record in parse_prompt(model.calls[0].messages).turns]
        assert texts[-1] == "what the human wrote"
        assert "c!" not in prompt_text(model.calls[0])

    def test_b22_nothing_of_an_edited_turn_stays_in_the_notes(
        self, opened: Callable[..., HierMem]
    ) -> None:
        first = reply("They pick the port 8090.", [("The port is 8090", [4]), ("Ada asks", [1])])
        second = reply("They pick the port 8091.", [("The port is 8091", [4])])
        model = ScriptedModel([first, second])
        thread = talk(opened(chat_model=model), 3)

        thread.edit_turn(str(thread.turns()[3].id), "The port is 8091.")
        edited = thread.context(budget_tokens=2000, recall=False)
        thread.save_context()
        learned = thread.context(budget_tokens=2000, recall=False)

        assert "8090" not in edited.notes
        assert "Ada asks" in edited.notes
        assert seqs(model.calls[1]) == list(range(1, 7))
        assert "8090" not in prompt_text(model.calls[1])
        assert "8091" in learned.notes
        assert thread.state().summary == "They pick the port 8091."

    def test_b22_a_fact_that_was_said_elsewhere_too_outlives_a_deleted_turn(
        self, opened: Callable[..., HierMem]
    ) -> None:
        said = [reply("One.", [("Ada asks", [1])]), reply("Two.", [("Ada asks", [7])])]
        thread = talk(opened(chat_model=ScriptedModel([*said, reply("Three.")])), 6)
        ids = [str(turn.id) for turn in thread.turns()]

        thread.delete_turns([ids[0]])
        after_one = thread.state()
        thread.delete_turns([ids[6]])
        after_both = thread.state()

        assert [fact.text for fact in after_one.facts] == ["Ada asks"]
        assert (after_one.summary, after_one.turn_count) == ("", 0)
        assert after_both.facts == ()

    @pytest.mark.parametrize("change", ["replace", "remove", "delete"])
    def test_what_was_learnt_from_turns_goes_with_them(
        self, opened: Callable[..., HierMem], change: str
    ) -> None:
        thread = talk(opened(chat_model=ScriptedModel([reply("They spoke.", ["Ada asks"])])), 3)
        ids = [str(turn.id) for turn in thread.turns()]

        if change == "replace":
            thread.replace(asked_and_answered("xyz"))
        elif change == "remove":
            thread.append([], removing=ids)
        else:
            thread.delete_turns(ids)

        assert thread.state() == ThreadState()

    def test_pruned_turns_stay_known_by_the_notes_and_uncovered_ones_are_not_pruned(
        self, opened: Callable[..., HierMem]
    ) -> None:
        thread = talk(opened(chat_model=ScriptedModel([reply("They spoke.", ["Ada asks"])])), 4)
        learnt = thread.state()

        report = thread.prune(max_turns=0)

        assert [turn.seq for turn in thread.turns()] == [7, 8]
        assert report.turns == 6
        assert thread.state() == learnt
        talk_in(thread, 1)
        assert thread.prune(max_turns=0).turns == 0

    def test_b25_a_backlog_is_learned_in_prompts_that_fit_and_keeps_what_was_learned(
        self, opened: Callable[..., HierMem]
    ) -> None:
        good: list[Scripted] = [reply(f"Part {n}.") for n in range(1, 7)]
        model = ScriptedModel([*good, RuntimeError("chunk 7"), reply("More.")], window=2000)
        hiermem = opened(chat_model=model)
        thread = hiermem.tenant("acme").thread("t1")
        spoken = [f"number {n} " + "word " * (n % 30) for n in range(2500)]
        thread.append(asked_and_answered(spoken))

        thread.save_context()
        six = thread.state()
        thread.save_context()

        learned = [seq for call in [*model.calls[:6], *model.calls[7:]] for seq in seqs(call)]
        counts = [prompt_tokens_of(hiermem, call) + call.max_tokens for call in model.calls]
        assert six.summary == "Part 6."
        assert six.turn_count == seqs(model.calls[5])[-1]
        assert seqs(model.calls[6]) == seqs(model.calls[7])
        assert learned == list(range(1, 5001))
        assert max(counts) <= 2000
        assert thread.state().turn_count == 5000

    @pytest.mark.parametrize("size", [3_000, 200_000])
    def test_b25_an_exchange_larger_than_the_window_is_shortened_and_never_skipped(
        self, opened: Callable[..., HierMem], size: int
    ) -> None:
        model = ScriptedModel([reply("They spoke.")], window=2000)
        hiermem = opened(chat_model=model)
        thread = hiermem.tenant("acme").thread("t1")
        result = "head " + "x " * size + "tail"
        thread.append(
            [
                TurnDraft(role="user", content="find it"),
                TurnDraft(role="assistant", tool_calls=[ToolCall("c1", "find", {"q": "it"})]),
                TurnDraft(role="tool", content=result, tool_call_id="c1"),
                TurnDraft(role="assistant", content="here it is"),
                *asked_and_answered("ab"),
            ]
        )

        thread.save_context()

        records = {r["seq"]: r for call in model.calls for r in parse_prompt(call.messages).turns}
        shortened = records[3]["text"]
        assert sorted(records) == list(range(1, 9))
        assert records[1]["text"] == "find it"
        assert shortened.startswith("head x")
        assert shortened.endswith("x tail")
        assert "characters cut" in shortened
        assert all(prompt_tokens_of(hiermem, c) + c.max_tokens <= 2000 for c in model.calls)

    def test_a_window_without_room_for_a_turn_is_told(self, opened: Callable[..., HierMem]) -> None:
        events: list[Event] = []
        model = ScriptedModel([reply("They spoke.")], window=300)

        thread = talk(opened(chat_model=model, observer=events.append), 3)

        failed = [event.reason for event in events if isinstance(event, UpdateFailed)]
        assert failed == ["window_too_small"]
        assert model.calls == []
        assert thread.state() == ThreadState()

    def test_b31_calls_without_content_are_in_the_prompt(
        self, opened: Callable[..., HierMem]
    ) -> None:
        model = ScriptedModel([reply("They spoke.")])
        thread = opened(chat_model=model).tenant("acme").thread("t1")
        call = TurnDraft(role="assistant", tool_calls=[ToolCall("c1", "book", {"seat": "14C"})])
        result = TurnDraft(role="tool", content=None, tool_call_id="c1")
        thread.append([TurnDraft(role="user", content="a seat"), call, result])
        thread.append([TurnDraft(role="assistant", content="done"), *asked_and_answered("b")])

        thread.save_context()

        records = parse_prompt(model.calls[0].messages).turns
        assert records[1]["calls"] == [{"name": "book", "args": {"seat": "14C"}}]
        assert [record["role"] for record in records[:4]] == [
            *("user", "assistant", "tool", "assistant")
        ]

    def test_system_turns_and_what_the_memory_says_are_not_learned(
        self, opened: Callable[..., HierMem]
    ) -> None:
        model = ScriptedModel([reply("They spoke of SUMMARY.")])
        thread = opened(chat_model=model).tenant("acme").thread("t1")
        thread.append([TurnDraft(role="system", content="You are a pirate.")])
        thread.append([TurnDraft(role="developer", content="Answer in rhymes.")])

        talk_in(thread, 6)

        for call in model.calls:
            assert "pirate" not in prompt_text(call)
            assert "rhymes" not in prompt_text(call)
            assert all("SUMMARY" not in r["text"] for r in parse_prompt(call.messages).turns)
        assert [seq for call in model.calls for seq in seqs(call)] == list(range(3, 13))

    def test_the_rest_of_an_exchange_that_a_reset_parts_is_seen_and_not_due(
        self, opened: Callable[..., HierMem]
    ) -> None:
        model = ScriptedModel([reply("New.")])
        hiermem = opened(chat_model=model)
        thread = hiermem.tenant("acme").thread("t1")
        thread.append([TurnDraft(role="user", content="go")])
        thread.reset()
        thread.append([TurnDraft(role="assistant", content=f"step {n}") for n in range(8)])
        found = hiermem.updates.resume()
        thread.append([TurnDraft(role="assistant", content=f"more {n}") for n in range(8)])

        again = hiermem.updates.resume()
        left = hiermem.updates.resume()
        context = thread.context(budget_tokens=40, recall=False)
        talk_in(thread, 3)

        assert (found, again, left) == (1, 1, 0)
        assert warning_of(context.warnings, "turns_not_covered") is None
        assert [seqs(call) for call in model.calls] == [list(range(18, 24))]
