"""What every store of entries must hold of tenants and namespaces."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core.errors import HierMemError, InvalidNamespaceError
from hiermem_core.models.queries import MemoryQuery
from hiermem_core.models.warnings import warning_of
from hiermem_core.testing.contracts.counters import shared
from hiermem_core.testing.contracts.entries_base import (
    MemoryContract,
    everything,
    found,
    ids_of,
    modes_of,
    read,
    settle,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hiermem_core import HierMem
    from hiermem_core.service.memory_service import MemoryService
    from hiermem_core.tenant import Tenant

ODD_TENANTS = ("..", "../x", "a/b", "CON", "x" * 300, ".", "a\\b", "'; --", "%00", "größe", "A/B")

NO_PATHS: tuple[Any, ...] = ("", "/a", "a/", "a//b", "a\nb", "a\x00", "\ud83d", (), ("",), 5)

_names = count()
_segments = st.lists(st.sampled_from(["a", "b", "ab", "a b", "ä", "_", "%", "A"]), min_size=1)
_paths = _segments.map(lambda segments: tuple(segments[:4]))


class NamespaceContract(MemoryContract):
    """Every promise of tenants and namespaces that needs no second process."""

    def test_a14_a_name_that_only_begins_alike_is_neither_returned_nor_touched(
        self, memory: MemoryService
    ) -> None:
        inside = {memory.store(f"one {name}", namespace=name) for name in ("t/a", "t/a/b", "t/a/c")}
        outside = {
            memory.store(f"one {name}", namespace=name) for name in ("t", "t/ab", "t/A", "t/a b")
        }
        settle(memory)

        assert found(memory, namespace="t/a") == inside
        for mode in set(modes_of(memory)) & {"keyword", "semantic", "hybrid"}:
            assert set(ids_of(memory.search("one", mode=mode, namespace="t/a"))) == inside
        assert memory.list_namespaces("t/a") == ["t/a", "t/a/b", "t/a/c"]
        assert memory.clear_namespace("t/a") == 3
        assert found(memory) == outside

    def test_without_the_subtree_only_the_namespace_itself_is_meant(
        self, memory: MemoryService
    ) -> None:
        itself = memory.store("one", namespace="t/a")
        below = memory.store("one", namespace="t/a/b")

        assert found(memory, namespace="t/a", subtree=False) == {itself}
        assert memory.clear_namespace(("t", "a"), subtree=False) == 1
        assert found(memory) == {below}

    def test_a15_segments_are_never_joined_text(self, memory: MemoryService) -> None:
        joined = memory.store("one", namespace=("team_a",))
        apart = memory.store("two", namespace=("team", "a"))

        assert found(memory, namespace=("team_a",)) == {joined}
        assert found(memory, namespace=("team", "a")) == found(memory, namespace="team/a")
        assert found(memory, namespace="team/a") == {apart}
        with pytest.raises(InvalidNamespaceError):
            memory.store("three", namespace=("team/a",))
        with pytest.raises(InvalidNamespaceError):
            memory.search(namespace=("team/a",))
        assert found(memory) == {joined, apart}

    def test_what_is_no_path_is_refused_everywhere(self, memory: MemoryService) -> None:
        memory.store("one")
        before = everything(memory)
        attempts: tuple[Callable[[Any], Any], ...] = (
            lambda name: memory.store("x", namespace=name),
            lambda name: memory.search(namespace=name),
            lambda name: memory.search("x", namespace=name),
            lambda name: memory.retrieve(namespace=name, key="k"),
            lambda name: memory.delete(namespace=name, key="k"),
            memory.list_namespaces,
            memory.clear_namespace,
        )

        for name in NO_PATHS:
            for attempt in attempts:
                with pytest.raises(InvalidNamespaceError):
                    attempt(name)

        assert everything(memory) == before

    def test_the_root_cannot_be_cleared(self, memory: MemoryService) -> None:
        memory.store("one")

        with pytest.raises(InvalidNamespaceError):
            memory.clear_namespace(None)  # type: ignore[arg-type]  # wrong on purpose

        assert memory.stats().entries == 1

    def test_a16_nothing_of_another_tenant_is_returned_counted_changed_or_named(
        self, hiermem: HierMem
    ) -> None:
        for name in ("test", "test1"):
            fill(hiermem.tenant(name))
        before = state_of(hiermem.tenant("test1"))

        answers = list(every_operation(hiermem.tenant("test")))

        assert state_of(hiermem.tenant("test1")) == before
        assert not [answer for answer in answers if "test1" in str(answer)]
        assert [answer for answer in answers if "of test" in str(answer)]

    def test_a16_every_answer_is_what_it_is_without_the_other_tenant(
        self, hiermem: HierMem
    ) -> None:
        alone, beside = hiermem.tenant("test"), hiermem.tenant("test1")
        fill(alone, "same")
        expected = [spelled(answer) for answer in every_operation(alone)]
        beside.memory.bulk_insert({"content": f"alpha {n}", "id": f"x{n}"} for n in range(30))
        beside.memory.clear_namespace("default")
        fill(beside, "same")

        answers = [spelled(answer) for answer in every_operation(beside)]

        assert answers == expected

    def test_a17_a_foreign_id_is_like_a_random_one(self, hiermem: HierMem) -> None:
        mine = hiermem.tenant("a").memory
        theirs = hiermem.tenant("b").memory
        entry_id = mine.store("one", key="k", ttl=60)
        before = everything(mine)

        for other in (entry_id, "00000000-0000-7000-8000-000000000000"):
            assert theirs.retrieve(other) is None
            assert theirs.update(other, content="x", expected_version=1) is None
            assert theirs.delete(other) is False
            assert theirs.bulk_get([other]) == {other: None}
            assert dict(theirs.bulk_update([(other, {"content": "x"})])) == {other: None}
            assert dict(theirs.bulk_delete([other])) == {other: False}
        assert theirs.retrieve(namespace="default", key="k") is None
        assert theirs.delete(namespace="default", key="k") is False

        assert everything(mine) == before
        assert everything(theirs) == []
        assert theirs.generation() == 0

    def test_a17_two_tenants_may_use_one_id(self, hiermem: HierMem) -> None:
        mine, theirs = hiermem.tenant("a").memory, hiermem.tenant("b").memory
        mine.store("mine", id="one", key="k")

        theirs.store("theirs", id="one", key="k")

        assert (read(mine, "one").content, read(theirs, "one").content) == ("mine", "theirs")
        assert read(theirs, "one").version == 1

    def test_a18_without_a_namespace_all_are_searched(self, memory: MemoryService) -> None:
        names = ["a", "b/c", "d", "default", "e/f/g"]
        for name in names:
            memory.store("the same words", namespace=name)
        settle(memory)

        assert {hit.namespace for hit in memory.search()} == set(names)
        for mode in set(modes_of(memory)) & {"keyword", "semantic", "hybrid"}:
            hits = memory.search("words", mode=mode)
            assert {hit.namespace for hit in hits} == set(names)

    def test_a19_a_mistyped_namespace_is_answered_with_the_right_one(
        self, hiermem: HierMem, memory: MemoryService
    ) -> None:
        memory.store("one", namespace="projects/alpha")
        hiermem.tenant("other").memory.store("one", namespace="projects/alhpa-of-another")

        for text in (None, "one"):
            result = memory.search(text, namespace="projects/alhpa")
            warning = warning_of(result.warnings, "unknown_namespace")
            assert len(result) == 0
            assert warning is not None
            assert list(warning.detail["close"]) == ["projects/alpha"]

    def test_a19_a_namespace_that_only_answers_nothing_is_not_warned_of(
        self, memory: MemoryService
    ) -> None:
        memory.store("one", namespace="a/b", tags=["t"])

        assert memory.search(namespace="a", tags=["other"]).warnings == ()
        assert memory.search(namespace="a").warnings == ()

    def test_a20_reading_creates_no_namespace(self, memory: MemoryService) -> None:
        memory.store("one", namespace="real")
        memory.store("two", namespace="cleared/below")

        memory.search(namespace="ghost")
        memory.search("one", namespace="ghost")
        memory.retrieve(namespace="ghost", key="k")
        memory.delete(namespace="ghost", key="k")
        memory.clear_namespace("ghost")
        memory.clear_namespace("cleared")

        assert memory.list_namespaces() == ["real"]
        assert dict(memory.stats().entries_by_namespace) == {"real": 1}

    def test_namespaces_are_listed_sorted_and_by_pages(self, memory: MemoryService) -> None:
        names = sorted(["b", "a/z", "a", "a b", "a/b/c", "ä", "Z"])
        for name in reversed(names):
            memory.store(f"one {name}", namespace=name)

        pages = [memory.list_namespaces(limit=3, offset=offset) for offset in (0, 3, 6, 9)]

        assert pages == [names[:3], names[3:6], names[6:], []]
        assert memory.list_namespaces("a") == ["a", "a/b/c", "a/z"]
        assert memory.list_namespaces(limit=0) == []

    def test_a21_odd_tenants_are_apart_and_leave_no_file_elsewhere(
        self, hiermem: HierMem, tmp_path: Path
    ) -> None:
        for place, name in enumerate(ODD_TENANTS):
            tenant = hiermem.tenant(name)
            for entry in range(place + 1):
                tenant.memory.store(f"alpha {entry}")
            settle(tenant.memory)

        for place, name in enumerate(ODD_TENANTS):
            memory = hiermem.tenant(name).memory
            assert memory.stats().entries == place + 1
            assert len(memory.search("alpha", limit=100)) == place + 1
        location = Path(hiermem.location).parent
        is_served = "://" in hiermem.location
        assert list(tmp_path.iterdir()) == ([] if is_served else [location])
        files = "\n".join(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
        assert not [name for name in ODD_TENANTS[3:5] if name in files]

    @shared
    @given(stored=st.lists(_paths, min_size=1, max_size=8), asked=_paths)
    def test_p14_a_search_of_a_namespace_matches_by_tuple_prefix(
        self, hiermem: HierMem, stored: list[tuple[str, ...]], asked: tuple[str, ...]
    ) -> None:
        memory = hiermem.tenant(f"p14 {next(_names)}").memory
        memory.bulk_insert(
            {"content": "text", "namespace": path, "id": str(place)}
            for place, path in enumerate(stored)
        )

        within = {str(n) for n, path in enumerate(stored) if path[: len(asked)] == asked}
        equal = {str(n) for n, path in enumerate(stored) if path == asked}
        assert found(memory, namespace=asked) == within
        assert found(memory, namespace=asked, subtree=False) == equal
        assert memory.list_namespaces(asked) == sorted(
            {"/".join(path) for path in stored if path[: len(asked)] == asked}
        )
        assert memory.clear_namespace(asked) == len(within)
        assert found(memory) == {str(n) for n in range(len(stored))} - within


def fill(tenant: Tenant, name: str | None = None) -> None:
    """Store in a tenant what another may have too, under the same names."""
    name = name or tenant.name
    memory = tenant.memory
    for number in range(5):
        memory.store(
            f"alpha beta {number} of {name}",
            id=f"e{number}",
            key=f"k{number}",
            namespace="shared/place",
            tags=["t"],
            metadata={"n": number, "owner": name},
            user_id="u",
        )
    memory.store("alpha expired", id="old", ttl=0.001)
    tenant.thread("t1").append([{"role": "user", "content": f"alpha, said in {name}"}])
    settle(memory)


def every_operation(tenant: Tenant) -> Iterator[Any]:
    """Run every public operation on what `fill` stored, and yield what each answers."""
    memory = tenant.memory
    yield memory.retrieve("e0")
    yield memory.retrieve(namespace="shared/place", key="k1", include_embedding=True)
    yield memory.bulk_get(["e0", "e1", "nobody"])
    for mode in modes_of(memory):
        yield answer(memory, mode, text="alpha")
        yield answer(memory, mode, text="k", namespace="shared", filter={"n": {"$gte": 1}})
    yield memory.search(tags=["t"], user_id="u", include_embedding=True)
    yield memory.search_semantic("alpha", 2) if "semantic" in modes_of(memory) else None
    yield memory.search(namespace="shared/palce").warnings
    yield memory.list_namespaces()
    yield memory.stats()
    yield memory.store("alpha again", id="e0", key="k0", namespace="shared/place")
    yield memory.update("e1", content="changed")
    yield outcome(lambda: memory.update("e1", content="changed", expected_version=7))
    yield outcome(lambda: memory.store("x", id="e0", key="k1", namespace="shared/place"))
    yield memory.bulk_insert([{"content": "new", "id": "e9"}, " "]).ids
    yield dict(memory.bulk_update([("e2", {"tags": ["other"]}), ("nobody", {})]))
    yield dict(memory.bulk_delete(["e3", "nobody"]))
    yield memory.delete("e4"), memory.delete("e4")
    yield memory.purge_expired()
    yield memory.clear_namespace("shared")
    yield memory.wait_for_index(60)
    yield memory.stats()
    yield [turn.content for turn in tenant.thread("t1").turns()]


def state_of(tenant: Tenant) -> list[Any]:
    """Return everything that a tenant can see of itself."""
    memory = tenant.memory
    stats = replace(memory.stats(), cache=None)  # type: ignore[arg-type]  # wrong on purpose
    return [
        everything(memory),
        [answer(memory, mode, text="alpha") for mode in modes_of(memory)],
        memory.list_namespaces(),
        memory.generation(),
        stats,
        tenant.threads(),
        tenant.thread("t1").turns(),
    ]


def answer(memory: MemoryService, mode: str, **query: Any) -> list[Any]:
    """Return the hits of a mode, without what words are worth.

    BM25 weighs a word by all rows of a location, so the score of a keyword tells of other tenants
    how common it is, and nothing else.
    """
    hits = list(memory.search(MemoryQuery(mode=mode, **query)))  # type: ignore[arg-type]  # wrong on purpose
    if mode not in {"keyword", "hybrid"}:
        return hits
    return sorted((replace(hit, score=0.0) for hit in hits), key=lambda hit: hit.id)


def outcome(attempt: Callable[[], Any]) -> Any:
    """Return what an attempt returns, or the error it raises."""
    try:
        return attempt()
    except HierMemError as error:
        return error


def spelled(answer: Any) -> str:
    """Return an answer as text, without what belongs to the whole HierMem."""
    if hasattr(answer, "cache"):
        answer = replace(answer, cache=None, generation=0)
    return repr(answer)
