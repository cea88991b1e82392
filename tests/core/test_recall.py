"""Recall, with words alone and with vectors, on each kind of rows."""

from __future__ import annotations

import pytest

from hiermem_core import HierMem
from hiermem_core.testing import FakeEmbedder
from hiermem_core.testing.contracts import RecallContract, RecalledContextContract

SETUPS = {
    "words": {},
    "words and vectors": {"embedder": FakeEmbedder},
    "sqlite": {"backend": "sqlite"},
    "in memory": {"backend": "in_memory", "embedder": FakeEmbedder},
}


def options_of(name):
    options = dict(SETUPS[name])
    if "embedder" in options:
        options["embedder"] = options["embedder"](64)
    return options


class TestRecall(RecallContract):
    @pytest.fixture(params=SETUPS)
    def hiermem(self, request, clock, tmp_path):
        with HierMem.open(tmp_path / "m", clock=clock, **options_of(request.param)) as hiermem:
            yield hiermem


class TestRecallInThisProcess(RecallContract):
    @pytest.fixture
    def hiermem(self, clock):
        with HierMem.open(":memory:", clock=clock, embedder=FakeEmbedder(64)) as hiermem:
            yield hiermem


class TestRecalledContext(RecalledContextContract):
    @pytest.fixture(params=["words", "words and vectors", "in memory"])
    def hiermem(self, request, tmp_path):
        with HierMem.open(tmp_path / "memory", **options_of(request.param)) as hiermem:
            yield hiermem


def test_c14_an_embedder_that_fails_leaves_a_valid_context_and_a_warning(tmp_path):
    embedder = FakeEmbedder(64, failing=lambda text: "keeps" in text)
    with HierMem.open(tmp_path, embedder=embedder) as hiermem:
        tenant = hiermem.tenant("acme")
        entry_id = tenant.remember("Ebba has llamas")

        context = tenant.thread("new").context(current="Who keeps llamas?", budget_tokens=500)

    assert [warning.code for warning in context.warnings] == ["semantic_unavailable"]
    assert [hit.id for hit in context.hits] == [entry_id]


def test_c14_a_recall_that_fails_leaves_a_valid_context_and_a_warning(tmp_path):
    with HierMem.open(tmp_path) as hiermem:
        tenant = hiermem.tenant("acme")
        tenant.remember("Ebba has llamas")
        with hiermem._services.database.write() as connection:
            connection.exec_driver_sql("DROP TABLE keywords")

        context = tenant.thread("new").context(current="Who keeps llamas?", budget_tokens=500)

    assert [warning.code for warning in context.warnings] == ["recall_failed"]
    assert context.messages[-1].content == "Who keeps llamas?"


def test_recall_off_makes_no_embedding_call(tmp_path):
    embedder = FakeEmbedder(64)
    with HierMem.open(tmp_path, embedder=embedder) as hiermem:
        tenant = hiermem.tenant("acme")
        tenant.remember("Ebba has llamas")
        before = len(embedder.calls)

        tenant.thread("new").context(current="llamas?", budget_tokens=500, recall=False)

    assert len(embedder.calls) == before


def test_where_nothing_can_be_recalled_nothing_is_embedded(tmp_path):
    embedder = FakeEmbedder(64)
    with HierMem.open(tmp_path, embedder=embedder) as hiermem:
        thread = hiermem.tenant("acme").thread("new")
        thread.append([{"role": "user", "content": "hello"}])

        thread.context(current="llamas?", budget_tokens=500)

    assert embedder.calls == []


def test_turns_are_embedded_off_the_write_path_and_found_at_once(tmp_path):
    embedder = FakeEmbedder(64)
    with HierMem.open(tmp_path, embedder=embedder) as hiermem:
        tenant = hiermem.tenant("acme")
        thread = tenant.thread("t")
        thread.append([{"role": "user", "content": "Ebba has llamas", "id": "1"}])

        assert embedder.calls == []
        assert tenant.memory.stats().index.pending == 1
        assert [hit.id for hit in thread.recall("has")] == ["1"]
        assert tenant.memory.stats().index.pending == 0


def test_a_turn_is_embedded_with_its_author_and_what_was_said_before(tmp_path):
    embedder = FakeEmbedder(64)
    with HierMem.open(tmp_path, embedder=embedder) as hiermem:
        tenant = hiermem.tenant("acme")
        turns = [("Ann", "Do you keep llamas?"), ("Bo", "Yes, three.")]
        tenant.thread("t").append(
            [{"role": "user", "name": name, "content": text} for name, text in turns]
        )
        tenant.memory.wait_for_index()

    assert "Ann: Do you keep llamas?\nBo: Yes, three." in [
        t for call in embedder.calls for t in call
    ]


def test_turns_are_left_alone_where_they_are_not_indexed(tmp_path):
    with HierMem.open(tmp_path, index_turns=False) as hiermem:
        thread = hiermem.tenant("acme").thread("t")
        thread.append([{"role": "user", "content": "Ebba has llamas"}])

        assert list(thread.recall("llamas")) == []
