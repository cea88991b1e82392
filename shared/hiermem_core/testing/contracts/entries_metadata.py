"""What every store of entries must hold of metadata."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.errors import InvalidInputError
from hiermem_core.testing.contracts.entries_base import MemoryContract, everything, read, unlike

if TYPE_CHECKING:
    from hiermem_core.service.memory_service import MemoryService

ODD_METADATA: dict[str, Any] = {
    "z": None,
    "list": [],
    "object": {},
    "nested": [[], [1, [None, {"deep": [False]}]]],
    "one": 1,
    "one point": 1.0,
    "true": True,
    "empty": "",
    "": "no name",
    "big": 2**63 - 1,
    "small": -(2**63),
    "tiny": 5e-324,
    "minus": -0.0,
    "größe": "日本 👩‍👩‍👧 \u202e",
    "a": {"z": 1, "a": {"z": 2, "a": 3}},
}


class MetadataContract(MemoryContract):
    """Every promise of metadata."""

    def test_a6_metadata_comes_back_equal_in_value_type_and_order(
        self, memory: MemoryService
    ) -> None:
        entry_id = memory.store("text", metadata=ODD_METADATA)

        (hit,), (entry,) = memory.search(), memory.bulk_get([entry_id]).values()

        assert entry is not None
        for returned in (entry, hit, read(memory, entry_id)):
            assert _spelled(returned.metadata) == _spelled(ODD_METADATA)

    def test_a8_nobody_shares_metadata_with_the_store(self, memory: MemoryService) -> None:
        given: dict[str, Any] = {"list": [1], "object": {"list": [2]}}
        entry_id = memory.store("text", metadata=given, key="k")
        empty_id = memory.store("bare")
        before = everything(memory)

        returned = [
            given,
            *(read(memory, one).metadata for one in (entry_id, empty_id, entry_id, empty_id)),
            *(hit.metadata for hit in memory.search()),
            *(entry.metadata for entry in memory.bulk_get([entry_id, empty_id]).values() if entry),
        ]
        by_key = memory.retrieve(namespace="default", key="k")
        assert by_key is not None
        assert len(returned) == 9
        for metadata in (*returned, by_key.metadata):
            _spoil(metadata)

        assert everything(memory) == before
        for one in before:
            assert memory.retrieve(one.id) == unlike(one, embedding=None)

    def test_a8_nobody_shares_metadata_with_an_update(self, memory: MemoryService) -> None:
        given: dict[str, Any] = {"list": [1]}
        entry_id = memory.store("text")
        updated = memory.update(entry_id, metadata=given)
        in_bulk = memory.bulk_update([(entry_id, {"user_id": "u"})])[entry_id]
        assert updated is not None
        assert in_bulk is not None

        for metadata in (given, updated.metadata, in_bulk.metadata):
            _spoil(metadata)

        assert [entry.metadata for entry in everything(memory)] == [{"list": [1]}]

    def test_a7_metadata_that_is_no_json_is_refused_with_its_path(
        self, memory: MemoryService
    ) -> None:
        memory.store("one", id="one")
        before = everything(memory)
        wrong: dict[str, tuple[Any, str]] = {
            "a datetime": ({"a": {"b": [0, datetime.now(UTC)]}}, "metadata.a.b[1]"),
            "NaN": ({"a": [float("nan")]}, "metadata.a[0]"),
            "an infinity": ({"a": float("-inf")}, "metadata.a"),
            "a number as key": ({"a": {1: 2}}, "metadata.a"),
            "65 bits": ({"a": 2**63}, "metadata.a"),
            "65 bits below": ({"a": -(2**63) - 1}, "metadata.a"),
            "a tuple": ({"a": (1,)}, "metadata.a"),
            "bytes": ({"a": b"x"}, "metadata.a"),
            "a list": ([], "metadata"),
            "nothing": (None, "metadata"),
        }

        for value, path in wrong.values():
            for attempt in (
                lambda value=value: memory.store("two", metadata=value),
                lambda value=value: memory.update("one", metadata=value),
                lambda value=value: memory.bulk_insert(
                    [{"content": "two", "metadata": value}]
                ).raise_for_errors(),
            ):
                with pytest.raises(InvalidInputError) as refused:
                    attempt()
                assert refused.value.name == path

        assert everything(memory) == before


def _spelled(value: Any) -> str:
    """Return a JSON value with the types and the order of everything in it."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{_spelled(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_spelled, value)) + "]"
    return f"{type(value).__name__} {value!r}"


def _spoil(value: Any) -> None:
    """Change every list and object in a JSON value."""
    if isinstance(value, dict):
        for item in list(value.values()):
            _spoil(item)
        value["spoilt"] = True
    if isinstance(value, list):
        for item in value:
            _spoil(item)
        value.append("spoilt")
