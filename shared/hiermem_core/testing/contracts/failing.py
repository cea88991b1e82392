"""What must hold when a counter fails."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.models.turns import TurnDraft
from hiermem_core.testing.contracts.samples import asked_and_answered, said
from hiermem_core.tokens.counters import (
    REPLY_TOKENS,
    ApproximateCounter,
    FunctionCounter,
    tool_schema_tokens,
)

if TYPE_CHECKING:
    from hiermem_core import HierMem, Thread
    from hiermem_core.models.context import Context
    from hiermem_core.models.warnings import ContextWarning
    from hiermem_core.protocols import TokenCounter

POISON = "poison"


@dataclass(frozen=True)
class OwnCounter:
    """A user's own counter of characters, which returns `failure` where a text is poison."""

    failure: Any
    id: str = "failing"

    def count(self, text: str) -> Any:
        """Return the characters of a text."""
        return self.failure if POISON in text else len(text)

    def count_turn(self, turn: TurnDraft) -> Any:
        """Return the characters of a turn's content."""
        return self.count(turn.content or "")


def function_counter(failure: Any) -> FunctionCounter:
    """Return a counter by a function that returns or raises `failure` where a text is poison."""

    def count(text: str) -> Any:
        if POISON not in text:
            return len(text)
        if failure is RuntimeError:
            raise RuntimeError(text)
        return failure

    return FunctionCounter(count, id="failing")


FAILING: dict[str, TokenCounter] = {
    "a function that raises": function_counter(RuntimeError),
    "a function that returns -1": function_counter(-1),
    "a function that returns True": function_counter(failure=True),
    "a function that returns None": function_counter(None),
    "a counter that returns -1": OwnCounter(-1),
    "a counter that returns True": OwnCounter(failure=True),
    "a counter that returns 1.5": OwnCounter(1.5),
    "a counter that returns text": OwnCounter("7"),
}


class FailingCounterContract:
    """What a context promises when its counter raises, or returns what is no count.

    A subclass gives the fixture `hiermem`.
    """

    @pytest.fixture(params=list(FAILING.values()), ids=list(FAILING))
    def counter(self, request: pytest.FixtureRequest) -> TokenCounter:
        """Give a counter that fails on one text, in each way there is."""
        counter: TokenCounter = request.param
        return counter

    @pytest.fixture
    def hiermem(self, counter: TokenCounter) -> Any:
        """Give an empty HierMem with this counter."""
        raise NotImplementedError

    @pytest.fixture
    def thread(self, hiermem: HierMem) -> Thread:
        """Give a thread of ten exchanges."""
        thread = hiermem.tenant("acme").thread("t1")
        thread.append(asked_and_answered(f"topic {n} " + "word " * 20 for n in range(10)))
        return thread

    @pytest.mark.parametrize("budget", [40, 100, 1_000])
    def test_c19_a_stored_turn_that_cannot_be_counted_is_estimated_and_told(
        self, thread: Thread, budget: int
    ) -> None:
        thread.append(said([f"{POISON} " * 30]))

        context = thread.context(budget_tokens=budget)

        assert_is_estimated(context, budget)

    def test_c19_a_current_turn_that_cannot_be_counted_is_estimated_and_told(
        self, thread: Thread
    ) -> None:
        context = thread.context(current=POISON, budget_tokens=100)

        assert context.messages[-1].content == POISON
        assert_is_estimated(context, 100)

    def test_c19_a_system_prompt_that_cannot_be_counted_is_estimated_and_told(
        self, thread: Thread
    ) -> None:
        assert_is_estimated(thread.context(system=POISON, budget_tokens=200), 200)

    def test_c19_a_tool_that_cannot_be_counted_is_estimated_and_told(self, thread: Thread) -> None:
        schema = {"name": POISON}

        context = thread.context(tools=[schema], budget_tokens=200)

        extra = tool_schema_tokens(ApproximateCounter().count, schema)
        assert_is_estimated(context, 200 - extra)

    def test_c19_a_pinned_turn_that_cannot_be_counted_is_estimated_and_told(
        self, thread: Thread
    ) -> None:
        thread.append([TurnDraft(role="user", content=POISON, pinned=True)])

        context = thread.context(budget_tokens=200)

        assert context.messages[0].content == POISON
        assert_is_estimated(context, 200)

    def test_c19_an_exchange_that_is_left_out_by_an_estimate_is_told_too(
        self, thread: Thread
    ) -> None:
        thread.append(asked_and_answered([f"{POISON} " * 200]))
        thread.append(asked_and_answered(["last"]))

        context = thread.context(budget_tokens=100)

        assert [turn.content for turn in context.messages] == ["last?", "last!"]
        assert len(failures_told(context)) == 1
        assert context.receipt.total <= 100

    def test_c19_what_can_be_counted_gives_no_warning(self, thread: Thread) -> None:
        context = thread.context(budget_tokens=500)

        assert failures_told(context) == []
        assert context.receipt.counter == "failing"

    def test_c19_the_next_call_asks_the_counter_again(self, thread: Thread) -> None:
        thread.context(current=POISON, budget_tokens=100)

        assert thread.context(budget_tokens=500).receipt.counter == "failing"


def assert_is_estimated(context: Context, budget: int) -> None:
    """Hold that a context was fitted by the estimator and says so once."""
    estimator = ApproximateCounter()
    total = sum(estimator.count_turn(turn) for turn in context.messages) + REPLY_TOKENS
    assert context.messages
    assert total <= budget
    assert len(failures_told(context)) == 1
    assert context.receipt.counter == estimator.id
    assert context.receipt.exact is False


def failures_told(context: Context) -> list[ContextWarning]:
    """Return the warnings that a counter failed."""
    return [warning for warning in context.warnings if warning.code == "counter_failed"]
