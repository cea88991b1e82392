"""A location whose content a codec encodes does what any other does, but for finding by words."""

from __future__ import annotations

import pytest
from core.memory_backends import CODEC, on

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing.contracts import (
    BulkContract,
    DuplicateContract,
    EntryContract,
    ExpiryContract,
    FilterContract,
    ForgettingContract,
    LimitContract,
    MetadataContract,
    NamespaceContract,
    PassageContract,
    PatternContract,
    PersistenceContract,
    QuotaContract,
    SemanticContract,
    SessionContract,
    TextContract,
    ThreadStoreContract,
    WritingContract,
)


class TestEntries(EntryContract):
    opened = on("sealed")


class TestMetadata(MetadataContract):
    opened = on("sealed")


class TestNamespaces(NamespaceContract):
    opened = on("sealed")


class TestExpiry(ExpiryContract):
    opened = on("sealed")


class TestDuplicates(DuplicateContract):
    opened = on("sealed")


class TestBulk(BulkContract):
    opened = on("sealed")


class TestFilters(FilterContract):
    opened = on("sealed")


class TestForgetting(ForgettingContract):
    opened = on("sealed")


class TestLimits(LimitContract):
    opened = on("sealed")


class TestPassages(PassageContract):
    opened = on("sealed")


class TestPatterns(PatternContract):
    opened = on("sealed")


class TestPersistence(PersistenceContract):
    opened = on("sealed")


class TestQuotas(QuotaContract):
    opened = on("sealed")


class TestVectors(SemanticContract):
    opened = on("sealed")


class TestSessions(SessionContract):
    opened = on("sealed")


class TestTexts(TextContract):
    opened = on("sealed")


class TestWriting(WritingContract):
    opened = on("sealed")


class TestThreads(ThreadStoreContract):
    @pytest.fixture
    def hiermem(self, clock, tmp_path):
        options = {"clock": clock, "counter": ApproximateCounter(), "codec": CODEC}
        with HierMem.open(tmp_path / "memory", **options) as hiermem:
            yield hiermem
