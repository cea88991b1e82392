"""What the contracts of entries share: fixtures, and short ways to say what is stored."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.models.entries import MemoryEntry
from hiermem_core.testing.clocks import FakeClock
from hiermem_core.testing.embedders import FakeEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hiermem_core import HierMem
    from hiermem_core.models.events import Event
    from hiermem_core.service.memory_service import MemoryService

DIMENSIONS = 32
SECONDS = 60.0
"""How long an index may take to catch up before a test fails."""

TEXT_MODES = ("exact", "prefix", "tag", "keyword", "semantic", "hybrid")


class MemoryContract:
    """Fixtures of every contract of entries.

    A subclass gives the fixture `opened`.
    """

    @pytest.fixture
    def clock(self) -> FakeClock:
        """Give the clock of every HierMem opened."""
        return FakeClock()

    @pytest.fixture
    def embedder(self) -> FakeEmbedder:
        """Give the embedder of every HierMem opened, unless a test gives another."""
        return FakeEmbedder(DIMENSIONS)

    @pytest.fixture
    def events(self) -> list[Event]:
        """Give the list that gets the events of every HierMem opened."""
        return []

    @pytest.fixture
    def opened(self) -> Callable[..., HierMem]:
        """Give a function that opens a HierMem with some options on the backend under test.

        It opens one location, which is empty at first, and closes at the test's end.
        """
        raise NotImplementedError

    @pytest.fixture
    def hiermem(self, opened: Callable[..., HierMem]) -> HierMem:
        """Give an empty HierMem."""
        return opened()

    @pytest.fixture
    def memory(self, hiermem: HierMem) -> MemoryService:
        """Give the entries of a tenant; there is none yet."""
        return hiermem.tenant("acme").memory


def modes_of(memory: MemoryService) -> list[str]:
    """Return the modes that a text can be searched by on this backend."""
    has = {"exact", "prefix", "tag", *memory.stats().engines}
    return [mode for mode in TEXT_MODES if mode in has]


def ids_of(entries: Iterable[MemoryEntry]) -> list[str]:
    """Return the ids of entries or hits, in their order."""
    return [entry.id for entry in entries]


def found(memory: MemoryService, **query: Any) -> set[str]:
    """Return the ids of everything that a query without a text of its own restricts to."""
    return set(ids_of(memory.search(limit=1000, **query)))


def everything(memory: MemoryService) -> list[MemoryEntry]:
    """Return every living entry with its vector, by id."""
    hits = memory.search(limit=1000, include_embedding=True)
    entries = [MemoryEntry(**{name: getattr(hit, name) for name in _FIELDS}) for hit in hits]
    return sorted(deepcopy(entries), key=lambda entry: entry.id)


def read(memory: MemoryService, entry_id: str) -> MemoryEntry:
    """Return an entry that must be there."""
    entry = memory.retrieve(entry_id)
    assert entry is not None
    return entry


def settle(memory: MemoryService) -> None:
    """Have every vector made and known to the index."""
    assert memory.wait_for_index(SECONDS)


def reached(memory: MemoryService, entry_id: str, text: str) -> set[str]:
    """Return every way by which an entry is found; `text` is its content, its key and its tag."""
    ways = {mode: memory.search(text, mode=mode) for mode in modes_of(memory)}
    seen = {mode for mode, hits in ways.items() if entry_id in ids_of(hits)}
    entry = memory.retrieve(entry_id)
    by_key = memory.retrieve(namespace="here", key=text)
    stats = memory.stats()
    others = {
        "retrieve": entry is not None,
        "key": by_key is not None,
        "bulk_get": memory.bulk_get([entry_id])[entry_id] is not None,
        "list": entry_id in ids_of(memory.search()),
        "namespaces": "here" in memory.list_namespaces(),
        "count": stats.entries == 1,
        "stats": bool(stats.entries_by_namespace and stats.entries_by_type and stats.bytes),
    }
    return seen | {way for way, is_there in others.items() if is_there}


def every_way(memory: MemoryService) -> set[str]:
    """Return every way by which `reached` can find an entry."""
    others = {"retrieve", "key", "bulk_get", "list", "namespaces", "count", "stats"}
    return {*modes_of(memory), *others}


def unlike(entry: MemoryEntry, **facts: Any) -> MemoryEntry:
    """Return an entry with other facts, to compare with one that was changed."""
    return replace(entry, **facts)


def unit(cosine: float) -> list[float]:
    """Return a vector at a cosine to the first axis."""
    return [cosine, (1.0 - cosine * cosine) ** 0.5, *[0.0] * (DIMENSIONS - 2)]


_FIELDS = tuple(MemoryEntry.__dataclass_fields__)
