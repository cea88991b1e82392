"""What a LangGraph store costs: HierMemStore beside InMemoryStore and SqliteStore.

HierMem is on disk and commits each put; InMemoryStore keeps dictionaries; SqliteStore is measured
in memory and on disk. All get the same items and the same embeddings, which cost next to nothing.
Figures are medians of processor time of this process with all its threads, in milliseconds, and in
brackets the ratio to InMemoryStore. Needs the group `bench`. SqliteStore searches vectors by an
extension of SQLite, so that it has no such figures where Python was built without them.

    python benchmarks/langgraph_store.py [--sizes 1000 100000] [--output FILE]
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sqlite3
import statistics
import tempfile
import time
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from rich.console import Console
from rich.table import Table

from hiermem_core import HierMem
from langchain_hiermem import HierMemStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langgraph.store.base import BaseStore

DIMENSIONS = 384
WORDS = (Path(__file__).parent / "words.txt").read_text(encoding="utf-8").split()
AT_ONCE = 500
NAMESPACES = 20
KINDS = 50

BASE = "InMemoryStore"
HAS_EXTENSIONS = hasattr(sqlite3.Connection, "enable_load_extension")


class Hashed(Embeddings):
    """A direction by the words of a text, made once a word."""

    model = "hashed words"

    def __init__(self) -> None:
        self._words: dict[str, Any] = {}

    def embed_documents(self, texts: list[str]) -> list[Any]:
        """Return the sum of the words' directions, a float32 array a text."""
        return [sum(map(self._word, text.split()), np.zeros(DIMENSIONS, "f4")) for text in texts]

    def embed_query(self, text: str) -> Any:
        """Return the vector of a question."""
        return self.embed_documents([text])[0]

    def _word(self, word: str) -> Any:
        if word not in self._words:
            dice = np.random.default_rng(zlib.crc32(word.encode()))
            self._words[word] = dice.standard_normal(DIMENSIONS, dtype="f4")
        return self._words[word]


def items(size: int) -> Iterator[PutOp]:
    """Yield `size` items of twelve words, of 50 kinds in 20 namespaces."""
    dice = random.Random(size)
    for number in range(size):
        text = " ".join(dice.choices(WORDS, k=12))
        value = {"text": text, "kind": number % KINDS, "number": number}
        yield PutOp(("bench", str(number % NAMESPACES)), f"k{number}", value, ["text"])


def opened(folder: Path, stack: ExitStack) -> dict[str, BaseStore]:
    """Return the empty stores."""
    embed = Hashed()
    index: Any = {"dims": DIMENSIONS, "embed": embed, "fields": ["text"]}
    hiermem = stack.enter_context(HierMem.open(folder / "hiermem", embedder=embed))
    sqlite = {
        name: stack.enter_context(
            SqliteStore.from_conn_string(location, index=index if HAS_EXTENSIONS else None)
        )
        for name, location in (
            ("SqliteStore in memory", ":memory:"),
            ("SqliteStore", str(folder / "sqlite.db")),
        )
    }
    for store in sqlite.values():
        store.setup()
    ours = HierMemStore(hiermem.tenant("bench"), index=index)
    return {"HierMemStore": ours, BASE: InMemoryStore(index=index), **sqlite}


def fill(store: BaseStore, size: int) -> float:
    """Put the items in batches; return the seconds it took."""
    started = time.perf_counter()
    some: list[PutOp] = []
    for item in items(size):
        some.append(item)
        if len(some) == AT_ONCE:
            store.batch(some)
            some = []
    store.batch(some)
    return time.perf_counter() - started


def calls(store: BaseStore, size: int) -> dict[str, Callable[[], object]]:
    """Return what is measured, by name."""
    dice = random.Random(1)
    fresh = iter(items(1_000_000))

    def put(*, index: Literal[False] | list[str]) -> None:
        item = next(fresh)
        store.put(("bench", "fresh"), item.key, item.value, index=index)

    def asked() -> str:
        return " ".join(dice.choices(WORDS, k=3))

    def key() -> tuple[tuple[str, str], str]:
        number = dice.randrange(size)
        return ("bench", str(number % NAMESPACES)), f"k{number}"

    everything = {
        "get": lambda: store.get(*key()),
        "filter search": lambda: store.search(("bench",), filter={"kind": dice.randrange(KINDS)}),
        "filter search in a namespace": lambda: store.search(
            ("bench", "7"), filter={"number": {"$gte": dice.randrange(size)}}
        ),
        "vector search": lambda: store.search(("bench",), query=asked()),
        "vector search with a filter": lambda: store.search(
            ("bench",), query=asked(), filter={"kind": dice.randrange(KINDS)}
        ),
        "put": lambda: put(index=False),
        "put with a vector": lambda: put(index=["text"]),
    }
    if isinstance(store, SqliteStore) and not HAS_EXTENSIONS:
        return {name: call for name, call in everything.items() if "vector" not in name}
    return everything


def median_milliseconds(
    call: Callable[[], object], *, at_most: float = 4.0, rounds: int = 200
) -> float:
    """Return the median processor time of a call, after three to warm up."""
    for _ in range(3):
        call()
    gc.collect()
    times: list[float] = []
    started = time.perf_counter()
    while len(times) < rounds and (time.perf_counter() - started < at_most or len(times) < 5):
        before = time.process_time()
        call()
        times.append(time.process_time() - before)
    return 1000 * statistics.median(times)


def measured(size: int) -> dict[str, dict[str, float]]:
    """Return milliseconds by store and operation."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        stores = opened(Path(folder), stack)
        filled = {name: fill(store, size) for name, store in stores.items()}
        ours: Any = stores["HierMemStore"]
        ours._places.tenant.memory.wait_for_index(3600)  # noqa: SLF001 - searches begin settled
        found = {
            name: {of: median_milliseconds(call) for of, call in calls(store, size).items()}
            for name, store in stores.items()
        }
    for name, seconds in filled.items():
        found[name]["put in batches of 500"] = 1000 * seconds / size
    return found


def table_of(size: int, figures: dict[str, dict[str, float]]) -> Table:
    """Return the figures of one size as a table."""
    table = Table(title=f"{size:,} items: milliseconds of a call (ratio to {BASE})")
    table.add_column("")
    for name in figures:
        table.add_column(name, justify="right")
    for operation, base in figures[BASE].items():
        values = [found.get(operation) for found in figures.values()]
        shown = ["-" if one is None else f"{one:.3f} ({one / base:.2f})" for one in values]
        table.add_row(operation, *shown)
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 100_000])
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    console = Console(width=150)
    results = {}
    for size in given.sizes:
        results[str(size)] = measured(size)
        console.print(table_of(size, results[str(size)]))
    if given.output is not None:
        given.output.parent.mkdir(parents=True, exist_ok=True)
        given.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
