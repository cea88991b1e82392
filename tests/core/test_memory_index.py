"""Rows, keyword rows, vectors and the vector index, on each backend that has them."""

from __future__ import annotations

from core.memory_backends import WITH_VECTORS, on

from hiermem_core.testing.contracts.indexing import (
    IndexContract,
    VectorIndexContract,
    WaitingContract,
)


class TestWaiting(WaitingContract):
    opened = on(*WITH_VECTORS)


class TestIndex(IndexContract):
    opened = on("chroma", "chroma_indexed", "hybrid", "hybrid_indexed")


class TestVectorIndex(VectorIndexContract):
    opened = on("chroma_indexed", "hybrid_indexed")
