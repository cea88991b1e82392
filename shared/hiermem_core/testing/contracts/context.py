"""What the assembler must hold, with every counter."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.errors import BudgetExceededError
from hiermem_core.models.queries import TurnHit
from hiermem_core.models.threads import Profile, ThreadOptions
from hiermem_core.models.turns import ToolCall, TurnDraft
from hiermem_core.models.warnings import warning_of
from hiermem_core.testing.contracts.figures import (
    contents,
    filler,
    seqs,
    system_turn,
    tokens,
    tool,
    warning,
    windows_of,
)
from hiermem_core.testing.contracts.probes import database_bytes, reads_of
from hiermem_core.testing.contracts.samples import asked_and_answered, said
from hiermem_core.testing.contracts.soundness import MARKER, assert_is_cut_of
from hiermem_core.tokens.counters import REPLY_TOKENS, tool_schema_tokens

if TYPE_CHECKING:
    from hiermem_core import HierMem, Thread

PLENTY = 1_000_000


class AssemblerContract:
    """Every promise of a context that is built with one counter.

    A subclass gives the fixture `hiermem`. What a counter that fails changes is in
    `FailingCounterContract`.
    """

    @pytest.fixture
    def hiermem(self) -> Any:
        """Give an empty HierMem with the counter under test."""
        raise NotImplementedError

    @pytest.fixture
    def thread(self, hiermem: HierMem) -> Thread:
        """Give the handle of a thread that does not exist yet."""
        return hiermem.tenant("acme").thread("t1")

    def test_c1_a_thread_over_budget_is_trimmed_and_the_warning_tells_what_went(
        self, hiermem: HierMem, thread: Thread
    ) -> None:
        stored = thread.append(asked_and_answered(f"topic {n} " + "word " * n for n in range(30)))

        context = thread.context(budget_tokens=300, recall=False)

        gone = stored[: len(stored) - len(context.messages)]
        trimmed = warning(context, "turns_trimmed")
        assert context.receipt.total <= 300
        assert list(context.messages) == stored[len(gone) :]
        assert (trimmed.count, trimmed.tokens) == (len(gone), tokens(hiermem.counter, gone))
        assert trimmed.detail["exchanges"] == len(gone) // 2
        assert trimmed.detail["roles"] == Counter(turn.role for turn in gone)
        assert (trimmed.detail["first_seq"], trimmed.detail["last_seq"]) == (1, len(gone))

    def test_c1_a_turn_is_shown_or_trimmed_and_a_shown_one_is_not_recalled_too(
        self, thread: Thread
    ) -> None:
        stored = thread.append(asked_and_answered(f"topic {n} " + "word " * n for n in range(30)))

        recalled = 0
        for budget in range(60, 1_200, 57):
            context = thread.context(current="which topic?", budget_tokens=budget)
            shown = seqs(context)[:-1]
            hits = {hit.seq for hit in context.hits if isinstance(hit, TurnHit)}
            trimmed = warning_of(context.warnings, "turns_trimmed")
            assert context.receipt.total <= budget
            assert not hits & set(shown)
            assert len(shown) + (trimmed.count if trimmed else 0) == len(stored)
            recalled += len(hits)
        assert recalled

    def test_c1_nothing_is_said_when_all_fits(self, thread: Thread) -> None:
        stored = thread.append(asked_and_answered("abc"))

        context = thread.context(budget_tokens=PLENTY)

        assert list(context.messages) == stored
        assert context.warnings == ()

    @pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "current"])
    def test_c2_a_user_turn_above_the_budget_is_shortened_and_marked(
        self, thread: Thread, *, is_stored: bool
    ) -> None:
        question = "many words " * 2_500
        if is_stored:
            thread.append(said([question]))
        current = None if is_stored else question

        context = thread.context(current=current, budget_tokens=100)
        with pytest.raises(BudgetExceededError) as refused:
            thread.context(current=current, budget_tokens=100, on_over_budget="raise")

        (view,) = context.messages
        told = warning(context, "over_budget")
        assert context.receipt.total <= 100
        assert (view.content or "").startswith("many words ")
        assert_is_cut_of(view, replace(view, content=question))
        assert told.detail["available"] == refused.value.available == 100
        assert told.detail["needed"] == refused.value.needed > 2_500

    @pytest.mark.parametrize("policy", ["truncate", "raise"])
    def test_c3_a_system_prompt_above_the_budget_is_named_by_the_error(
        self, thread: Thread, policy: Any
    ) -> None:
        thread.append(said(["hello"]))

        with pytest.raises(BudgetExceededError, match="system") as refused:
            thread.context(system="rule " * 500, budget_tokens=100, on_over_budget=policy)

        parts = refused.value.parts
        assert max(parts, key=parts.__getitem__) == "system"
        assert parts["system"] > refused.value.available == 100

    def test_c4_system_prompt_and_tools_leave_the_window_only_the_rest(
        self, hiermem: HierMem, thread: Thread
    ) -> None:
        thread.append(asked_and_answered(f"topic {n} " + "word " * 10 for n in range(40)))
        system = filler(300, lambda text: hiermem.counter.count_turn(system_turn(text)))
        schema = {"name": "find", "description": filler(400, lambda text: tool(hiermem, text))}

        context = thread.context(system=system, tools=[schema], budget_tokens=1_000)

        window = context.messages[1:]
        assert context.messages[0].content == system
        assert context.receipt.tokens("system") == 300
        assert context.receipt.tokens("tools") == tool_schema_tokens(hiermem.counter.count, schema)
        assert context.receipt.tokens("tools") == 400
        assert 200 < tokens(hiermem.counter, window) <= 300
        assert context.receipt.total <= 1_000

    def test_c5_system_and_pinned_turns_are_kept_in_order_when_all_else_goes(
        self, thread: Thread
    ) -> None:
        asked = asked_and_answered(f"topic {n} " + "word " * 20 for n in range(50))
        kept = [
            TurnDraft(role="system", content="rule one"),
            TurnDraft(role="user", content="never forget this", pinned=True),
            TurnDraft(role="system", content="rule two"),
        ]
        stored = thread.append([*kept[:1], *asked[:4], *kept[1:2], *asked[4:8], *kept[2:]])
        stored += thread.append(asked[8:])

        context = thread.context(budget_tokens=250, recall=False)
        recalling = thread.context(budget_tokens=250)

        assert contents(context)[:3] == ["rule one", "never forget this", "rule two"]
        assert list(context.messages[3:]) == stored[-len(context.messages[3:]) :]
        assert warning_of(context.warnings, "turns_trimmed") is not None
        assert context.receipt.total <= 250
        assert recalling.messages[:3] == context.messages[:3]
        assert recalling.receipt.total <= 250

    def test_c6_two_calls_and_their_results_go_or_stay_together(
        self, hiermem: HierMem, thread: Thread
    ) -> None:
        asks = TurnDraft(role="assistant", tool_calls=[ToolCall(i, "find", {}) for i in "ab"])
        answers = [TurnDraft(role="tool", content=f"row {i}", tool_call_id=i) for i in "ab"]
        thread.append([*said(["find both"]), asks, *answers, *asked_and_answered(["thanks"])])
        total = thread.context(budget_tokens=PLENTY, recall=False).receipt.total
        least = REPLY_TOKENS + tokens(hiermem.counter, thread.turns(last=2))

        kept = windows_of(thread, range(least, total + 1))

        assert kept == {(5, 6), (1, 2, 3, 4, 5, 6)}

    def test_c6_a_result_that_came_exchanges_later_ties_them_together(
        self, hiermem: HierMem, thread: Thread
    ) -> None:
        asks = TurnDraft(role="assistant", tool_calls=[ToolCall("slow", "find", {})])
        answer = TurnDraft(role="tool", content="at last", tool_call_id="slow")
        thread.append(asked_and_answered(["first"]))
        thread.append([*said(["start"]), asks, *asked_and_answered(["meanwhile"]), answer])
        thread.append(asked_and_answered(["thanks"]))
        least = REPLY_TOKENS + tokens(hiermem.counter, thread.turns(last=2))
        total = thread.context(budget_tokens=PLENTY).receipt.total

        kept = windows_of(thread, range(least, total + 1))

        assert kept == {(8, 9), tuple(range(3, 10)), tuple(range(1, 10))}

    def test_c6_a_call_id_used_again_ties_a_result_to_the_nearest_call_only(
        self, hiermem: HierMem, thread: Thread
    ) -> None:
        asks = TurnDraft(role="assistant", tool_calls=[ToolCall("again", "find", {})])
        answer = TurnDraft(role="tool", content="found", tool_call_id="again")
        for number in range(4):
            thread.append([*said([f"find {number}"]), asks, answer])
        least = REPLY_TOKENS + tokens(hiermem.counter, thread.turns(last=3))
        total = thread.context(budget_tokens=PLENTY).receipt.total

        kept = windows_of(thread, range(least, total + 1))

        assert kept == {tuple(range(first, 13)) for first in (1, 4, 7, 10)}

    def test_c7_a_call_that_waits_for_its_result_is_kept_in_the_current_exchange(
        self, thread: Thread
    ) -> None:
        asks = TurnDraft(role="assistant", tool_calls=[ToolCall("a", "find", {"q": 1})])
        thread.append([*asked_and_answered(["before"]), *said(["find"]), asks])

        context = thread.context(budget_tokens=PLENTY)

        assert context.messages[-1].tool_calls == (ToolCall("a", "find", {"q": 1}),)
        assert context.warnings == ()

    def test_c7_a_result_without_any_call_is_left_out_and_counted(self, thread: Thread) -> None:
        orphan = TurnDraft(role="tool", content="found", tool_call_id="nobody")
        stored = thread.append([*said(["find"]), orphan, *asked_and_answered(["next"])])

        context = thread.context(budget_tokens=PLENTY)

        dropped = warning(context, "orphan_results_dropped")
        assert seqs(context) == (1, 3, 4)
        assert (dropped.count, dropped.ids) == (1, (stored[1].id,))

    def test_c7_a_call_that_never_got_its_result_leaves_an_earlier_exchange(
        self, thread: Thread
    ) -> None:
        asks = TurnDraft(role="assistant", content="so", tool_calls=[ToolCall("a", "find", {})])
        thread.append([*said(["find"]), asks, *said(["never mind"])])

        context = thread.context(budget_tokens=PLENTY)

        assert [turn.tool_calls for turn in context.messages] == [(), (), ()]
        assert warning(context, "pending_calls_dropped").detail["calls"] == 1

    def test_c7_a_call_without_result_leaves_an_exchange_that_a_result_ties_to_the_current(
        self, thread: Thread
    ) -> None:
        asks = TurnDraft(role="assistant", tool_calls=[ToolCall(i, "find", {}) for i in "ab"])
        answer = TurnDraft(role="tool", content="found", tool_call_id="b")
        thread.append([*said(["find"]), asks, *said(["and?"]), answer])

        context = thread.context(budget_tokens=PLENTY)

        assert seqs(context) == (1, 2, 3, 4)
        assert [call.id for call in context.messages[1].tool_calls] == ["b"]
        assert warning(context, "pending_calls_dropped").detail["calls"] == 1

    def test_c7_a_result_given_as_current_keeps_the_call_of_an_earlier_exchange(
        self, thread: Thread
    ) -> None:
        asks = TurnDraft(role="assistant", tool_calls=[ToolCall("slow", "find", {})])
        thread.append([*said(["find"]), asks, *said(["are you there?"])])
        result = TurnDraft(role="tool", content="found", tool_call_id="slow")

        context = thread.context(current=result, budget_tokens=PLENTY)

        assert [turn.role for turn in context.messages] == ["user", "assistant", "user", "tool"]
        assert context.warnings == ()

    @pytest.mark.parametrize("cap", [0, 2])
    def test_the_cap_counts_the_exchanges_beside_the_current_one(
        self, thread: Thread, cap: int
    ) -> None:
        thread.append(asked_and_answered("abcdef"))
        profile = Profile(working_memory=ThreadOptions(window_exchanges=cap))

        context = thread.context(current="now", profile=profile, budget_tokens=PLENTY)

        questions = [turn.content for turn in context.messages if turn.role == "user"]
        assert questions == [*[f"{text}?" for text in "abcdef"[6 - cap :]], "now"]

    def test_c8_a_greeting_before_the_first_user_turn_is_never_shown(self, thread: Thread) -> None:
        greeting = TurnDraft(role="assistant", content="How can I help?")
        rules = TurnDraft(role="system", content="be kind")
        thread.append([rules, greeting, *asked_and_answered(["one", "two"])])
        total = thread.context(budget_tokens=PLENTY).receipt.total

        for budget in range(total // 2, total + 100):
            context = thread.context(budget_tokens=budget)
            assert [turn.role for turn in context.messages[:2]] == ["system", "user"]
            assert warning(context, "leading_turns_dropped").count == 1

    def test_c9_a_huge_tool_result_is_cut_and_its_call_and_the_user_turn_stay_whole(
        self, hiermem: HierMem, thread: Thread
    ) -> None:
        text = filler(50_000, hiermem.counter.count)
        asks = TurnDraft(role="assistant", tool_calls=[ToolCall("a", "find", {"q": "all"})])
        result = TurnDraft(role="tool", content=text, tool_call_id="a")
        stored = thread.append([*said(["find everything there is"]), asks, result])

        context = thread.context(budget_tokens=1_000)

        user, call, view = context.messages
        assert (user, call) == (stored[0], stored[1])
        assert view.tool_call_id == "a"
        assert_is_cut_of(view, stored[2])
        assert 700 < context.receipt.total <= 1_000
        assert warning(context, "tool_result_truncated").ids == (stored[2].id,)
        assert warning(context, "over_budget").detail["available"] == 1_000

    def test_c9_the_longest_result_is_cut_first(self, thread: Thread) -> None:
        asks = TurnDraft(role="assistant", tool_calls=[ToolCall(i, "find", {}) for i in "ab"])
        short = TurnDraft(role="tool", content="short " * 40, tool_call_id="a")
        long = TurnDraft(role="tool", content="long " * 4_000, tool_call_id="b")
        stored = thread.append([*said(["find"]), asks, short, long])

        context = thread.context(budget_tokens=500)

        assert list(context.messages[:3]) == stored[:3]
        assert MARKER.search(context.messages[3].content or "")

    def test_c15_a_picture_in_the_thread_takes_its_flat_estimate_of_the_budget(
        self, thread: Thread
    ) -> None:
        picture = {"type": "media", "kind": "image", "base64": "QUJD" * 100_000}
        thread.append([TurnDraft(role="user", content=None, parts=[picture])])

        context = thread.context(budget_tokens=5_000)

        assert context.warnings == ()
        assert 0 < context.receipt.tokens("current") < 5_000

    def test_c16_large_arguments_take_their_share_of_the_budget(
        self, hiermem: HierMem, thread: Thread
    ) -> None:
        text = filler(900, hiermem.counter.count)
        asks = TurnDraft(role="assistant", content="", tool_calls=[ToolCall("a", "f", {"q": text})])
        done = TurnDraft(role="tool", content="done", tool_call_id="a")
        thread.append([*said(["do"]), asks, done, *asked_and_answered(["next"])])

        context = thread.context(budget_tokens=900)

        assert seqs(context) == (4, 5)
        assert warning(context, "turns_trimmed").tokens > 900

    def test_c18_the_rows_read_do_not_grow_with_the_thread(self, hiermem: HierMem) -> None:
        tenant = hiermem.tenant("acme")
        short, long = tenant.thread("short"), tenant.thread("long")
        last = asked_and_answered(f"topic {n} " + "word " * 8 for n in range(50))
        long.append(asked_and_answered("x" for _ in range(4_950)))
        for thread in (short, long):
            thread.append(last)
            thread.context(budget_tokens=400, recall=False)

        reads = []
        for thread in (short, long):
            with reads_of(hiermem) as read:
                thread.context(budget_tokens=400, recall=False)
            reads.append(read)

        assert (short.info().turns, long.info().turns) == (100, 10_000)
        assert reads[0].rows == reads[1].rows > 0
        assert reads[1].steps <= reads[0].steps * 1.05

    def test_c20_an_edited_turn_is_counted_anew(self, hiermem: HierMem, thread: Thread) -> None:
        thread.append(said(["short", "last"]))
        text = "now much longer " * 20
        before = thread.context(budget_tokens=PLENTY).receipt.total

        edited = thread.edit_turn(str(thread.turns()[0].id), text)

        grown = tokens(hiermem.counter, [edited]) - tokens(hiermem.counter, said(["short"]))
        after = thread.context(budget_tokens=PLENTY)
        assert after.receipt.total == before + grown
        assert contents(thread.context(budget_tokens=after.receipt.total - 1)) == ["last"]
        assert sum(thread.info().tokens.values()) == tokens(hiermem.counter, thread.turns())

    @pytest.mark.parametrize("recall", [True, False])
    def test_c21_a_hundred_builds_are_equal_and_store_nothing(
        self, hiermem: HierMem, thread: Thread, *, recall: bool
    ) -> None:
        stored = thread.append(asked_and_answered(f"topic {n}" for n in range(20)))
        before = database_bytes(hiermem)

        contexts = [
            thread.context(current="topic 3?", system="be kind", budget_tokens=200, recall=recall)
            for _ in range(100)
        ]

        assert bool(contexts[0].hits) == recall
        assert all(context == contexts[0] for context in contexts)
        assert database_bytes(hiermem) == before
        assert thread.turns() == stored

    def test_an_unknown_thread_with_a_current_turn_holds_only_that(self, thread: Thread) -> None:
        context = thread.context(current="hello", system="be kind", budget_tokens=100)

        assert contents(context) == ["be kind", "hello"]
