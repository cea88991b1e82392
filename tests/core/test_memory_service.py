"""The memory service, on each backend: entries, one at a time and in bulk."""

from __future__ import annotations

from core.memory_backends import EVERY, PERSISTENT, on

from hiermem_core.testing.contracts import (
    BulkContract,
    DuplicateContract,
    EntryContract,
    ExpiryContract,
    LimitContract,
    MetadataContract,
    NamespaceContract,
    PersistenceContract,
    TextContract,
)
from hiermem_core.testing.contracts.entries_refusals import RefusalContract


class TestEntries(EntryContract):
    opened = on(*EVERY)


class TestRefusals(RefusalContract):
    opened = on("in_memory", "hybrid")


class TestMetadata(MetadataContract):
    opened = on(*EVERY)


class TestNamespaces(NamespaceContract):
    opened = on(*EVERY)


class TestExpiry(ExpiryContract):
    opened = on(*EVERY)


class TestDuplicates(DuplicateContract):
    opened = on(*EVERY)


class TestText(TextContract):
    opened = on("in_memory", "sqlite", "chroma_indexed", "hybrid")


class TestBulk(BulkContract):
    opened = on(*EVERY)


class TestLimits(LimitContract):
    opened = on("in_memory", "sqlite", "chroma_indexed", "hybrid")


class TestPersistence(PersistenceContract):
    opened = on(*PERSISTENT)
