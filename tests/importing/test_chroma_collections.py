"""Collections of Chroma, as LangChain, LlamaIndex and mem0 keep them."""

from __future__ import annotations

import chromadb
import pytest


@pytest.fixture
def chroma(place):
    settings = chromadb.Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(str(place.folder / "db"), settings=settings)
    return lambda name: client.get_or_create_collection(name, embedding_function=None)


def vectors(place, *texts):
    return place.embedder.embed(texts)


def test_a_collection_of_langchain_keeps_documents_metadata_ids_and_vectors(place, chroma):
    texts = ["cats purr", "dogs bark"]
    facts = [{"source": "a.txt", "page": 1, "ok": True, "share": 0.5}, {"source": "b.txt"}]
    chroma("pets").upsert(
        ids=["u1", "u2"], documents=texts, metadatas=facts, embeddings=vectors(place, *texts)
    )
    place.embedder.calls.clear()

    report = place.load(place.folder / "db")

    assert report.imported == 2
    assert [one.format for one in report.stores] == ["chroma/langchain"]
    entries = {one.content: one for one in place.entries().values()}
    own = dict(entries["cats purr"].metadata)
    assert own.pop("import")["id"] == "u1"
    assert own == facts[0]
    assert entries["cats purr"].namespace == "chroma/pets"
    embedded = [text for call in place.embedder.calls for text in call]
    assert ("cats purr" in embedded, "dogs bark" in embedded) == (True, False)
    assert place.tenant.memory.stats().index.indexed == 2
    assert place.load(place.folder / "db").reasons == {"unchanged": 2}


def test_collections_that_use_the_same_ids_are_kept_apart(place, chroma):
    for name in ("one", "two"):
        chroma(name).add(ids=["1"], documents=[f"of {name}"], embeddings=[[1.0, 0.0]])

    assert place.load(place.folder / "db").imported == 2
    assert set(place.contents().values()) == {"of one", "of two"}


def test_without_an_embedder_no_vector_is_taken_over(tmp_path, place, chroma):
    from hiermem_core import HierMem
    from hiermem_core.importing import import_memories

    chroma("pets").add(ids=["1"], documents=["cats"], embeddings=[[1.0, 0.0]])

    with HierMem.open(tmp_path / "plain") as memory:
        alice = memory.tenant("alice")
        import_memories(place.folder / "db", alice)
        assert alice.memory.stats().index.dimension is None


def test_vectors_by_another_embedder_are_made_anew(place, chroma):
    texts = ["cats purr", "dogs bark"]
    length = place.embedder.dimensions
    other = [[1.0] + [0.0] * (length - 1), [0.0] * (length - 1) + [1.0]]
    chroma("pets").add(ids=["1", "2"], documents=texts, metadatas=None, embeddings=other)

    place.load(place.folder / "db")

    (hit, *_) = place.tenant.memory.search_semantic("dogs bark", 1)
    assert (hit.content, hit.score > 0.99) == ("dogs bark", True)


def test_a_collection_of_llamaindex_keeps_its_nodes(place, chroma):
    node = {"_node_content": '{"id_": "n1"}', "_node_type": "TextNode", "ref_doc_id": "d1"}
    chroma("quickstart").add(
        ids=["n1"], documents=["text"], metadatas=[node | {"title": "T"}], embeddings=[[1.0, 0.0]]
    )

    report = place.load(place.folder / "db")

    (entry,) = place.entries().values()
    assert report.stores[0].format == "chroma/llamaindex"
    about = entry.metadata["import"]["fields"]
    assert (entry.metadata["title"], about["node_content"]) == ("T", '{"id_": "n1"}')


def test_memories_that_mem0_keeps_in_chroma_are_its_memories(place, chroma):
    facts = [{"data": "likes tea", "hash": "h", "user_id": "ann", "created_at": "2026-11-30"}]
    chroma("mem0").add(ids=["1"], metadatas=facts, embeddings=[[1.0, 0.0]])

    report = place.load(place.folder / "db")

    (entry,) = place.entries().values()
    assert (report.stores[0].format, entry.user_id) == ("mem0/export", "ann")
    assert (entry.content, entry.namespace) == ("likes tea", "mem0")
