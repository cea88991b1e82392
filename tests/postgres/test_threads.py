"""Threads, their contexts and what is learned from them, on PostgreSQL."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from core.counting import COUNTERS

from hiermem_core import HierMem
from hiermem_core.testing import FakeEmbedder, ScriptedModel
from hiermem_core.testing.contracts import (
    AssemblerContract,
    ContextPropertiesContract,
    FailingCounterContract,
    HostMemoryContract,
    LearnedTurnsContract,
    LearningContract,
    NotesPropertiesContract,
    RecallContract,
    RecalledContextContract,
    ThreadMemoryContract,
    ThreadStoreContract,
    UpdatingContract,
)
from hiermem_core.testing.contracts.learning_base import reply


class TestStore(ThreadStoreContract):
    @pytest.fixture
    def hiermem(self, clock, location):
        with HierMem.open(location, clock=clock) as hiermem:
            yield hiermem


class TestAssembler(AssemblerContract):
    @pytest.fixture
    def hiermem(self, location):
        with HierMem.open(location, counter=COUNTERS["approximate"]()) as hiermem:
            yield hiermem


class TestAssemblerWithAFailingCounter(FailingCounterContract):
    @pytest.fixture
    def hiermem(self, counter, location):
        with HierMem.open(location, counter=counter) as hiermem:
            yield hiermem


class TestContexts(ContextPropertiesContract):
    @pytest.fixture
    def hiermem(self, location):
        counter = COUNTERS["approximate"]()
        with HierMem.open(location, counter=counter, embedder=FakeEmbedder(16)) as hiermem:
            yield hiermem


class TestContextsWithNotes(NotesPropertiesContract):
    @pytest.fixture
    def hiermem(self, location):
        model = ScriptedModel([reply("They spoke.")])
        with HierMem.open(location, chat_model=model) as hiermem:
            yield hiermem


class TestSummaryBuffer(ThreadMemoryContract):
    @pytest.fixture
    def hiermem(self, location):
        model = ScriptedModel([reply("They spoke.")])
        with HierMem.open(location, chat_model=model) as hiermem:
            yield hiermem

    @pytest.fixture
    def memory(self, hiermem):
        return hiermem._services.thread_memory


class TestLearning(LearningContract, LearnedTurnsContract):
    @pytest.fixture
    def opened(self, location):
        with ExitStack() as stack:
            yield lambda **options: stack.enter_context(
                HierMem.open(location, inline_updates=True, **options)
            )


class TestUpdates(UpdatingContract, HostMemoryContract):
    @pytest.fixture
    def opened(self, location):
        with ExitStack() as stack:
            yield lambda **options: stack.enter_context(HierMem.open(location, **options))


class TestRecall(RecallContract):
    @pytest.fixture(params=["words", "words and vectors"])
    def hiermem(self, request, clock, location):
        embedder = FakeEmbedder(64) if request.param == "words and vectors" else None
        with HierMem.open(location, clock=clock, embedder=embedder) as hiermem:
            yield hiermem


class TestRecalledContext(RecalledContextContract):
    @pytest.fixture
    def hiermem(self, location):
        with HierMem.open(location, embedder=FakeEmbedder(64)) as hiermem:
            yield hiermem
