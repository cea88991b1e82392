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
    *("context", "counters", "failing", "memory", "properties", "soundness", "threads"),
    *("entries", "entries_base"),
)
pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in _TESTED))

# Imported below, so that a failing assert shows its values.
from hiermem_core.testing.contracts.context import AssemblerContract  # noqa: E402
from hiermem_core.testing.contracts.counters import TokenCounterContract  # noqa: E402
from hiermem_core.testing.contracts.entries import EntryContract  # noqa: E402
from hiermem_core.testing.contracts.failing import FailingCounterContract  # noqa: E402
from hiermem_core.testing.contracts.memory import ThreadMemoryContract  # noqa: E402
from hiermem_core.testing.contracts.properties import ContextPropertiesContract  # noqa: E402
from hiermem_core.testing.contracts.threads import ThreadStoreContract  # noqa: E402

__all__ = [
    "AssemblerContract",
    "ContextPropertiesContract",
    "EntryContract",
    "FailingCounterContract",
    "ThreadMemoryContract",
    "ThreadStoreContract",
    "TokenCounterContract",
]
