"""The thread store, on each kind of rows."""

from __future__ import annotations

import pytest

from hiermem_core import HierMem
from hiermem_core.testing.contracts import MistypedTurnsContract, ThreadStoreContract


class TestStoreInAFile(ThreadStoreContract, MistypedTurnsContract):
    @pytest.fixture
    def hiermem(self, clock, tmp_path):
        with HierMem.open(tmp_path / "memory", clock=clock) as hiermem:
            yield hiermem


class TestStoreInThisProcess(ThreadStoreContract, MistypedTurnsContract):
    @pytest.fixture
    def hiermem(self, clock):
        with HierMem.open(":memory:", clock=clock) as hiermem:
            yield hiermem
