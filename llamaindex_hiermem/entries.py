"""Long-term entries of a tenant: what answers a question."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from hiermem_core import InvalidInputError, MemoryQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hiermem_core import Hit, Tenant

_PAGE = 1000
_LONGEST = 32_768
"""Characters of a question, at most; more is refused."""


def entries_for(
    tenant: Tenant,
    text: str,
    *,
    k: int,
    vector: Sequence[float] | None = None,
    namespace: str | None = None,
    filter: Mapping[str, Any] | None = None,  # noqa: A002 - as in the core
    types: Sequence[str] | None = None,
    min_score: float | None = None,
    mode: str | None = None,
) -> list[Hit]:
    """Return the `k` entries that answer a question best; none for a blank one.

    Raises:
        InvalidInputError: A restriction cannot be understood.
        UnsupportedSearchError: The backend has no index for the mode.
    """
    if not text.strip() and vector is None:
        return []
    only: Any = types[0] if types is not None and len(set(types)) == 1 else None
    how: Any = mode
    asked = MemoryQuery(
        text=text[:_LONGEST],
        vector=vector,
        mode=how,
        namespace=namespace,
        filter=filter,
        type=only,
        threshold=min_score,
    )
    others = None if types is None or only is not None else frozenset(types)
    return list(islice(_hits(tenant, asked, k, others), k))


def checked_k(k: int) -> int:
    """Return a number of entries.

    Raises:
        InvalidInputError: It is no whole number above 0.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InvalidInputError("k", "must be a whole number above 0")
    return k


def _hits(
    tenant: Tenant, asked: MemoryQuery, k: int, types: frozenset[str] | None
) -> Iterator[Hit]:
    """Yield hits of the right types, page by page; the core restricts to one type at most."""
    offset, size = 0, min(_PAGE, k)
    while page := tenant.memory.search(asked, limit=size, offset=offset):
        yield from (hit for hit in page if types is None or hit.type in types)
        if len(page) < size:
            return
        offset += len(page)
        size = min(_PAGE, 2 * size)
