"""Finding the entries that answer a LangGraph search."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from hiermem_core import InvalidInputError, MemoryQuery, UnsupportedSearchError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hiermem_core import Hit, MemoryService

PAGE = 1000
"""Hits of one search of the service, and namespaces of one listing."""

Found = tuple["Hit", float | None]


def find(
    memory: MemoryService,
    *,
    namespace: str | None,
    given: Any,
    limit: int,
    offset: int,
    question: str = "",
    vector: Sequence[float] | None = None,
) -> list[Found]:
    """Return the entries with a key that answer a search, with their scores.

    Without a question they come newest change first, without a score. With one, the best come
    first, and then those that cannot be compared with it, as if there were no question.

    Args:
        given: The filter on metadata.
        vector: Of the question; `None`: the service's embedder makes it.

    Raises:
        InvalidInputError: A figure is below 0, or the filter cannot be understood.
    """
    for name, figure in (("limit", limit), ("offset", offset)):
        if figure < 0:
            raise InvalidInputError(name, "must be at least 0")
    restricted = MemoryQuery(namespace=namespace, filter=given)
    if not question.strip():
        listed = _listed(memory, restricted, offset=offset, most=limit)
        return [(hit, None) for hit in islice(listed, limit)]
    wanted = offset + limit
    ranked = list(islice(_ranked(memory, restricted, question, vector, wanted), wanted))
    found: list[Found] = [(hit, hit.score) for hit in ranked]
    if len(found) < wanted:
        seen = {hit.id for hit in ranked}
        others = (hit for hit in _listed(memory, restricted, most=wanted) if hit.id not in seen)
        found += [(hit, None) for hit in islice(others, wanted - len(found))]
    return found[offset:]


def namespaces(memory: MemoryService, under: str | None) -> Iterator[str]:
    """Yield every namespace at or below one that holds an entry."""
    offset = 0
    while page := memory.list_namespaces(under, limit=PAGE, offset=offset):
        yield from page
        if len(page) < PAGE:
            return
        offset += len(page)


def _listed(
    memory: MemoryService, restricted: MemoryQuery, *, offset: int = 0, most: int
) -> Iterator[Hit]:
    """Yield the entries with a key, newest change first; of the mode, every key has the prefix."""
    return _paged(memory, restricted, {"text": "", "mode": "prefix"}, offset, most)


def _ranked(
    memory: MemoryService,
    restricted: MemoryQuery,
    question: str,
    vector: Sequence[float] | None,
    most: int,
) -> Iterator[Hit]:
    """Yield entries by meaning, or by their words where no embedder tells the meaning."""
    asked = {"text": question, "vector": vector, "mode": "semantic"}
    try:
        hits = _paged(memory, restricted, asked, 0, most)
        first = next(hits, None)
    except UnsupportedSearchError:
        hits = _paged(memory, restricted, {"text": question, "mode": "keyword"}, 0, most)
        first = next(hits, None)
    if first is not None:
        yield first
        yield from hits


def _paged(
    memory: MemoryService, restricted: MemoryQuery, asked: Any, offset: int, most: int
) -> Iterator[Hit]:
    """Yield the hits with a key, page by page; `most` sizes the first."""
    size = min(PAGE, max(1, most))
    while True:
        page = memory.search(restricted, **asked, limit=size, offset=offset)
        yield from (hit for hit in page if hit.key is not None)
        if len(page) < size:
            return
        offset += len(page)
