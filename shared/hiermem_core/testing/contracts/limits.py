"""What every store of entries must hold of its limits: at one all is well, above it is refused."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.errors import LimitExceededError
from hiermem_core.testing.contracts.entries_base import MemoryContract, everything, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import HierMem

    Attempt = Callable[[HierMem, Any], Any]


def _nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = {"d": value} if level % 2 else [value]
    return value


def _filters(depth: int) -> Any:
    value: Any = {"f": 1}
    for level in range(depth - 1):
        value = {"$not": value} if level % 2 else {"$and": [value]}
    return value


def _storing(name: str) -> Attempt:
    return lambda hiermem, value: hiermem.tenant("acme").memory.store(
        {"content": "text", name: value}
    )


def _updating(name: str) -> Attempt:
    def update(hiermem: HierMem, value: Any) -> Any:
        memory = hiermem.tenant("acme").memory
        return memory.update(memory.store("text", type="episodic"), {name: value})  # type: ignore[arg-type]  # wrong on purpose

    return update


def _inserting(name: str) -> Attempt:
    return lambda hiermem, value: (
        hiermem.tenant("acme")
        .memory.bulk_insert([{"content": "text", name: value}])
        .raise_for_errors()
    )


def _asking(name: str) -> Attempt:
    return lambda hiermem, value: hiermem.tenant("acme").memory.search(**{name: value})


def _words(count: int) -> str:
    return ("alpha " * count)[:count]


LIMITS: dict[str, tuple[str, int, Callable[[int], Any], tuple[Attempt, ...]]] = {
    "content": (
        *("content", 1024 * 1024, _words),
        (_storing("content"), _updating("content"), _inserting("content")),
    ),
    "metadata": (
        *("metadata", 64 * 1024, lambda size: {"a": "ä" * ((size - 8) // 2) + "x" * (size % 2)}),
        (_storing("metadata"), _updating("metadata"), _inserting("metadata")),
    ),
    "metadata depth": (
        *("metadata depth", 8, lambda depth: {"a": _nested(depth - 1)}),
        (_storing("metadata"), _updating("metadata"), _inserting("metadata")),
    ),
    "key": (
        *("key", 1024, lambda size: "k" * size),
        (
            *(_storing("key"), _updating("key"), _inserting("key"), _asking("key")),
            lambda hiermem, key: hiermem.tenant("acme").memory.retrieve(namespace="n", key=key),
            lambda hiermem, key: hiermem.tenant("acme").memory.delete(namespace="n", key=key),
        ),
    ),
    "namespace": (
        *("namespace", 1024, lambda size: "n" * size),
        (
            *(_storing("namespace"), _inserting("namespace"), _asking("namespace")),
            lambda hiermem, name: hiermem.tenant("acme").memory.list_namespaces(name),
            lambda hiermem, name: hiermem.tenant("acme").memory.clear_namespace(name),
        ),
    ),
    "segments": (
        *("namespace segments", 16, lambda count: ["s"] * count),
        (_storing("namespace"), _inserting("namespace"), _asking("namespace")),
    ),
    "tags": (
        *("tags", 64, lambda count: [f"t{n}" for n in range(count)]),
        (_storing("tags"), _updating("tags"), _inserting("tags"), _asking("tags")),
    ),
    "tag": (
        *("tag", 256, lambda size: ["t" * size]),
        (_storing("tags"), _updating("tags"), _inserting("tags"), _asking("tags")),
    ),
    "tenant": (
        *("tenant", 512, lambda size: "t" * size),
        (lambda hiermem, name: hiermem.tenant(name).memory.store("text"),),
    ),
    "thread": (
        *("thread", 512, lambda size: "t" * size),
        (lambda hiermem, name: hiermem.tenant("acme").thread(name),),
    ),
    "user_id": (
        *("user_id", 512, lambda size: "u" * size),
        (_storing("user_id"), _updating("user_id"), _inserting("user_id"), _asking("user_id")),
    ),
    "id": (
        *("id", 512, lambda size: "i" * size),
        (
            *(_storing("id"), _inserting("id")),
            lambda hiermem, name: hiermem.tenant("acme").memory.retrieve(name),
            lambda hiermem, name: hiermem.tenant("acme").memory.delete(name),
            lambda hiermem, name: hiermem.tenant("acme").memory.bulk_get([name]),
        ),
    ),
    "derived_from": (
        *("derived_from", 1000, lambda count: [str(n) for n in range(count)]),
        (_storing("derived_from"), _updating("derived_from"), _inserting("derived_from")),
    ),
    "text": (
        *("text", 32_768, _words),
        (lambda hiermem, text: hiermem.tenant("acme").memory.search(text),),
    ),
    "limit": (
        *("limit", 1000, lambda limit: limit),
        (
            _asking("limit"),
            lambda hiermem, limit: hiermem.tenant("acme").memory.search("text", limit=limit),
            lambda hiermem, limit: hiermem.tenant("acme").memory.list_namespaces(limit=limit),
        ),
    ),
    "offset": (
        *("offset", 1_000_000, lambda offset: offset),
        (
            _asking("offset"),
            lambda hiermem, offset: hiermem.tenant("acme").memory.search("text", offset=offset),
        ),
    ),
    "items": (
        *("items", 10_000, lambda count: [str(n) for n in range(count)]),
        (
            lambda hiermem, ids: hiermem.tenant("acme").memory.bulk_insert([" " for _ in ids]),
            lambda hiermem, ids: hiermem.tenant("acme").memory.bulk_get(ids),
            lambda hiermem, ids: hiermem.tenant("acme").memory.bulk_delete(ids),
            lambda hiermem, ids: hiermem.tenant("acme").memory.bulk_update(
                (one, {"tags": []}) for one in ids
            ),
        ),
    ),
    "filter depth": (*("filter depth", 8, _filters), (_asking("filter"),)),
    "filter clauses": (
        *("filter clauses", 64, lambda count: {"$or": [{"f": n} for n in range(count)]}),
        (_asking("filter"),),
    ),
}
"""By case: the error's name, the limit, how to make a value of a size, and what takes it."""


class LimitContract(MemoryContract):
    """Every limit on what is stored and asked."""

    def test_the_limit_of_metadata_is_a_setting(self, opened: Callable[..., HierMem]) -> None:
        memory = opened(metadata_limit=100_000).tenant("acme").memory

        entry_id = memory.store("one", metadata={"a": "x" * 90_000})

        for write in (
            lambda: memory.store("two", metadata={"a": "x" * 100_000}),
            lambda: memory.update(entry_id, metadata={"a": "x" * 100_000}),
        ):
            with pytest.raises(LimitExceededError) as refused:
                write()
            assert refused.value.limit == 100_000
        assert len(read(memory, entry_id).metadata["a"]) == 90_000

    @pytest.mark.parametrize("case", LIMITS)
    def test_a_limit_is_reached_without_harm_and_not_exceeded(
        self, hiermem: HierMem, case: str
    ) -> None:
        name, limit, value_of, attempts = LIMITS[case]
        memory = hiermem.tenant("acme").memory

        for attempt in attempts:
            attempt(hiermem, value_of(limit))
            generation = memory.generation()
            before = everything(memory)
            with pytest.raises(LimitExceededError) as exceeded:
                attempt(hiermem, value_of(limit + 1))
            error = exceeded.value
            assert (error.name, error.limit, error.actual) == (name, limit, limit + 1)
            assert len(everything(memory)) <= len(before) + 1
            assert memory.generation() <= generation + 1
            memory.clear_namespace("default")

    def test_what_is_at_a_limit_comes_back_whole(self, hiermem: HierMem) -> None:
        memory = hiermem.tenant("t" * 512).memory
        facts = {
            "content": LIMITS["content"][2](1024 * 1024),
            "metadata": LIMITS["metadata"][2](64 * 1024),
            "key": "ä" * 1024,
            "namespace": "/".join(["日" * 63] * 16),
            "tags": tuple(f"{n:02}".rjust(256, "t") for n in range(64)),
            "user_id": "u" * 512,
            "id": "i" * 512,
        }

        memory.store(facts)

        entry = memory.retrieve(namespace=facts["namespace"], key=facts["key"])
        assert entry is not None
        assert {name: getattr(entry, name) for name in facts} == facts
        assert memory.retrieve("i" * 512) == entry
