"""The memory service, on each backend: every way to search."""

from __future__ import annotations

from core.memory_backends import EVERY, WITH_BOTH, WITH_VECTORS, WITH_WORDS, on

from hiermem_core.testing.contracts import (
    FilterContract,
    HybridContract,
    KeywordContract,
    SearchContract,
    SemanticContract,
)


class TestSearch(SearchContract):
    opened = on(*EVERY)


class TestFilters(FilterContract):
    opened = on(*EVERY)


class TestKeyword(KeywordContract):
    opened = on(*WITH_WORDS)


class TestSemantic(SemanticContract):
    opened = on(*WITH_VECTORS)


class TestHybrid(HybridContract):
    opened = on(*WITH_BOTH)
