"""Whose vectors are stored, and making them anew, on each backend with vectors."""

from __future__ import annotations

from core.memory_backends import WITH_VECTORS, on

from hiermem_core.testing.contracts.embedders import EmbedderContract
from hiermem_core.testing.contracts.embedders_reindex import ReindexContract


class TestEmbedders(EmbedderContract):
    opened = on(*WITH_VECTORS)


class TestReindex(ReindexContract):
    opened = on("in_memory", "chroma_indexed", "hybrid")
