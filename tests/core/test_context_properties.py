"""Properties of contexts, with every counter."""

from __future__ import annotations

import pytest
from core.counting import COUNTERS

from hiermem_core import HierMem
from hiermem_core.testing import FakeEmbedder
from hiermem_core.testing.contracts import ContextPropertiesContract, NotesPropertiesContract


def open_with(counter, **options):
    return HierMem.open(":memory:", counter=COUNTERS[counter](), **options)


class TestContextsByTiktoken(ContextPropertiesContract):
    @pytest.fixture
    def hiermem(self):
        with open_with("tiktoken") as hiermem:
            yield hiermem


class TestContextsByEstimate(ContextPropertiesContract):
    @pytest.fixture
    def hiermem(self):
        with open_with("approximate") as hiermem:
            yield hiermem


class TestContextsByFunction(ContextPropertiesContract):
    @pytest.fixture
    def hiermem(self):
        with open_with("function") as hiermem:
            yield hiermem


class TestContextsByVectors(ContextPropertiesContract):
    @pytest.fixture
    def hiermem(self):
        with open_with("approximate", embedder=FakeEmbedder(8)) as hiermem:
            yield hiermem


@pytest.mark.parametrize("counter", list(COUNTERS))
class TestContextsWithNotes(NotesPropertiesContract):
    @pytest.fixture
    def hiermem(self, counter):
        with open_with(counter) as hiermem:
            yield hiermem
