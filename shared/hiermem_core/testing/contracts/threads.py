"""What every store of threads must hold."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from datetime import timedelta
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.errors import (
    InvalidInputError,
    ThreadNotFoundError,
    TurnConflictError,
    VersionConflictError,
)
from hiermem_core.models.turns import Origin, ToolCall, Turn, TurnDraft, source_of_role
from hiermem_core.models.warnings import warning_of
from hiermem_core.testing.clocks import FakeClock
from hiermem_core.testing.contracts.probes import database_bytes, spoil_turn
from hiermem_core.testing.contracts.samples import (
    CONSTRUCTOR,
    ODD_PARTS,
    RICH_TURNS,
    TAGGED,
    UNDECODABLE,
    asked_and_answered,
    said,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hiermem_core import HierMem, Thread


class ThreadStoreContract:
    """Every promise of a thread store that needs no second process.

    A subclass gives the fixture `hiermem`.
    """

    @pytest.fixture
    def clock(self) -> FakeClock:
        """Give the clock that `hiermem` must be opened with."""
        return FakeClock()

    @pytest.fixture
    def hiermem(self, clock: FakeClock) -> Any:
        """Give an empty HierMem on the store under test."""
        raise NotImplementedError

    @pytest.fixture
    def thread(self, hiermem: HierMem) -> Thread:
        """Give the handle of a thread that does not exist yet."""
        return hiermem.tenant("acme").thread("t1")

    def test_b1_batches_of_eight_threads_are_contiguous_and_without_gap(
        self, thread: Thread
    ) -> None:
        def append_batches(worker: int) -> None:
            for batch in range(5):
                thread.append(said(f"{worker}.{batch}.{place}" for place in range(3)))

        with ThreadPoolExecutor(8) as workers:
            list(workers.map(append_batches, range(8)))

        turns = thread.turns()
        assert [turn.seq for turn in turns] == list(range(1, 8 * 5 * 3 + 1))
        assert_batches_are_whole(turns, batches=8 * 5, size=3)

    def test_b2_a_repeated_append_leaves_one_copy_and_returns_it(self, thread: Thread) -> None:
        batch = [TurnDraft(role="user", content="a", id="1"), TurnDraft(role="user", id="2")]
        first = thread.append(batch, expected_seq=0)
        thread.append(said(["later"]))

        again = thread.append(batch, expected_seq=0)

        assert again == first
        assert [turn.content for turn in thread.turns()] == ["a", None, "later"]

    def test_b2_only_what_is_new_in_a_repeated_batch_is_stored(self, thread: Thread) -> None:
        one, two, three = (TurnDraft(role="user", content=c, id=c) for c in "abc")
        thread.append([one, two])

        thread.append([two, three, three])

        assert [turn.content for turn in thread.turns()] == ["a", "b", "c"]

    def test_b2_an_id_twice_in_a_replace_leaves_one_copy(self, thread: Thread) -> None:
        one, two = (TurnDraft(role="user", content=c, id=c) for c in "ab")
        thread.append([one])

        returned = thread.replace([one, two, one, two])

        assert returned == thread.turns()
        assert [turn.content for turn in thread.turns()] == ["a", "b"]

    def test_an_id_that_stands_for_other_content_conflicts_and_stores_nothing(
        self, thread: Thread
    ) -> None:
        thread.append([TurnDraft(role="user", content="a", id="1")])

        with pytest.raises(TurnConflictError) as conflict:
            thread.append([*said(["new"]), TurnDraft(role="user", content="b", id="1")])

        assert conflict.value.turn_id == "1"
        assert [turn.content for turn in thread.turns()] == ["a"]

    def test_b3_of_two_runs_that_expect_one_seq_one_succeeds(self, thread: Thread) -> None:
        thread.append(said("abcd"))
        start = Barrier(2)

        def run(name: str) -> Turn | VersionConflictError:
            start.wait()
            try:
                return thread.append(said([name]), expected_seq=4)[0]
            except VersionConflictError as conflict:
                return conflict

        with ThreadPoolExecutor(2) as workers:
            outcomes = list(workers.map(run, ["left", "right"]))

        (won,) = [outcome for outcome in outcomes if isinstance(outcome, Turn)]
        (lost,) = [outcome for outcome in outcomes if not isinstance(outcome, Turn)]
        assert (lost.expected, lost.actual) == (4, 5)
        assert thread.turns(after=4) == [won]

    def test_b3_zero_is_an_expectation_too(self, thread: Thread) -> None:
        thread.append(said("a"), expected_seq=0)

        with pytest.raises(VersionConflictError):
            thread.append(said("b"), expected_seq=0)

        assert len(thread.turns()) == 1

    def test_b4_order_is_append_order_whatever_the_clock_says(
        self, thread: Thread, clock: FakeClock
    ) -> None:
        for step, text in ((0, "a"), (0, "b"), (-3600, "c"), (-1, "d"), (7200, "e")):
            clock.advance(step)
            thread.append(said([text]))
        old = replace(said(["f"])[0], created_at=clock.now() - timedelta(days=9))
        thread.append([old])

        assert "".join(turn.content or "" for turn in thread.turns()) == "abcdef"
        assert "".join(turn.content or "" for turn in thread.turns(last=3)) == "def"

    @pytest.mark.parametrize("draft", RICH_TURNS, ids=lambda draft: f"{draft.role}")
    def test_b6_a_turn_is_read_back_as_it_was_given(self, thread: Thread, draft: TurnDraft) -> None:
        (stored,) = thread.append([draft])

        (read,) = thread.turns()

        assert read == stored
        assert facts_of(read) == facts_of(as_stored(draft, stored))
        assert type_names(read.metadata) == type_names(draft.metadata)
        assert type_names(read.parts) == type_names(tuple(draft.parts))

    @pytest.mark.parametrize("value", [CONSTRUCTOR, TAGGED], ids=["constructor", "own tag"])
    def test_b7_data_shaped_like_a_serialised_object_stays_plain_data(
        self, thread: Thread, value: dict[str, Any]
    ) -> None:
        text = '{"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {}}'
        draft = TurnDraft(
            role="assistant",
            content=text,
            parts=[{"type": "opaque", "value": value}, value | {"type": "constructor"}],
            tool_calls=[ToolCall("c", "f", value)],
            metadata={"saved": value},
            origin=Origin("langchain", "ai", text),
        )
        thread.append([draft])

        (read,) = thread.turns()

        assert (read.content, read.metadata) == (text, {"saved": value})
        assert list(read.parts) == [{"type": "text", "text": text}, *draft.parts]
        assert list(read.tool_calls) == list(draft.tool_calls)
        assert read.origin == draft.origin
        assert type_names(read.metadata) == type_names({"saved": value})

    @pytest.mark.parametrize("write", ["append", "replace"])
    def test_b8_an_empty_batch_or_a_replace_by_none_changes_nothing(
        self, hiermem: HierMem, thread: Thread, write: str
    ) -> None:
        thread.append(said("abc"))
        before = database_bytes(hiermem)

        result = thread.append([]) if write == "append" else thread.replace(None)

        assert result == []
        assert database_bytes(hiermem) == before

    def test_b8_an_empty_batch_creates_no_thread(self, hiermem: HierMem, thread: Thread) -> None:
        thread.append([])
        thread.replace(None)

        assert hiermem.tenant("acme").threads() == []

    def test_b8_only_a_replace_by_an_empty_list_empties_the_thread(self, thread: Thread) -> None:
        thread.append(said("abc"))

        thread.replace([])

        assert thread.turns() == []
        assert [turn.content for turn in thread.turns(status="archived")] == ["a", "b", "c"]
        assert thread.info().last_seq == 3

    @pytest.mark.parametrize("columns", UNDECODABLE.values(), ids=UNDECODABLE.keys())
    def test_b9_an_undecodable_turn_is_read_as_a_placeholder(
        self, thread: Thread, columns: dict[str, object]
    ) -> None:
        stored = thread.append(said("abcdefghij"))
        spoil_turn(thread, 4, **columns)

        read = thread.turns()

        assert [turn for turn in read if turn.seq != 4] == [t for t in stored if t.seq != 4]
        assert [turn.seq for turn in read.unreadable] == [4]
        assert read.unreadable[0].id == stored[3].id

    @pytest.mark.parametrize("columns", UNDECODABLE.values(), ids=UNDECODABLE.keys())
    def test_b9_an_undecodable_turn_gives_one_warning_and_blocks_no_context(
        self, thread: Thread, columns: dict[str, object]
    ) -> None:
        thread.append(asked_and_answered("abcde"))
        spoil_turn(thread, 4, **columns)

        context = thread.context(budget_tokens=100_000)

        warning = warning_of(context.warnings, "turn_unreadable")
        assert [turn.seq for turn in context.messages] == list(range(1, 11))
        assert warning is not None
        assert warning.count == 1

    def test_b9_an_undecodable_standing_turn_gives_one_warning(self, thread: Thread) -> None:
        thread.append([TurnDraft(role="system", content="rules"), *asked_and_answered("abc")])
        spoil_turn(thread, 1, body="{broken")

        context = thread.context(budget_tokens=100_000)

        warning = warning_of(context.warnings, "turn_unreadable")
        assert [turn.seq for turn in context.messages] == list(range(1, 8))
        assert warning is not None
        assert warning.count == 1

    def test_b9_an_undecodable_turn_can_be_edited_deleted_and_written_after(
        self, thread: Thread
    ) -> None:
        stored = thread.append(said("abc"))
        for seq in (1, 2):
            spoil_turn(thread, seq, body="{broken")

        thread.edit_turn(str(stored[0].id), "mended")
        thread.delete_turns([str(stored[1].id)])
        thread.append(said("d"))

        assert [turn.content for turn in thread.turns()] == ["mended", "c", "d"]
        assert thread.turns().unreadable == []

    def test_a_seq_is_never_given_twice(self, thread: Thread) -> None:
        stored = thread.append(said("abc"))
        thread.delete_turns([str(stored[2].id)])
        thread.append(said("d"))
        thread.replace([])

        (last,) = thread.append(said("e"))

        assert last.seq == 5

    def test_an_edit_keeps_id_and_seq_and_counts_anew(self, thread: Thread) -> None:
        old = thread.append(said(["short", "b"]))[0]

        new = thread.edit_turn(str(old.id), "a very much longer text than before")

        assert (new.id, new.seq, new.revision) == (old.id, old.seq, old.revision + 1)
        assert sum(new.token_counts.values()) > sum(old.token_counts.values())
        assert thread.turns()[0] == new

    def test_another_tenants_thread_is_the_same_as_none(
        self, hiermem: HierMem, thread: Thread
    ) -> None:
        (turn,) = thread.append(said("a"))
        foreign = hiermem.tenant("acme2").thread("t1")

        for read in reads_of_a_missing_thread(foreign, str(turn.id)):
            with pytest.raises(ThreadNotFoundError, match="'t1' not found"):
                read()
        assert foreign.delete() is False
        assert hiermem.tenant("acme2").threads() == []
        assert thread.turns() == [turn]

    def test_what_the_caller_changes_later_is_seen_by_nobody(self, thread: Thread) -> None:
        metadata: dict[str, Any] = {"tags": ["a"]}
        returned = thread.append([TurnDraft(role="user", content="x", metadata=metadata)])
        metadata["tags"].append("b")
        returned[0].metadata["tags"].append("c")
        thread.turns()[0].metadata["tags"].append("d")

        assert thread.turns()[0].metadata == {"tags": ["a"]}

    def test_a_turn_that_cannot_be_stored_stores_nothing_of_its_batch(self, thread: Thread) -> None:
        nan = TurnDraft(role="user", content="b", metadata={"x": float("nan")})

        with pytest.raises(InvalidInputError):
            thread.append([*said("a"), nan])
        with pytest.raises(ThreadNotFoundError):
            thread.turns()

    @pytest.mark.parametrize("part", ODD_PARTS, ids=str)
    def test_a_part_of_an_odd_shape_is_refused_or_stored_and_shown(
        self, thread: Thread, part: dict[str, Any]
    ) -> None:
        draft = TurnDraft(role="user", content="look", parts=[part])
        try:
            (stored,) = thread.append([draft])
        except InvalidInputError:
            return

        assert thread.turns() == [stored]
        (shown,) = thread.context(budget_tokens=9_999).messages
        assert shown.parts == stored.parts
        assert shown.parts[-1] == part


def assert_batches_are_whole(turns: Sequence[Turn], *, batches: int, size: int) -> None:
    """Hold that turns named `<batch>.<place>` stand in whole batches, each once."""
    seen = set()
    for start in range(0, len(turns), size):
        names = [str(turn.content).rpartition(".") for turn in turns[start : start + size]]
        assert [place for _, _, place in names] == [str(place) for place in range(size)]
        assert len({batch for batch, _, _ in names}) == 1
        seen.add(names[0][0])
    assert len(seen) == batches


def facts_of(turn: TurnDraft) -> dict[str, Any]:
    """Return the fields that a caller gave."""
    return {
        field.name: getattr(turn, field.name)
        for field in fields(TurnDraft)
        if field.name != "replaced"
    }


def as_stored(draft: TurnDraft, stored: Turn) -> TurnDraft:
    """Return a draft with what the store fills in: source, id, time; sequences as tuples."""
    return replace(
        draft,
        parts=tuple(draft.parts),
        tool_calls=tuple(draft.tool_calls),
        source=draft.source or source_of_role(draft.role),
        id=draft.id or stored.id,
        created_at=draft.created_at or stored.created_at,
    )


def type_names(value: Any) -> Any:
    """Return a value's shape as type names, key order included."""
    if isinstance(value, dict):
        return [(key, type_names(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [type_names(item) for item in value]
    return type(value).__name__


def reads_of_a_missing_thread(thread: Thread, turn_id: str) -> list[Callable[[], object]]:
    """Return every call that must tell that a thread does not exist."""
    return [
        thread.turns,
        thread.info,
        thread.prune,
        lambda: thread.edit_turn(turn_id, "x"),
        lambda: thread.delete_turns([turn_id]),
        lambda: thread.context(budget_tokens=100),
    ]
