"""The summary buffer as a thread memory."""

from __future__ import annotations

import pytest

from hiermem_core import Fact, HierMem, ThreadState
from hiermem_core.testing import ScriptedModel
from hiermem_core.testing.contracts import ThreadMemoryContract
from hiermem_core.testing.contracts.learning_base import reply
from hiermem_core.testing.contracts.probes import notes_store

NOTES = ThreadState(
    "They ask for things. All are found.", (Fact("the first is red", 2, ((1, 2),)),), 40
)


class TestSummaryBuffer(ThreadMemoryContract):
    @pytest.fixture
    def hiermem(self, tmp_path):
        model = ScriptedModel([reply("They spoke.")])
        with HierMem.open(tmp_path / "memory", chat_model=model) as hiermem:
            yield hiermem

    @pytest.fixture
    def memory(self, hiermem):
        return hiermem._services.thread_memory


class TestSummaryBufferWithNotes(TestSummaryBuffer):
    @pytest.fixture(autouse=True)
    def noted(self, hiermem, thread):
        notes = notes_store(hiermem)
        mark = notes.read(thread.tenant_id, thread.id).mark
        assert notes.commit(thread.tenant_id, thread.id, NOTES, onto=mark)

    def test_it_gives_the_notes(self, thread):
        context = thread.context(budget_tokens=2000, recall=False)

        assert context.notes == "They ask for things. All are found.\n- the first is red"
