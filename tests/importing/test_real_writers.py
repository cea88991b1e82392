"""Files that the other systems' own classes write, as far as those are installed."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def client(place):
    chromadb = pytest.importorskip("chromadb")
    settings = chromadb.Settings(anonymized_telemetry=False)
    return chromadb.PersistentClient(str(place.folder / "db"), settings=settings)


def test_a_collection_that_langchains_chroma_writes_changes_and_deletes_from(place, client):
    chroma = pytest.importorskip("langchain_chroma")
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings

    class Same(Embeddings):
        embed_documents = staticmethod(place.embedder.embed)

        def embed_query(self, text):
            raise NotImplementedError

    store = chroma.Chroma("pets", embedding_function=Same(), client=client)
    facts = {"source": "a.txt", "page": 3}
    documents = [Document(f"{name} sleep", metadata=facts) for name in ("Cats", "Dogs", "Owls")]
    store.add_documents(documents, ids=["u1", "u2", "u3"])
    store.update_document("u2", Document("Dogs bark", metadata={"source": "b.txt"}))
    store.delete(["u3"])
    place.embedder.calls.clear()

    report = place.load(place.folder / "db")

    entries = {entry.content: entry for entry in place.entries().values()}
    embedded = {text for call in place.embedder.calls for text in call}
    assert [store.format for store in report.stores] == ["chroma/langchain"]
    assert set(entries) == {"Cats sleep", "Dogs bark"}
    own = dict(entries["Cats sleep"].metadata)
    assert own.pop("import")["id"] == "u1"
    assert own == facts
    assert entries["Dogs bark"].metadata["source"] == "b.txt"
    assert len(embedded & set(entries)) == 1  # one text is embedded to compare; the rest is taken
    assert place.tenant.memory.stats().index.indexed == 2
    assert place.load(place.folder / "db").reasons == {"unchanged": 2}


def test_nodes_that_llamaindexs_vector_store_writes(place, client):
    chroma = pytest.importorskip("llama_index.vector_stores.chroma")
    from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

    store = chroma.ChromaVectorStore(client.get_or_create_collection("nodes"))
    texts = ["The piano needs tuning", "昨日は雨でした"]
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d1")}
    nodes = [
        TextNode(text=text, id_=f"n{n}", metadata={"page": n}, relationships=source, embedding=one)
        for n, (text, one) in enumerate(zip(texts, place.embedder.embed(texts), strict=True))
    ]
    store.add(nodes)

    report = place.load(place.folder / "db")

    entries = {entry.content: entry for entry in place.entries().values()}
    assert [store.format for store in report.stores] == ["chroma/llamaindex"]
    assert set(entries) == set(texts)
    metadata = entries[texts[1]].metadata
    assert (metadata["page"], metadata["ref_doc_id"]) == (1, "d1")
    assert json.loads(metadata["import"]["fields"]["node_content"])["id_"] == "n1"
    assert place.load(place.folder / "db").reasons == {"unchanged": 2}


async def test_threads_that_llamaindexs_sql_store_writes_to_a_file(place):
    pytest.importorskip("aiosqlite")
    from llama_index.core.llms import ChatMessage
    from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

    url = f"sqlite+aiosqlite:///{place.folder / 'chat.db'}"
    store = SQLAlchemyChatStore(table_name="my_chats", async_database_uri=url)
    await store.add_messages("k", [ChatMessage(role="user", content=str(n)) for n in range(3)])
    await store.archive_oldest_messages("k", 1)
    await store._async_engine.dispose()

    report = place.load(place.folder / "chat.db")

    turns = place.tenant.thread("k").turns(status=None)
    assert (report.imported, report.status) == (3, "complete")
    assert [(turn.content, turn.status) for turn in turns] == [
        ("0", "archived"),
        ("1", "active"),
        ("2", "active"),
    ]


def test_threads_that_llamaindexs_older_sqlite_store_writes(place):
    sqlite = pytest.importorskip("llama_index.storage.chat_store.sqlite")
    from llama_index.core.llms import ChatMessage

    store = sqlite.SQLiteChatStore.from_params(str(place.folder / "chat.db"))
    store.set_messages("k1", [ChatMessage(role="user", content="Bonjour")])
    store.set_messages("k2", [ChatMessage(role="user", content="昨日は雨でした")])
    store.add_message("k1", ChatMessage(role="assistant", content="Salut"))
    store._session.kw["bind"].dispose()

    report = place.load(place.folder / "chat.db")

    assert [one.format for one in report.stores] == ["llamaindex/sql"]
    said = [turn.content for turn in place.tenant.thread("k1").turns()]
    assert said == ["Bonjour", "Salut"]
    assert report.threads == ("k1", "k2")


def test_messages_that_langchain_dumps_come_back_equal(place):
    messages = pytest.importorskip("langchain_core.messages")
    from langchain_hiermem import HierMemChatMessageHistory

    call = {"name": "look", "args": {"at": "sky"}, "id": "c1", "type": "tool_call"}
    said = [
        messages.HumanMessage("My umbrella is yellow", id="m1"),
        messages.AIMessage("", tool_calls=[call], id="m2"),
        messages.ToolMessage("blue", tool_call_id="c1", id="m3"),
        messages.AIMessage([{"type": "text", "text": "It is blue"}], id="m4"),
    ]
    path = place.write("chat_history.json", messages.messages_to_dict(said))

    assert place.load(path).status == "complete"
    history = HierMemChatMessageHistory(place.memory, tenant_id="alice", thread_id="chat_history")
    assert history.messages == said
