"""How much of what was said long ago is found again: LoCoMo, in one run beside the peers.

Each conversation is a thread of a tenant of its own, and every question is asked at its end. First
the ranking: the share of the evidence among the first k hits. Then contexts: the share of it that
the model would read within a budget of tokens, as `Thread.context` builds it with its defaults.

The peers get the same rows. Vectors are by the same embedder; LangChain and LlamaIndex are used as
they come: `InMemoryVectorStore` and `VectorStoreIndex` as retrievers. BM25 is SQLite's FTS5 with
its default tokenizer, any word of the question. A peer's context is its hits in order, whole
lines, while they fit.

    python benchmarks/recall_locomo.py --data locomo.json [--output FILE]
"""

from __future__ import annotations

import argparse
import json
import re
import secrets
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from locomo import ALL, CUTS, Conversation, Figures, Question, ranking_figures, read
from rich.console import Console
from rich.table import Table

from hiermem_core import HierMem
from hiermem_core.embedding.minilm import MiniLM

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Ranker = Callable[[Question], Sequence[str]]

BUDGETS = (500, 1000, 2000, 4000)
DEEPEST = max(CUTS)
_WORD = re.compile(r"\w+")


class Measured:
    """What one way of finding gives.

    Attributes:
        seconds: Of each ranking.
    """

    def __init__(self) -> None:
        self.ranking = Figures()
        self.contexts = Figures()
        self.seconds: list[float] = []

    def result(self) -> dict[str, Any]:
        """Return the figures, in percent, and the median time of a ranking."""
        milliseconds = 1000 * statistics.median(self.seconds) if self.seconds else None
        return {
            "ranking": self.ranking.percent(),
            "context": self.contexts.percent(),
            "milliseconds": milliseconds and round(milliseconds, 2),
        }


def measure_hiermem(
    conversations: Sequence[Conversation], *, location: str | None = None, **options: Any
) -> Measured:
    """Measure HierMem at a location of its own: in a folder, unless one is given."""
    measured = Measured()
    with (
        tempfile.TemporaryDirectory() as folder,
        HierMem.open(location or folder, **options) as hiermem,
    ):
        for conversation in conversations:
            tenant = hiermem.tenant(conversation.name)
            thread = tenant.thread("talk")
            thread.append([turn.draft() for turn in conversation.turns])
            tenant.memory.wait_for_index()
            for question in conversation.questions:
                begin = time.perf_counter()
                hits = thread.recall(question.text, limit=DEEPEST)
                measured.seconds.append(time.perf_counter() - begin)
                found = [hit.id for hit in hits]
                measured.ranking.add(question, ranking_figures(found, question.evidence))
                figures = {}
                for budget in BUDGETS:
                    context = thread.context(current=question.text, budget_tokens=budget)
                    shown = {turn.id for turn in context.messages} | {h.id for h in context.hits}
                    figures[str(budget)] = _share(shown, question)
                measured.contexts.add(question, figures)
    return measured


def measure_peer(
    conversations: Sequence[Conversation], make: Callable[[Conversation], Ranker]
) -> Measured:
    """Measure a ranker that is made for each conversation."""
    measured = Measured()
    for conversation in conversations:
        rank = make(conversation)
        costs = _costs(conversation)
        for question in conversation.questions:
            begin = time.perf_counter()
            found = rank(question)
            measured.seconds.append(time.perf_counter() - begin)
            measured.ranking.add(question, ranking_figures(found[:DEEPEST], question.evidence))
            figures = {str(b): _share(_within(found, costs, b), question) for b in BUDGETS}
            measured.contexts.add(question, figures)
    return measured


SERVED: dict[str, dict[str, Any]] = {
    "HierMem, PostgreSQL": {},
    "HierMem, PostgreSQL, no embedder": {"local_embedder": False},
}


def newest_turns(conversation: Conversation) -> Ranker:
    """Return the newest turns, whatever is asked: what a sliding window shows."""
    newest = [turn.id for turn in reversed(conversation.turns)]
    return lambda _: newest


def bm25(conversation: Conversation) -> Ranker:
    """Return what FTS5 finds by any word of the question."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE said USING fts5(id UNINDEXED, line)")
    rows = [(turn.id, turn.line) for turn in conversation.turns]
    connection.executemany("INSERT INTO said VALUES (?, ?)", rows)

    def rank(question: Question) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in _WORD.findall(question.text))
        query = "SELECT id FROM said WHERE said MATCH ? ORDER BY rank LIMIT 200"
        return [row[0] for row in connection.execute(query, (words,))]

    return rank


def vectors_of_text(conversation: Conversation) -> Ranker:
    """Return the nearest texts, without their speakers."""
    embedder = MiniLM()
    matrix = embedder.embed([turn.text for turn in conversation.turns])
    ids = [turn.id for turn in conversation.turns]

    def rank(question: Question) -> list[str]:
        cosines = matrix @ embedder.embed([question.text])[0]
        return [ids[place] for place in np.argsort(-cosines)[:200]]

    return rank


def langchain_retriever(conversation: Conversation) -> Ranker:
    """Return what LangChain's vector store retriever finds in the lines."""
    from langchain_core.documents import Document  # noqa: PLC0415 - a peer of its own
    from langchain_core.embeddings import Embeddings  # noqa: PLC0415 - as above
    from langchain_core.vectorstores import InMemoryVectorStore  # noqa: PLC0415 - as above

    class Local(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return MiniLM().embed(texts).tolist()

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    store = InMemoryVectorStore(Local())
    store.add_documents(
        [Document(turn.line, metadata={"id": turn.id}) for turn in conversation.turns]
    )
    retriever = store.as_retriever(search_kwargs={"k": 200})
    return lambda asked: [found.metadata["id"] for found in retriever.invoke(asked.text)]


def llamaindex_retriever(conversation: Conversation) -> Ranker:
    """Return what LlamaIndex's vector index retriever finds in the lines."""
    from llama_index.core import VectorStoreIndex  # noqa: PLC0415 - a peer of its own
    from llama_index.core.embeddings import BaseEmbedding  # noqa: PLC0415 - as above
    from llama_index.core.schema import TextNode  # noqa: PLC0415 - as above

    class Local(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return MiniLM().embed([text])[0].tolist()

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return MiniLM().embed(texts).tolist()

        _get_query_embedding = _get_text_embedding

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    nodes = [TextNode(id_=turn.id, text=turn.line) for turn in conversation.turns]
    index = VectorStoreIndex(nodes, embed_model=Local())
    retriever = index.as_retriever(similarity_top_k=200)
    return lambda asked: [found.node.node_id for found in retriever.retrieve(asked.text)]


PEERS: dict[str, Callable[[Conversation], Ranker]] = {
    "newest turns": newest_turns,
    "vectors of the text": vectors_of_text,
    "LangChain retriever": langchain_retriever,
    "LlamaIndex retriever": llamaindex_retriever,
    "BM25 (FTS5)": bm25,
}


def _costs(conversation: Conversation) -> dict[str, int]:
    with HierMem.open(":memory:", local_embedder=False) as hiermem:
        return {turn.id: hiermem.counter.count(turn.line + "\n") for turn in conversation.turns}


def _within(found: Sequence[str], costs: dict[str, int], budget: int) -> set[str]:
    shown: set[str] = set()
    for turn_id in found:
        if costs[turn_id] <= budget:
            budget -= costs[turn_id]
            shown.add(turn_id)
    return shown


def _share(shown: set[str | None], question: Question) -> float:
    return len(question.evidence & shown) / len(question.evidence)


def table(results: dict[str, dict[str, Any]]) -> Table:
    """Return the figures of categories 1 to 4 as a table, in percent."""
    names = ("R@5", "R@10", "R@20", "R@50", "MRR", "session@5")
    heads = [*names, *(f"{budget} tokens" for budget in BUDGETS), "ms"]
    printed = Table("", *heads, title="LoCoMo, categories 1 to 4, percent")
    for name, result in results.items():
        ranking, context = result["ranking"][ALL], result["context"][ALL]
        figures = [*(ranking[n] for n in names), *(context[str(b)] for b in BUDGETS)]
        printed.add_row(name, *(f"{figure:.1f}" for figure in figures), str(result["milliseconds"]))
    return printed


def main() -> None:
    """Measure, print a table, and write JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo JSON file")
    parser.add_argument("--output", type=Path, help="write the figures there, as JSON")
    parser.add_argument("--only-hiermem", action="store_true", help="leave the peers out")
    parser.add_argument("--server", help="a PostgreSQL database to measure on too, by its URL")
    options = parser.parse_args()
    conversations = read(options.data)
    results = {
        "HierMem": measure_hiermem(conversations).result(),
        "HierMem, no embedder": measure_hiermem(conversations, local_embedder=False).result(),
    }
    for name, given in (SERVED if options.server else {}).items():
        schema = f"{options.server}?schema=locomo_{secrets.token_hex(4)}"
        results[name] = measure_hiermem(conversations, location=schema, **given).result()
    for name, make in ({} if options.only_hiermem else PEERS).items():
        results[name] = measure_peer(conversations, make).result()
    Console(width=160).print(table(results))
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(results, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
