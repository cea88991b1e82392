"""The memory service on PostgreSQL: entries, one at a time and in bulk, and every search."""

from __future__ import annotations

from core.memory_backends import on

from hiermem_core.testing.contracts import (
    BulkContract,
    DuplicateContract,
    EntryContract,
    ExpiryContract,
    FilterContract,
    HybridContract,
    KeywordContract,
    LimitContract,
    MetadataContract,
    NamespaceContract,
    PassageContract,
    PersistenceContract,
    SearchContract,
    SemanticContract,
    TextContract,
    WritingContract,
)
from hiermem_core.testing.contracts.entries_refusals import RefusalContract


class TestEntries(EntryContract):
    opened = on("postgres")


class TestRefusals(RefusalContract):
    opened = on("postgres")


class TestMetadata(MetadataContract):
    opened = on("postgres")


class TestNamespaces(NamespaceContract):
    opened = on("postgres")


class TestExpiry(ExpiryContract):
    opened = on("postgres")


class TestDuplicates(DuplicateContract):
    opened = on("postgres")


class TestText(TextContract):
    opened = on("postgres")


class TestBulk(BulkContract):
    opened = on("postgres")


class TestLimits(LimitContract):
    opened = on("postgres")


class TestPersistence(PersistenceContract):
    opened = on("postgres")


class TestPassages(PassageContract):
    opened = on("postgres")


class TestWriting(WritingContract):
    opened = on("postgres")


class TestSearch(SearchContract):
    opened = on("postgres")


class TestFilters(FilterContract):
    opened = on("postgres")


class TestKeyword(KeywordContract):
    opened = on("postgres")


class TestSemantic(SemanticContract):
    opened = on("postgres")


class TestHybrid(HybridContract):
    opened = on("postgres")
