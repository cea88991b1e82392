"""The assembler, with every counter on each kind of rows."""

from __future__ import annotations

import pytest
from core.counting import COUNTERS

from hiermem_core import HierMem
from hiermem_core.testing.contracts import AssemblerContract, FailingCounterContract


class TestAssemblerOnAFile(AssemblerContract):
    @pytest.fixture(params=COUNTERS)
    def hiermem(self, request, tmp_path):
        with HierMem.open(tmp_path / "memory", counter=COUNTERS[request.param]()) as hiermem:
            yield hiermem


class TestAssemblerInThisProcess(AssemblerContract):
    @pytest.fixture
    def hiermem(self):
        with HierMem.open(":memory:", counter=COUNTERS["approximate"]()) as hiermem:
            yield hiermem


class TestAssemblerWithAFailingCounter(FailingCounterContract):
    @pytest.fixture
    def hiermem(self, counter, tmp_path):
        with HierMem.open(tmp_path / "memory", counter=counter) as hiermem:
            yield hiermem
