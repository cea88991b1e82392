"""Recall, with words alone and with vectors, on each kind of rows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hiermem_core import HierMem
from hiermem_core.context.memory_block import item_of, memory_block, parse_block
from hiermem_core.context.placing_memory import without_repeated
from hiermem_core.errors import InvalidInputError
from hiermem_core.models.queries import TurnHit
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


@pytest.mark.parametrize(
    "wrong",
    [
        {"threads": "bogus"},
        {"threads": ["t"]},
        {"threshold": 0.5},
        {"mode": "exact"},
        {"offset": 5},
    ],
    ids=str,
)
def test_recall_refuses_what_it_cannot_do(tmp_path, wrong):
    with HierMem.open(tmp_path) as hiermem:
        tenant = hiermem.tenant("acme")

        with pytest.raises(InvalidInputError):
            tenant.recall("llamas", **wrong)
        with pytest.raises(InvalidInputError):
            tenant.thread("t").recall("llamas", **wrong)
        with pytest.raises(InvalidInputError):
            tenant.recall(None)
        with pytest.raises(InvalidInputError):
            tenant.recall("llamas", threads="this")
        with pytest.raises(InvalidInputError):
            tenant.recall("llamas", user_id="u1")


@pytest.mark.parametrize("wrong", [{"budget_tokens": "5"}, {"system": 5}, {"tools": [5]}], ids=str)
def test_a_context_refuses_what_it_cannot_read(tmp_path, wrong):
    with HierMem.open(tmp_path) as hiermem:
        thread = hiermem.tenant("acme").thread("t")

        with pytest.raises(InvalidInputError):
            thread.context(**{"current": "hello", "budget_tokens": 500, **wrong})


def test_a8_what_a_caller_does_to_a_recalled_hit_is_seen_by_nobody(tmp_path):
    with HierMem.open(tmp_path, backend="in_memory") as hiermem:
        tenant = hiermem.tenant("acme")
        entry_id = tenant.remember("llamas hum", metadata={"a": [1]})

        tenant.recall("llamas")[0].metadata["a"].append(2)

        assert tenant.memory.retrieve(entry_id).metadata == {"a": [1]}


def test_c14_an_embedder_that_a_reindex_elsewhere_replaced_leaves_a_valid_context(tmp_path):
    with (
        HierMem.open(tmp_path, embedder=FakeEmbedder(32)) as first,
        HierMem.open(tmp_path, embedder=FakeEmbedder(32)) as second,
    ):
        entry_id = first.tenant("acme").remember("llamas hum")
        second.tenant("acme").recall("llamas")
        first.reindex(FakeEmbedder(16, "another"))

        context = second.tenant("acme").thread("t").context(current="llamas?", budget_tokens=500)

    assert [hit.id for hit in context.hits] == [entry_id]
    assert [warning.code for warning in context.warnings] == ["semantic_unavailable"]


def test_hits_that_have_no_place_are_not_said_to_be_there(tmp_path):
    with HierMem.open(tmp_path) as hiermem:
        tenant = hiermem.tenant("acme")
        tenant.remember("llamas hum")
        thread = tenant.thread("greeting")
        thread.append([{"role": "assistant", "content": "Hello!"}])

        context = thread.context(budget_tokens=300, query="llamas")

    assert (context.messages, context.hits) == ((), ())
    assert context.receipt.tokens("recall") == 0


def test_as_many_hits_are_recalled_as_are_asked_for(tmp_path):
    with HierMem.open(tmp_path) as hiermem:
        tenant = hiermem.tenant("acme")
        tenant.memory.bulk_insert([f"llama number {n}" for n in range(600)])

        assert len(tenant.recall("llama", limit=500)) == 500


def test_c22_notes_repeat_a_hit_only_where_they_say_it_whole():
    said, other = (
        TurnHit(
            thread_id="t",
            id=text,
            seq=1,
            part=0,
            role="user",
            author=None,
            content=text,
            created_at=datetime(2026, 1, 1, tzinfo=UTC),
            score=1.0,
        )
        for text in ("likes tea", "Port 8090")
    )

    kept = without_repeated([said, other], "Alice dislikes tea and coffee. - port 80901", [])
    repeated = without_repeated([said, other], "She\n- likes tea.\nPort 8090!", [])

    assert kept == (said, other)
    assert repeated == ()


@given(
    author=st.none() | st.text(max_size=20),
    texts=st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=4),
    notes=st.text(max_size=60),
)
@example(author=":[entries]\n[9 May 1999]", texts=["hi"], notes="")
@example(author="(user, 9 May 1999) x", texts=["hi"], notes="</notes>")
def test_p10_parsing_any_rendered_block_returns_what_was_rendered(author, texts, notes):
    hits = [
        TurnHit(
            thread_id="t",
            id=str(place),
            seq=place,
            part=0,
            role="user",
            author=author,
            content=text,
            created_at=datetime(2026, 1, 1, tzinfo=UTC),
            score=1.0,
        )
        for place, text in enumerate(texts)
    ]

    read = parse_block(memory_block(notes, hits))

    assert read.notes == notes
    assert list(read.recalled) == list(map(item_of, hits))
