"""Statistics of one tenant's entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.models.results import IndexStats, MemoryStats

if TYPE_CHECKING:
    from hiermem_core.service.collaborators import Collaborators


def stats_of(shared: Collaborators, tenant: str) -> MemoryStats:
    """Return what is kept of a tenant, and what answers each search mode."""
    backend = shared.backend
    counts = backend.entry_counts(tenant, shared.clock.now())
    vectors = shared.catching_up.vector_counts(tenant)
    engines = dict(backend.engines(tenant))
    if "semantic" in engines and shared.vectoriser.embedder is None:
        without = 'no embedder: only given vectors are searched; install "hiermem-core[embed]"'
        engines["semantic"] = without
    return MemoryStats(
        entries=sum(counts.by_namespace.values()),
        entries_by_namespace=counts.by_namespace,
        entries_by_type=counts.by_type,
        bytes=counts.bytes,
        expired=counts.expired,
        patterns=counts.patterns,
        index=IndexStats(
            indexed=vectors.made,
            pending=vectors.waiting,
            failed=vectors.failed,
            shortened=vectors.shortened,
            model_id=shared.vectoriser.model_id,
            dimension=shared.vectoriser.dimension,
        ),
        cache=shared.cache.stats(tenant),
        generation=backend.generation(tenant),
        location=shared.location,
        backend=backend.name,
        engines=engines,
    )
