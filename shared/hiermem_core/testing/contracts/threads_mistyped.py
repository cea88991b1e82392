"""What a thread store does with columns of a wrong type."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hiermem_core.models.warnings import warning_of
from hiermem_core.testing.contracts.probes import spoil_turn
from hiermem_core.testing.contracts.samples import MISTYPED, asked_and_answered

if TYPE_CHECKING:
    from hiermem_core import HierMem, Thread


class MistypedTurnsContract:
    """What a thread store does with columns of a wrong type, where its engine lets them be.

    A subclass gives the fixture `hiermem`.
    """

    @pytest.fixture
    def thread(self, hiermem: HierMem) -> Thread:
        """Return a thread that does not exist yet."""
        return hiermem.tenant("acme").thread("t1")

    @pytest.mark.parametrize("columns", MISTYPED.values(), ids=MISTYPED.keys())
    def test_b9_a_turn_of_wrong_types_is_read_as_a_placeholder(
        self, thread: Thread, columns: dict[str, object]
    ) -> None:
        stored = thread.append(asked_and_answered("abcde"))
        spoil_turn(thread, 4, **columns)

        read = thread.turns()
        context = thread.context(budget_tokens=100_000)

        warning = warning_of(context.warnings, "turn_unreadable")
        assert [turn for turn in read if turn.seq != 4] == [t for t in stored if t.seq != 4]
        assert [(turn.seq, turn.id) for turn in read.unreadable] == [(4, stored[3].id)]
        assert [turn.seq for turn in context.messages] == list(range(1, 11))
        assert warning is not None
        assert warning.count == 1
