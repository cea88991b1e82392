"""Contract classes: what every implementation must hold, as test classes to subclass.

A test file gives the fixtures that a contract asks for, and pytest runs the rest:

    class TestMyCounter(TokenCounterContract):
        @pytest.fixture
        def counter(self):
            return MyCounter()

Needs pytest and hypothesis, which nothing else in HierMem imports.
"""
# ruff: noqa: E402 - imported after the rewriting is asked for, so a failing assert shows its values

from pkgutil import iter_modules

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{found.name}" for found in iter_modules(__path__)))

from hiermem_core.testing.contracts.auditing import AuditContract, PersistentAuditContract
from hiermem_core.testing.contracts.bulk import BulkContract
from hiermem_core.testing.contracts.context import AssemblerContract
from hiermem_core.testing.contracts.counters import TokenCounterContract
from hiermem_core.testing.contracts.embedders import EmbedderContract
from hiermem_core.testing.contracts.embedders_reindex import ReindexContract
from hiermem_core.testing.contracts.entries import EntryContract
from hiermem_core.testing.contracts.entries_base import MemoryContract
from hiermem_core.testing.contracts.entries_duplicates import DuplicateContract
from hiermem_core.testing.contracts.entries_expiry import ExpiryContract
from hiermem_core.testing.contracts.entries_metadata import MetadataContract
from hiermem_core.testing.contracts.entries_namespaces import NamespaceContract
from hiermem_core.testing.contracts.entries_passages import PassageContract
from hiermem_core.testing.contracts.entries_persistence import PersistenceContract
from hiermem_core.testing.contracts.entries_refusals import RefusalContract
from hiermem_core.testing.contracts.entries_text import TextContract
from hiermem_core.testing.contracts.entries_writing import WritingContract
from hiermem_core.testing.contracts.failing import FailingCounterContract
from hiermem_core.testing.contracts.forgetting import ForgettingContract
from hiermem_core.testing.contracts.forgetting_in_flight import ForgettingInFlightContract
from hiermem_core.testing.contracts.health import FailingRowsContract, HealthContract
from hiermem_core.testing.contracts.indexing import (
    IndexContract,
    VectorIndexContract,
    WaitingContract,
)
from hiermem_core.testing.contracts.leaking import LeakContract
from hiermem_core.testing.contracts.learning import LearningContract
from hiermem_core.testing.contracts.learning_base import UpdatesContract
from hiermem_core.testing.contracts.learning_turns import LearnedTurnsContract
from hiermem_core.testing.contracts.limits import LimitContract
from hiermem_core.testing.contracts.memory import ThreadMemoryContract
from hiermem_core.testing.contracts.observing import ObservingContract, RolledBackContract
from hiermem_core.testing.contracts.patterns import PatternContract
from hiermem_core.testing.contracts.properties import ContextPropertiesContract
from hiermem_core.testing.contracts.properties_notes import NotesPropertiesContract
from hiermem_core.testing.contracts.provenance import ProvenanceContract
from hiermem_core.testing.contracts.quotas import QuotaContract
from hiermem_core.testing.contracts.recalled_context import RecalledContextContract
from hiermem_core.testing.contracts.recalling import RecallContract
from hiermem_core.testing.contracts.redacting import RedactionContract
from hiermem_core.testing.contracts.searching import SearchContract
from hiermem_core.testing.contracts.searching_filters import FilterContract
from hiermem_core.testing.contracts.searching_vectors import SemanticContract
from hiermem_core.testing.contracts.searching_words import HybridContract, KeywordContract
from hiermem_core.testing.contracts.sessions import SessionContract
from hiermem_core.testing.contracts.threads import ThreadStoreContract
from hiermem_core.testing.contracts.threads_mistyped import MistypedTurnsContract
from hiermem_core.testing.contracts.updating import UpdatingContract
from hiermem_core.testing.contracts.updating_by_hosts import HostMemoryContract
from hiermem_core.testing.contracts.working import WorkingMemoryContract

__all__ = [
    "AssemblerContract",
    "AuditContract",
    "BulkContract",
    "ContextPropertiesContract",
    "DuplicateContract",
    "EmbedderContract",
    "EntryContract",
    "ExpiryContract",
    "FailingCounterContract",
    "FailingRowsContract",
    "FilterContract",
    "ForgettingContract",
    "ForgettingInFlightContract",
    "HealthContract",
    "HostMemoryContract",
    "HybridContract",
    "IndexContract",
    "KeywordContract",
    "LeakContract",
    "LearnedTurnsContract",
    "LearningContract",
    "LimitContract",
    "MemoryContract",
    "MetadataContract",
    "MistypedTurnsContract",
    "NamespaceContract",
    "NotesPropertiesContract",
    "ObservingContract",
    "PassageContract",
    "PatternContract",
    "PersistenceContract",
    "PersistentAuditContract",
    "ProvenanceContract",
    "QuotaContract",
    "RecallContract",
    "RecalledContextContract",
    "RedactionContract",
    "RefusalContract",
    "ReindexContract",
    "RolledBackContract",
    "SearchContract",
    "SemanticContract",
    "SessionContract",
    "TextContract",
    "ThreadMemoryContract",
    "ThreadStoreContract",
    "TokenCounterContract",
    "UpdatesContract",
    "UpdatingContract",
    "VectorIndexContract",
    "WaitingContract",
    "WritingContract",
]
