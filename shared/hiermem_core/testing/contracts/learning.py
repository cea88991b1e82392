"""What every thread memory that learns notes must hold."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.errors import UsageDeniedError
from hiermem_core.learning.prompts import parse_prompt
from hiermem_core.models.calls import CallMeta, Completion
from hiermem_core.models.events import Event, FactsDropped, NotesLearned, UpdateFailed
from hiermem_core.models.notes import ThreadState
from hiermem_core.models.plain import dump_json
from hiermem_core.models.threads import Profile, ThreadOptions
from hiermem_core.models.turns import ToolCall, TurnDraft
from hiermem_core.testing.contracts.samples import asked_and_answered
from hiermem_core.testing.models import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hiermem_core import HierMem, Thread
    from hiermem_core.models.calls import PromptMessage
    from hiermem_core.testing.models import ModelCall, Scripted

NAMES = ("Ada", "Bea", "Cem", "Dia", "Eli")

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


class LearningContract:
    """Every promise of learning notes from stored turns.

    A subclass gives the fixture `opened`: a function that opens a HierMem with options, which
    learns in the caller's thread.
    """

    @pytest.fixture
    def opened(self) -> Callable[..., HierMem]:
        """Give a function that opens the same location with other options."""
        raise NotImplementedError

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
        found = hiermem.updates.resume()
        talk_in(thread, 1)

        assert parked == 5
        assert (before.queue_depth, before.dead_jobs) == (1, 0)
        assert (health.queue_depth, health.dead_jobs) == (0, 1)
        assert found == 0
        assert len(model.calls) == 6
        assert hiermem.health().queue_depth == 1

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
        odd: Any = ThreadOptions(strategy="unheard of")  # type: ignore[arg-type]

        talk(hiermem, 1, profile=every(number))
        talk(hiermem, 1, profile=Profile("odd", odd))

        reasons = [event.reason for event in events if isinstance(event, UpdateFailed)]
        assert reasons == ["InvalidInputError", "ConfigurationError"]

    def test_without_a_chat_model_the_summary_buffer_says_that_it_cannot_learn(
        self, opened: Callable[..., HierMem]
    ) -> None:
        events: list[Event] = []
        hiermem = opened(strategy="summary_buffer", observer=events.append)

        talk(hiermem, 3)

        reasons = [event.reason for event in events if isinstance(event, UpdateFailed)]
        assert reasons == ["no_chat_model"]


@dataclass
class Guard:
    """A usage guard that allows calls while it is open."""

    is_open: bool = True
    broken: set[str] = field(default_factory=set)
    checked: list[tuple[CallMeta, int]] = field(default_factory=list)
    recorded: list[tuple[CallMeta, Any]] = field(default_factory=list)

    def check(self, meta: CallMeta, estimated_tokens: int) -> None:
        self.checked.append((meta, estimated_tokens))
        if "check" in self.broken:
            raise ZeroDivisionError
        if not self.is_open:
            raise UsageDeniedError

    def record(self, meta: CallMeta, completion: Completion) -> None:
        if "record" in self.broken:
            raise ZeroDivisionError
        self.recorded.append((meta, completion))


def reply(
    summary: str, facts: Iterable[str | tuple[str, list[int]]] = (), retract: Sequence[int] = ()
) -> str:
    """Return a good reply."""
    stated = [f if isinstance(f, str) else {"text": f[0], "seqs": f[1]} for f in facts]
    return dump_json({"summary": summary, "facts": stated, "retract": list(retract)})


def echo(messages: Sequence[PromptMessage]) -> str:
    """Reply with everything that was read, in every form it may be repeated."""
    prompt = parse_prompt(messages)
    said = [r["text"] for r in prompt.turns if r["role"] == "assistant"]
    numbered = [f"{n}. {text}" for n, text in enumerate(prompt.facts, 1)]
    rendered = [r["text"] for r in prompt.turns if "<memory>" in r["text"]]
    lines = messages[-1].content.splitlines()
    facts = [*said, *prompt.facts, *numbered, *rendered, *lines]
    return reply(prompt.summary or "They talk.", facts)


def every(turns: int) -> Profile:
    """Return a profile under which so many turns are due."""
    return Profile("often", ThreadOptions(strategy="summary_buffer", update_every_turns=turns))


def talk(hiermem: HierMem, exchanges: int, *, name: str = "t1", **answered: Any) -> Thread:
    """Return a thread of so many exchanges, each of them learned from."""
    return talk_in(hiermem.tenant("acme").thread(name), exchanges, **answered)


def talk_in(thread: Thread, exchanges: int, **answered: Any) -> Thread:
    """Add so many exchanges to a thread, each of them learned from."""
    for number in range(exchanges):
        thread.append(asked_and_answered([NAMES[number % len(NAMES)]]))
        thread.save_context(**answered)
    return thread


def seqs(call: ModelCall) -> list[int]:
    """Return the seqs of the turns in a prompt."""
    return [record["seq"] for record in parse_prompt(call.messages).turns]


def prompt_text(call: ModelCall) -> str:
    """Return what a prompt says, as one text."""
    return "\n".join(message.content for message in call.messages)


def prompt_tokens_of(hiermem: HierMem, call: ModelCall) -> int:
    """Return the tokens of a prompt, framing included, counted apart from the library."""
    texts = [text for message in call.messages for text in (message.role, message.content)]
    return sum(map(hiermem.counter.count, texts)) + 3 * len(call.messages) + 3
