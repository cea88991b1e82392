"""What is told of the vector index."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IndexState:
    """The index of one tenant.

    Attributes:
        indexed: Vectors in it.
        pending: Changes that wait.
        failed: Changes that are not tried again by themselves.
        engine: What answers a semantic search over many vectors, and why.
    """

    indexed: int
    pending: int
    failed: int
    engine: str
    last_error: str | None = None


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """Numbers of vectors that the index lacks, and numbers in it that have no vector."""

    missing: tuple[int, ...] = ()
    orphans: tuple[int, ...] = ()
