"""What every context must hold, whatever the transcript, the budget and the counter."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hiermem_core.errors import BudgetExceededError
from hiermem_core.models.turns import ToolCall, Turn, TurnDraft
from hiermem_core.models.warnings import warning_of
from hiermem_core.testing.contracts.counters import shared
from hiermem_core.testing.contracts.probes import database_bytes
from hiermem_core.testing.contracts.soundness import (
    MARKER,
    assert_is_cut_of,
    assert_providers_accept,
    body_of,
    left_out_of,
    opens,
    owners_of,
    units_of,
    without_memory,
)
from hiermem_core.testing.contracts.transcripts import Request, requests
from hiermem_core.threads.drafts import as_drafts
from hiermem_core.threads.placing import counted
from hiermem_core.tokens.counters import REPLY_TOKENS, tool_schema_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hiermem_core import HierMem, Thread
    from hiermem_core.models.context import Context
    from hiermem_core.protocols import TokenCounter

LEAVING_OUT = frozenset(
    {
        *("turns_trimmed", "turns_not_covered", "leading_turns_dropped"),
        *("orphan_results_dropped", "blank_turns_dropped"),
    }
)
"""Warnings whose count is of turns that the context does not show."""

_names = count()


@dataclass(frozen=True)
class Built:
    """A context, and every turn it could have shown: the stored ones and the current ones."""

    context: Context
    turns: Sequence[Turn]

    @property
    def shown(self) -> list[Turn]:
        """The messages that are turns of the thread, outside the standing ones."""
        return [turn for turn in body_of(self.context.messages) if turn.seq]

    @property
    def was_cut(self) -> bool:
        """Tell whether the current exchange had to be shortened."""
        return warning_of(self.context.warnings, "over_budget") is not None


class ContextPropertiesContract:
    """Properties P1 to P9 and P11 of contexts, on random transcripts.

    A subclass gives the fixture `hiermem`.
    """

    @pytest.fixture
    def hiermem(self) -> Any:
        """Give a HierMem with the counter under test."""
        raise NotImplementedError

    @shared
    @given(request_=requests())
    def test_p1_the_total_is_within_the_budget_or_the_error_tells_the_figures(
        self, hiermem: HierMem, request_: Request
    ) -> None:
        thread = stored(hiermem, request_.turns)
        try:
            context = thread.context(budget_tokens=request_.budget, **request_.arguments)
        except BudgetExceededError as error:
            assert error.available == request_.budget
            assert error.needed > error.available
            assert sum(error.parts.values()) == error.needed
        else:
            tools = request_.arguments["tools"]
            assert recount(hiermem.counter, context, tools) <= request_.budget

    @shared
    @given(request_=requests())
    def test_p2_the_sections_sum_to_a_recount_of_the_output(
        self, hiermem: HierMem, request_: Request
    ) -> None:
        context = built(hiermem, request_).context

        sections = sum(section.tokens for section in context.receipt.sections)
        assert context.receipt.total == sections
        assert sections == recount(hiermem.counter, context, request_.arguments["tools"])

    @shared
    @given(request_=requests())
    def test_p3_no_result_is_without_its_call_and_no_call_without_its_stored_results(
        self, hiermem: HierMem, request_: Request
    ) -> None:
        one = built(hiermem, request_)

        owners = owners_of(body_of(one.turns))
        shown = {turn.seq for turn in one.shown}
        calls = {(turn.seq, call.id) for turn in one.shown for call in turn.tool_calls}
        for turn in body_of(one.turns):
            if turn.role == "tool":
                owner = (owners.get(turn.seq), turn.tool_call_id)
                assert (turn.seq in shown) == (owner in calls)

    @shared
    @given(request_=requests(recall=False))
    def test_p4_seqs_ascend_and_units_are_contiguous_up_to_the_newest(
        self, hiermem: HierMem, request_: Request
    ) -> None:
        one = built(hiermem, request_)

        shown = [turn.seq for turn in one.shown]
        units = units_of(one.turns)
        kept = [unit for unit in units if {turn.seq for turn in unit} & set(shown)]
        whole = kept[:-1] if one.was_cut else kept
        assert all(left < right for left, right in pairwise(shown))
        assert kept == units[len(units) - len(kept) :]
        assert bool(kept) == bool(units)
        for unit in whole:
            hidden = left_out_of(unit, newest=unit is units[-1])
            assert {turn.seq for turn in unit} - hidden <= set(shown)
        assert set(shown) <= {turn.seq for unit in kept for turn in unit}

    @shared
    @given(request_=requests(recall=False))
    def test_p4_the_next_older_unit_would_not_fit(
        self, hiermem: HierMem, request_: Request
    ) -> None:
        thread = stored(hiermem, request_.turns)
        tools = request_.arguments["tools"]
        arguments = {"current": "?", "tools": tools, "on_over_budget": "raise", "recall": False}
        whole = thread.context(budget_tokens=1_000_000, **arguments)
        # A thread memory may charge a call of the newest stored exchange that is then taken out.
        assume(warning_of(whole.warnings, "pending_calls_dropped") is None)
        total = whole.receipt.total

        for tenths in range(3, 10):
            budget = total * tenths // 10
            try:
                one = built_of(thread, Request(request_.turns, budget, arguments))
            except BudgetExceededError:
                continue
            assert one.context.receipt.total + tokens_left_out(one, hiermem.counter) > budget

    @shared
    @given(request_=requests(recall=False))
    def test_p5_the_current_user_turn_is_there_whole_or_marked(
        self, hiermem: HierMem, request_: Request
    ) -> None:
        one = built(hiermem, request_)

        users = [turn for turn in one.turns if opens(turn)]
        assume(users)
        (view,) = [turn for turn in one.shown if turn.seq == users[-1].seq]
        assert view.content == users[-1].content or MARKER.search(view.content or "")
        assert view.content != users[-1].content or list(view.parts) == list(users[-1].parts)

    @shared
    @given(request_=requests(recall=False), more=st.integers(1, 40) | st.integers(1, 2000))
    def test_p6_a_larger_budget_never_keeps_fewer_exchanges(
        self, hiermem: HierMem, request_: Request, more: int
    ) -> None:
        less = built(hiermem, request_)

        larger = built(hiermem, replace(request_, budget=request_.budget + more), raises=True)

        assert exchanges_in(larger) >= exchanges_in(less)

    @pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "current"])
    def test_p6_no_step_of_the_budget_takes_an_exchange_away(
        self, hiermem: HierMem, *, is_stored: bool
    ) -> None:
        asks = TurnDraft(role="assistant", tool_calls=[ToolCall("a", "find", {"q": "word " * 60})])
        found = TurnDraft(role="tool", content="found " * 30, tool_call_id="a")
        earlier = [TurnDraft(role="user", content=f"hi {number}") for number in range(4)]
        newest = [TurnDraft(role="user", content="do it, please"), asks, found]
        thread = stored(hiermem, [*earlier, *newest] if is_stored else earlier)
        current = None if is_stored else newest
        given: dict[str, Any] = {"current": current, "recall": False}
        total = thread.context(budget_tokens=1_000_000, **given).receipt.total

        kept = []
        for budget in range(total + 20):
            try:
                messages = thread.context(budget_tokens=budget, **given).messages
            except BudgetExceededError:
                continue
            kept.append(sum(opens(turn) for turn in messages))

        assert kept == sorted(kept)
        assert {1, 5} <= set(kept)

    @shared
    @given(request_=requests())
    def test_p7_every_turn_is_in_the_window_or_counted_once_in_a_warning(
        self, hiermem: HierMem, request_: Request
    ) -> None:
        one = built(hiermem, request_)

        shown = [turn for turn in one.context.messages if turn.seq]
        counted_out = sum(w.count for w in one.context.warnings if w.code in LEAVING_OUT)
        assert len(shown) + counted_out == len(one.turns)

    @shared
    @given(request_=requests())
    def test_p8_building_twice_gives_equal_contexts_and_writes_nothing(
        self, hiermem: HierMem, request_: Request
    ) -> None:
        thread = stored(hiermem, request_.turns)
        before = database_bytes(hiermem)

        one, other = (outcome(thread, request_) for _ in range(2))

        assert one == other
        assert database_bytes(hiermem) == before

    @shared
    @given(request_=requests())
    def test_p9_providers_accept_the_output(self, hiermem: HierMem, request_: Request) -> None:
        assert_providers_accept(built(hiermem, request_).context.messages)

    @shared
    @given(request_=requests())
    def test_p11_shortened_text_is_a_marked_head_of_the_original_by_whole_graphemes(
        self, hiermem: HierMem, request_: Request
    ) -> None:
        thread = stored(hiermem, request_.turns)
        whole = dict(request_.arguments, on_over_budget="truncate")

        for budget in tight_budgets(thread, whole):
            one = built_of(thread, Request(request_.turns, budget, whole))
            originals = {turn.seq: turn for turn in one.turns}
            for view in one.shown:
                if without_memory(view) != originals[view.seq].content:
                    assert_is_cut_of(view, originals[view.seq])


def stored(hiermem: HierMem, turns: Sequence[TurnDraft]) -> Thread:
    """Return a fresh thread of these turns, none of which waits for its vector."""
    tenant = hiermem.tenant("acme")
    thread = tenant.thread(f"t{next(_names)}")
    thread.append(turns)
    tenant.memory.wait_for_index()
    return thread


def built(hiermem: HierMem, request: Request, *, raises: bool = False) -> Built:
    """Build what is asked on a fresh thread; pass over requests that cannot be met."""
    thread = stored(hiermem, request.turns)
    if raises:
        return built_of(thread, request)
    try:
        return built_of(thread, request)
    except BudgetExceededError:
        assume(condition=False)
        raise


def built_of(thread: Thread, request: Request) -> Built:
    """Build what is asked."""
    context = thread.context(budget_tokens=request.budget, **request.arguments)
    turns = thread.turns()
    drafts = as_drafts(request.arguments.get("current"))
    current = [
        replace(counted(draft, {}), seq=thread.info().last_seq + place)
        for place, draft in enumerate(drafts, 1)
    ]
    return Built(context, [*turns, *current])


def outcome(thread: Thread, request: Request) -> Context | dict[str, Any]:
    """Return the context, or the facts of the error."""
    try:
        return thread.context(budget_tokens=request.budget, **request.arguments)
    except BudgetExceededError as error:
        return vars(error)


def recount(counter: TokenCounter, context: Context, tools: Sequence[dict[str, Any]]) -> int:
    """Return the tokens of a context and its tools, counted without any stored count."""
    schemas = sum(tool_schema_tokens(counter.count, schema) for schema in tools)
    bare = [replace(turn, token_counts={}) for turn in context.messages]
    return sum(counter.count_turn(turn) for turn in bare) + schemas + REPLY_TOKENS


def tokens_left_out(one: Built, counter: TokenCounter) -> int:
    """Return what the newest unit that is not shown would take; plenty if all is shown."""
    shown = {turn.seq for turn in one.shown}
    older = [unit for unit in units_of(one.turns) if not {turn.seq for turn in unit} & shown]
    if not older:
        return 1_000_000
    hidden = left_out_of(older[-1], newest=False)
    return sum(counter.count_turn(turn) for turn in older[-1] if turn.seq not in hidden)


def exchanges_in(one: Built) -> int:
    """Return how many exchanges a context shows."""
    return sum(opens(turn) for turn in one.shown)


def tight_budgets(thread: Thread, arguments: dict[str, Any]) -> list[int]:
    """Return budgets that make the current exchange be cut, a little and a lot."""
    least, most = 0, thread.context(budget_tokens=1_000_000, **arguments).receipt.total
    while most - least > 1:
        middle = (least + most) // 2
        try:
            thread.context(budget_tokens=middle, **arguments)
        except BudgetExceededError:
            least = middle
        else:
            most = middle
    return [most + step for step in (0, 1, 3, 8, 20, 60)]
