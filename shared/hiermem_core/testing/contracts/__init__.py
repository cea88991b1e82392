"""Contract classes: what every implementation must hold, as test classes to subclass.

A test file gives the fixtures that a contract asks for, and pytest runs the rest:

    class TestMyCounter(TokenCounterContract):
        @pytest.fixture
        def counter(self):
            return MyCounter()

Needs pytest and hypothesis, which nothing else in HierMem imports.
"""

import pytest

_TESTED = (
    *("bulk", "context", "counters", "entries", "entries_base", "entries_duplicates"),
    *(
        "entries_expiry",
        "entries_metadata",
        "entries_namespaces",
        "entries_persistence",
        "entries_text",
        "failing",
    ),
    *("limits", "memory", "properties", "searching", "searching_filters", "searching_vectors"),
    *("searching_words", "soundness", "threads"),
)
pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in _TESTED))

# Imported below, so that a failing assert shows its values.
from hiermem_core.testing.contracts.bulk import BulkContract  # noqa: E402
from hiermem_core.testing.contracts.context import AssemblerContract  # noqa: E402
from hiermem_core.testing.contracts.counters import TokenCounterContract  # noqa: E402
from hiermem_core.testing.contracts.entries import EntryContract  # noqa: E402
from hiermem_core.testing.contracts.entries_base import MemoryContract  # noqa: E402
from hiermem_core.testing.contracts.entries_duplicates import DuplicateContract  # noqa: E402
from hiermem_core.testing.contracts.entries_expiry import ExpiryContract  # noqa: E402
from hiermem_core.testing.contracts.entries_metadata import MetadataContract  # noqa: E402
from hiermem_core.testing.contracts.entries_namespaces import NamespaceContract  # noqa: E402
from hiermem_core.testing.contracts.entries_persistence import PersistenceContract  # noqa: E402
from hiermem_core.testing.contracts.entries_text import TextContract  # noqa: E402
from hiermem_core.testing.contracts.failing import FailingCounterContract  # noqa: E402
from hiermem_core.testing.contracts.limits import LimitContract  # noqa: E402
from hiermem_core.testing.contracts.memory import ThreadMemoryContract  # noqa: E402
from hiermem_core.testing.contracts.properties import ContextPropertiesContract  # noqa: E402
from hiermem_core.testing.contracts.searching import SearchContract  # noqa: E402
from hiermem_core.testing.contracts.searching_filters import FilterContract  # noqa: E402
from hiermem_core.testing.contracts.searching_vectors import SemanticContract  # noqa: E402
from hiermem_core.testing.contracts.searching_words import HybridContract, KeywordContract  # noqa: E402
from hiermem_core.testing.contracts.threads import ThreadStoreContract  # noqa: E402

__all__ = [
    "AssemblerContract",
    "BulkContract",
    "ContextPropertiesContract",
    "DuplicateContract",
    "EntryContract",
    "ExpiryContract",
    "FailingCounterContract",
    "FilterContract",
    "HybridContract",
    "KeywordContract",
    "LimitContract",
    "MemoryContract",
    "MetadataContract",
    "NamespaceContract",
    "PersistenceContract",
    "SearchContract",
    "SemanticContract",
    "TextContract",
    "ThreadMemoryContract",
    "ThreadStoreContract",
    "TokenCounterContract",
]
