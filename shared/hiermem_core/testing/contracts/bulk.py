"""What every store of entries must hold of many entries at a time."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core.errors import (
    DimensionMismatchError,
    EmbedderMismatchError,
    HierMemError,
    InvalidInputError,
    KeyConflictError,
    VersionConflictError,
)
from hiermem_core.models.events import EntryStored, IndexPending
from hiermem_core.models.results import BulkInsertResult
from hiermem_core.testing.contracts.counters import shared
from hiermem_core.testing.contracts.entries_base import (
    DIMENSIONS,
    MemoryContract,
    everything,
    found,
    ids_of,
    read,
    settle,
)
from hiermem_core.testing.contracts.entries_probes import Uneven
from hiermem_core.testing.contracts.probes import reads_of
from hiermem_core.testing.embedders import FakeEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import HierMem
    from hiermem_core.models.events import Event
    from hiermem_core.service.memory_service import MemoryService
    from hiermem_core.testing.clocks import FakeClock

_IDS = ("a", "b", "c")
_KEYS = (None, None, "k", "l", "m")
_CONTENTS = ("red", "green", " red ", "blue")

PASSED_ON: tuple[list[Any], ...] = (
    [("a", {"key": "z"}), ("b", {"key": "k"}), ("a", {"key": "y"})],
    [("a", {"key": None}), ("b", {"key": "k"}), ("a", {"key": "l"})],
    [("a", {"key": "l"}), ("b", {"key": "z"}), ("a", {"key": "l"}), ("b", {"key": "k"})],
)
"""Updates of entries that bear the keys k and l, which they hand to each other."""

_names = count()

_inserts = st.fixed_dictionaries(
    {"content": st.sampled_from((*_CONTENTS, " "))},
    optional={
        "id": st.sampled_from(_IDS),
        "key": st.sampled_from(_KEYS),
        "type": st.sampled_from(["semantic", "episodic"]),
        "ttl": st.sampled_from([None, 5, 60]),
    },
)
_changes = st.fixed_dictionaries(
    {},
    optional={
        "content": st.sampled_from((*_CONTENTS, "")),
        "key": st.sampled_from(_KEYS),
        "tags": st.sampled_from([(), ("t",)]),
        "ttl": st.sampled_from([None, 5]),
        "embedding": st.none(),
    },
)
_updates = st.tuples(st.sampled_from((*_IDS, "nobody")), _changes)
_operations = st.one_of(
    st.tuples(st.just("insert"), st.lists(_inserts, max_size=5)),
    st.tuples(st.just("update"), st.lists(_updates, max_size=5)),
    st.tuples(st.just("delete"), st.lists(st.sampled_from((*_IDS, "nobody")), max_size=3)),
    st.tuples(st.just("advance"), st.sampled_from([1, 5])),
)


class BulkContract(MemoryContract):
    """Every promise of bulk operations that needs no second process."""

    def test_a45_a_bad_item_fails_alone_and_a_rejected_one_is_stored_without_its_vector(
        self, memory: MemoryService, embedder: FakeEmbedder, events: list[Event]
    ) -> None:
        items: list[Any] = [{"content": f"fact {n}", "id": f"{n:02}"} for n in range(100)]
        items[17] = {"content": " ", "id": "17"}
        embedder.failing = {"fact 60"}

        result = memory.bulk_insert(items)

        (failure,) = result.failed
        assert (failure.index, type(failure.error)) == (17, InvalidInputError)
        assert result.ids == tuple(None if n == 17 else f"{n:02}" for n in range(100))
        assert result.pending == ("60",)
        assert found(memory) == {f"{n:02}" for n in range(100)} - {"17"}
        assert memory.stats().index.pending >= 1
        assert memory.retrieve("60", include_embedding=True).embedding is None  # type: ignore[union-attr]  # it is there
        assert memory.retrieve("61", include_embedding=True).embedding is not None  # type: ignore[union-attr]  # it is there
        assert [event.count for event in events if isinstance(event, IndexPending)] == [1]
        assert len([event for event in events if isinstance(event, EntryStored)]) == 99
        with pytest.raises(InvalidInputError):
            result.raise_for_errors()

    def test_a46_nothing_to_do_opens_no_transaction(
        self, hiermem: HierMem, memory: MemoryService
    ) -> None:
        memory.store("one")
        settle(memory)
        generation = memory.generation()

        with reads_of(hiermem) as reads:
            assert memory.bulk_insert([]) == BulkInsertResult((), (), ())
            assert memory.bulk_get([]) == {}
            updated, deleted = memory.bulk_update([]), memory.bulk_delete([])

        assert (dict(updated), updated.failed) == ({}, ())
        assert (dict(deleted), deleted.failed) == ({}, ())
        assert (reads.rows, reads.steps) == (0, 0)
        assert memory.generation() == generation

    def test_a47_every_id_is_answered_when_deleting(self, hiermem: HierMem) -> None:
        memory, other = hiermem.tenant("acme").memory, hiermem.tenant("other").memory
        mine = [memory.store(f"mine {n}") for n in range(5)]
        foreign = [other.store(f"theirs {n}") for n in range(2)]
        unknown = ["x", "y", "z"]

        result = memory.bulk_delete([*mine[:2], *unknown, *foreign, *mine[2:], mine[0]])

        assert dict(result) == dict.fromkeys(mine, True) | dict.fromkeys(unknown + foreign, False)
        assert result.failed == ()
        assert everything(memory) == []
        assert set(ids_of(everything(other))) == set(foreign)

    @pytest.mark.parametrize("updates", PASSED_ON)
    def test_a49_keys_are_passed_on_in_bulk_as_one_by_one(
        self, hiermem: HierMem, updates: list[Any]
    ) -> None:
        pair = [hiermem.tenant(name).memory for name in ("bulk", "single")]
        for memory in pair:
            memory.store("one", id="a", key="k")
            memory.store("two", id="b", key="l")

        failed = pair[0].bulk_update(updates).failed
        singly = [outcome_of(pair[1], "update", update) for update in updates]

        assert [one.index for one in failed] == [n for n, one in enumerate(singly) if one]
        assert sketch(pair[0]) == sketch(pair[1])

    @shared
    @given(operations=st.lists(_operations, min_size=1, max_size=6))
    def test_a49_in_bulk_and_one_by_one_leave_the_same(
        self, hiermem: HierMem, clock: FakeClock, operations: list[tuple[str, Any]]
    ) -> None:
        name = f"a49 {next(_names)}"
        bulk, single = (hiermem.tenant(f"{name} {way}").memory for way in ("bulk", "single"))

        for kind, items in operations:
            if kind == "advance":
                clock.advance(items)
                continue
            failed = failures_of(bulk, kind, items)
            singly = [outcome_of(single, kind, item) for item in items]
            assert failed == {n: one for n, one in enumerate(singly) if one is not None}
            assert sketch(bulk) == sketch(single)

        settle(bulk)
        settle(single)
        assert sketch(bulk, vectors=True) == sketch(single, vectors=True)

    def test_the_last_of_two_items_with_one_key_wins(self, memory: MemoryService) -> None:
        result = memory.bulk_insert(
            [{"content": content, "key": "k"} for content in ("one", "two", "three")]
        )

        (entry,) = everything(memory)
        assert result.ids == (entry.id,) * 3
        assert (entry.content, entry.version) == ("three", 3)

    def test_a_repeated_text_is_counted_within_a_batch(self, memory: MemoryService) -> None:
        result = memory.bulk_insert(["the same", "another", " the  same "], batch_size=2)

        assert result.ids[0] == result.ids[2] != result.ids[1]
        assert read(memory, str(result.ids[0])).times_stored == 2

    def test_results_are_in_input_order_across_batches(self, memory: MemoryService) -> None:
        items = [{"content": f"fact {n}" if n % 3 else " ", "id": str(n)} for n in range(10)]

        result = memory.bulk_insert(iter(items), batch_size=3)

        assert result.ids == tuple(str(n) if n % 3 else None for n in range(10))
        assert [one.index for one in result.failed] == [0, 3, 6, 9]
        with pytest.raises(InvalidInputError):
            memory.bulk_insert(items, batch_size=0)

    def test_a_key_of_another_entry_fails_one_item(self, memory: MemoryService) -> None:
        memory.store("one", id="a", key="k")

        result = memory.bulk_insert(
            [{"content": "two", "id": "b", "key": "k"}, {"content": "three", "id": "c"}]
        )

        assert (result.ids, [type(one.error) for one in result.failed]) == (
            (None, "c"),
            [KeyConflictError],
        )
        assert result.failed[0].id == "b"
        assert found(memory) == {"a", "c"}

    def test_every_id_is_answered_when_reading(self, memory: MemoryService) -> None:
        one, two = memory.store("one"), memory.store("two")

        answers = memory.bulk_get([two, "nobody", one, two])

        assert list(answers) == [two, "nobody", one]
        assert answers == {two: read(memory, two), "nobody": None, one: read(memory, one)}

    def test_updates_are_given_as_pairs_or_objects_and_each_is_answered(
        self, memory: MemoryService
    ) -> None:
        for name in "abcd":
            memory.store(f"one {name}", id=name)

        result = memory.bulk_update(
            [
                ("a", {"content": "changed"}),
                {"id": "b", "update": {"tags": ["t"]}},
                {"id": "c", "update": {"content": "late"}, "expected_version": 7},
                ("d", {"content": " "}),
                ("nobody", {"content": "x"}),
            ]
        )

        assert list(result) == ["a", "b", "c", "d", "nobody"]
        assert [result["a"], result["b"]] == [read(memory, "a"), read(memory, "b")]
        assert [result[name] for name in ("c", "d", "nobody")] == [None] * 3
        assert [(one.index, one.id, type(one.error)) for one in result.failed] == [
            (2, "c", VersionConflictError),
            (3, "d", InvalidInputError),
        ]
        assert [read(memory, name).content for name in "cd"] == ["one c", "one d"]

    def test_what_fails_a_batch_fails_all_after_it_and_nothing_before(
        self, opened: Callable[..., HierMem]
    ) -> None:
        embedder = Uneven(DIMENSIONS)
        memory = opened(embedder=embedder).tenant("acme").memory
        items: list[Any] = [{"content": f"fact {n}", "id": str(n)} for n in range(5)]
        embedder.is_uneven = "fact 2".__eq__

        result = memory.bulk_insert([*items, "", "fact 6"], batch_size=2)

        assert result.ids == ("0", "1", *[None] * 5)
        assert [one.index for one in result.failed] == [2, 3, 4, 5, 6]
        assert {type(one.error) for one in result.failed} == {DimensionMismatchError}
        assert [one.id for one in result.failed] == ["2", "3", "4", None, None]
        assert found(memory) == {"0", "1"}

    def test_an_embedder_that_is_not_the_locations_fails_every_item(
        self, opened: Callable[..., HierMem]
    ) -> None:
        opened().tenant("acme").memory.store("one", id="one")
        memory = opened(embedder=FakeEmbedder(DIMENSIONS, seed=7)).tenant("acme").memory

        result = memory.bulk_insert(["two", " ", "three"])

        assert [type(one.error) for one in result.failed] == [
            EmbedderMismatchError,
            InvalidInputError,
            EmbedderMismatchError,
        ]
        with pytest.raises(EmbedderMismatchError):
            result.raise_for_errors()

    @pytest.mark.parametrize(
        "item", [5, None, "a", ("a",), ("a", None), ("a", 5), (5, {}), ([], {})]
    )
    def test_a_bad_update_or_id_fails_alone(self, memory: MemoryService, item: Any) -> None:
        for name in "ab":
            memory.store(name, id=name)

        updated = memory.bulk_update([item, ("b", {"tags": ["t"]})])
        ids: list[Any] = [[item], "", "b"]
        deleted = memory.bulk_delete(ids)

        assert [one.index for one in updated.failed] == [0]
        assert isinstance(updated.failed[0].error, InvalidInputError)
        assert updated["b"] is not None
        assert [one.index for one in deleted.failed] == [0, 1]
        assert (deleted["b"], found(memory)) == (True, {"a"})
        with pytest.raises(InvalidInputError):
            deleted.raise_for_errors()

    @pytest.mark.parametrize("item", [5, None, "", [], {}, ["a"]])
    def test_reading_what_is_no_id_is_refused(self, memory: MemoryService, item: Any) -> None:
        with pytest.raises(InvalidInputError):
            memory.bulk_get(["a", item])

    @pytest.mark.parametrize("size", [0, -1, 1.5, "a", None, True])
    def test_a_batch_size_that_is_no_number_above_0_is_refused(
        self, memory: MemoryService, size: Any
    ) -> None:
        with pytest.raises(InvalidInputError):
            memory.bulk_insert(["one"], batch_size=size)

        assert everything(memory) == []

    @pytest.mark.parametrize("items", ["text", b"bytes", 5, None])
    def test_what_is_no_list_is_refused(self, memory: MemoryService, items: Any) -> None:
        for operation in (
            memory.bulk_insert,
            memory.bulk_get,
            memory.bulk_update,
            memory.bulk_delete,
        ):
            with pytest.raises(InvalidInputError):
                operation(items)

    @pytest.mark.parametrize("item", [None, 5, (), {}, {"text": "x"}, ["x"], b"x"])
    def test_what_is_no_entry_fails_alone(self, memory: MemoryService, item: Any) -> None:
        result = memory.bulk_insert([item, "fine"])

        assert [one.index for one in result.failed] == [0]
        assert [entry.content for entry in everything(memory)] == ["fine"]


def failures_of(memory: MemoryService, kind: str, items: list[Any]) -> dict[int, type]:
    """Run an operation in bulk; return the error of each item that failed, by place."""
    if kind == "insert":
        failed = memory.bulk_insert(items, batch_size=3).failed
    elif kind == "update":
        failed = memory.bulk_update(items).failed
    else:
        failed = memory.bulk_delete(items).failed
    return {one.index: type(one.error) for one in failed}


def outcome_of(memory: MemoryService, kind: str, item: Any) -> type | None:
    """Run an operation on one item; return the type of its error, or `None`."""
    try:
        if kind == "insert":
            memory.store(item)
        elif kind == "update":
            memory.update(*item)
        else:
            memory.delete(item)
    except HierMemError as error:
        return type(error)
    return None


def sketch(memory: MemoryService, *, vectors: bool = False) -> list[str]:
    """Return everything in a store but the ids it made up and when."""
    entries = everything(memory)
    return sorted(
        repr(
            replace(
                entry,
                id=entry.id if entry.id in _IDS else "",
                embedding=entry.embedding if vectors else None,
            )
        )
        for entry in entries
    )
