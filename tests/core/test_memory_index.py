"""Rows, keyword rows, vectors and the vector index, on each backend that has them."""

from __future__ import annotations

from core.memory_backends import on

from hiermem_core.testing.contracts.indexing import (
    IndexContract,
    VectorIndexContract,
    WaitingContract,
)


class TestWaiting(WaitingContract):
    opened = on("in_memory", "chroma_indexed", "hybrid")


class TestIndex(IndexContract):
    opened = on("chroma_indexed", "hybrid")


class TestVectorIndex(VectorIndexContract):
    opened = on("chroma_indexed", "hybrid_indexed")
