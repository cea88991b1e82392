"""Contract classes: what every implementation must hold, as test classes to subclass.

A test file gives the fixtures that a contract asks for, and pytest runs the rest:

    class TestMyCounter(TokenCounterContract):
        @pytest.fixture
        def counter(self):
            return MyCounter()

Needs pytest and hypothesis, which nothing else in HierMem imports.
"""

from hiermem_core.testing.contracts.context import AssemblerContract
from hiermem_core.testing.contracts.counters import TokenCounterContract
from hiermem_core.testing.contracts.failing import FailingCounterContract
from hiermem_core.testing.contracts.memory import ThreadMemoryContract
from hiermem_core.testing.contracts.properties import ContextPropertiesContract
from hiermem_core.testing.contracts.threads import ThreadStoreContract

__all__ = [
    "AssemblerContract",
    "ContextPropertiesContract",
    "FailingCounterContract",
    "ThreadMemoryContract",
    "ThreadStoreContract",
    "TokenCounterContract",
]
