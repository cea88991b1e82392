"""What every thread memory must hold."""
# ruff: noqa: D102, SLF001 - a test's name says what it holds; it looks below the public face

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.context.assembler import ContextAssembler
from hiermem_core.errors import InvalidInputError, ThreadNotFoundError
from hiermem_core.models.threads import ModelInfo, Profile, ThreadLoad, ThreadOptions
from hiermem_core.models.turns import ToolCall, TurnDraft
from hiermem_core.models.warnings import warning_of
from hiermem_core.testing.contracts.probes import database_bytes
from hiermem_core.testing.contracts.samples import asked_and_answered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hiermem_core import HierMem, Thread
    from hiermem_core.models.notes import ThreadState
    from hiermem_core.models.turns import Turn
    from hiermem_core.protocols import ThreadMemory

MODEL = ModelInfo("any", 100_000)


@dataclass(frozen=True)
class Doubling:
    """A caller's own memory that takes no heed of the budget: it returns up to twice of it."""

    memory: ThreadMemory

    def load(self, *, budget_tokens: int, **arguments: Any) -> ThreadLoad:
        return self.memory.load(budget_tokens=2 * budget_tokens, **arguments)

    def save_context(self, **arguments: Any) -> None:
        self.memory.save_context(**arguments)

    def get_state(self, **arguments: Any) -> ThreadState:
        return self.memory.get_state(**arguments)

    def reset(self, **arguments: Any) -> None:
        self.memory.reset(**arguments)


class ThreadMemoryContract:
    """Every promise of `ThreadMemory.load`.

    A subclass gives the fixtures `hiermem` and `memory`.
    """

    @pytest.fixture
    def hiermem(self) -> Any:
        """Give an empty HierMem."""
        raise NotImplementedError

    @pytest.fixture
    def memory(self, hiermem: HierMem) -> ThreadMemory:
        """Give the memory under test, over the threads of `hiermem`."""
        raise NotImplementedError

    @pytest.fixture
    def thread(self, hiermem: HierMem) -> Thread:
        """Give a thread of 40 exchanges with tool calls in every fourth."""
        thread = hiermem.tenant("acme").thread("t1")
        for number in range(40):
            thread.append(exchange(number))
        return thread

    def test_b10_a_hundred_loads_are_equal_and_write_nothing(
        self, hiermem: HierMem, memory: ThreadMemory, thread: Thread
    ) -> None:
        before = database_bytes(hiermem)

        loads = [load(memory, thread, budget=300) for _ in range(100)]

        assert all(one == loads[0] for one in loads)
        assert loads[0].window
        assert database_bytes(hiermem) == before

    def test_b12_the_window_is_a_run_of_whole_exchanges_that_ends_with_the_current(
        self, hiermem: HierMem, memory: ThreadMemory, thread: Thread
    ) -> None:
        stored = thread.turns()
        total = tokens(hiermem, stored)

        kept = []
        for budget in range(0, total + 50, max(1, total // 60)):
            window = load(memory, thread, budget=budget).window
            assert list(window) == stored[-len(window) :]
            assert window[0].role == "user"
            kept.append(len(window))

        assert kept == sorted(kept)
        assert kept[0] == len(exchange(39))
        assert kept[-1] == len(stored)

    def test_b12_the_window_stays_within_the_budget_once_the_current_exchange_fits(
        self, hiermem: HierMem, memory: ThreadMemory, thread: Thread
    ) -> None:
        least = tokens(hiermem, thread.turns(last=len(exchange(39))))

        for budget in range(least, least + 400, 7):
            window = load(memory, thread, budget=budget).window
            assert tokens(hiermem, window) <= budget

    def test_b12_what_the_window_leaves_out_is_counted(
        self, memory: ThreadMemory, thread: Thread
    ) -> None:
        stored = thread.turns()

        for budget in (0, 100, 300, 900):
            loaded = load(memory, thread, budget=budget)
            left_out = max(
                warning.count
                for warning in loaded.warnings
                if warning.code in {"turns_trimmed", "turns_not_covered"}
            )
            assert loaded.notes or left_out == len(stored) - len(loaded.window)

    def test_b13_a_memory_that_returns_twice_the_budget_is_trimmed_and_told(
        self, hiermem: HierMem, memory: ThreadMemory, thread: Thread
    ) -> None:
        counter = hiermem.counter
        greedy = Doubling(memory)
        assembler = ContextAssembler(
            hiermem._services.database,
            greedy,
            counter=counter,
            window_exchanges=None,
            tell=lambda event: None,
        )

        context = assembler.build(
            tenant_id="acme", thread_id="t1", budget_tokens=400, model=MODEL, profile=Profile()
        )

        stored = thread.turns()
        gone = stored[: -len(context.messages)]
        trimmed = warning_of(context.warnings, "turns_trimmed")
        assert context.receipt.total <= 400
        assert [turn.seq for turn in context.messages] == [turn.seq for turn in stored[len(gone) :]]
        assert trimmed is not None
        assert (trimmed.count, trimmed.tokens) == (len(gone), tokens(hiermem, gone))

    def test_the_current_exchange_is_returned_whole_even_above_the_budget(
        self, memory: ThreadMemory, thread: Thread
    ) -> None:
        window = load(memory, thread, budget=1).window

        assert list(window) == thread.turns(last=len(exchange(39)))

    @pytest.mark.parametrize("cap", [0, 1, 7])
    def test_at_most_the_capped_number_of_earlier_exchanges_is_returned(
        self, memory: ThreadMemory, thread: Thread, cap: int
    ) -> None:
        loaded = load(memory, thread, budget=100_000, cap=cap)

        openings = [turn for turn in loaded.window if turn.role == "user"]
        beyond = warning_of(loaded.warnings, "turns_not_covered")
        assert len(openings) == cap + 1
        assert warning_of(loaded.warnings, "turns_trimmed") is None
        assert loaded.notes or beyond is not None

    def test_a_negative_cap_is_refused(self, memory: ThreadMemory, thread: Thread) -> None:
        with pytest.raises(InvalidInputError):
            load(memory, thread, budget=100, cap=-1)

    def test_an_unknown_thread_and_a_foreign_one_raise_the_same_error(
        self, hiermem: HierMem, memory: ThreadMemory, thread: Thread
    ) -> None:
        texts = set()
        for name in ("foreign", "nobody"):
            with pytest.raises(ThreadNotFoundError) as missing:
                load(memory, hiermem.tenant(name).thread(thread.id), budget=100)
            texts.add(str(missing.value))

        assert len(texts) == 1

    def test_the_turns_of_a_window_ascend(self, memory: ThreadMemory, thread: Thread) -> None:
        window = load(memory, thread, budget=500).window

        assert all(one.seq < other.seq for one, other in pairwise(window))


def exchange(number: int) -> list[TurnDraft]:
    """Return the exchange of a number; every fourth asks a tool, each has its own length."""
    asked, answered = asked_and_answered([f"question {number} " + "word " * (number % 7)])
    if number % 4 != 3:
        return [asked, answered]
    call = TurnDraft(role="assistant", tool_calls=[ToolCall("again", "find", {"n": number})])
    result = TurnDraft(role="tool", content=f"found {number}", tool_call_id="again")
    return [asked, call, result, answered]


def load(
    memory: ThreadMemory, thread: Thread, *, budget: int, cap: int | None = None
) -> ThreadLoad:
    """Load a thread."""
    return memory.load(
        tenant_id=thread.tenant_id,
        thread_id=thread.id,
        budget_tokens=budget,
        model=MODEL,
        profile=Profile(working_memory=ThreadOptions(window_exchanges=cap)),
    )


def tokens(hiermem: HierMem, turns: Sequence[Turn]) -> int:
    """Return the tokens of turns, counted anew."""
    return sum(hiermem.counter.count_turn(turn) for turn in turns)
