"""The stores that `search_scale.py` compares; what a broken-off run made is gone on with."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import chromadb
from chromadb.config import Settings
from scale_data import CHUNK, entries, stored_vectors, texts_of, vectors_of

from hiermem_core import HierMem

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

SINGLES = 300
FIELDS = ("half", "percent", "permille")


def opened_hiermem(folder: Path, **options: Any) -> HierMem:
    """Open the location of a size."""
    return HierMem.open(folder / "hiermem", indexed_metadata=FIELDS, **options)


def opened_collection(folder: Path) -> Any:
    """Open the collection of a size; but for the space, as Chroma makes one."""
    client = chromadb.PersistentClient(
        str(folder / "chroma"), Settings(_env_file=None, anonymized_telemetry=False)
    )
    return client.get_or_create_collection(
        "entries", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
    )


def facts_of(folder: Path) -> dict[str, float]:
    """Return what was measured when the stores were made."""
    path = folder / "built.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def note(folder: Path, **facts: float) -> None:
    """Keep what was measured; seconds of a run that was broken off are added to."""
    known = facts_of(folder)
    (folder / "built.json").write_text(json.dumps(known | facts, indent=1), encoding="utf-8")


def build_hiermem(folder: Path, size: int) -> None:
    """Store all entries in bulk, then have them indexed, then store some one by one.

    The index is not built meanwhile, as it is by default: its threads share the interpreter lock
    and the cores with whoever stores.
    """
    vectors = stored_vectors(folder / "vectors.npy", size)
    with opened_hiermem(folder, index_threshold=10 * size) as hiermem:
        memory = hiermem.tenant("bench").memory
        for chunk in entries(size, min(size, memory.stats().entries)):
            place = chunk[0]["metadata"]["place"]
            for entry, vector in zip(chunk, vectors[place : place + len(chunk)], strict=True):
                entry["embedding"] = vector
            _timed(folder, "hiermem_bulk", lambda chunk=chunk: _stored(memory, chunk))
    with opened_hiermem(folder) as hiermem:
        memory = hiermem.tenant("bench").memory
        if "hiermem_delete" not in facts_of(folder):
            _index_and_store_singles(folder, memory, spare_entries(size))
        memory.wait_for_index()


def _index_and_store_singles(folder: Path, memory: Any, spare: list[dict[str, Any]]) -> None:
    first, *singles = ({**entry, "namespace": "spare"} for entry in spare)
    ids = [memory.store(first)]
    _timed(folder, "hiermem_index", memory.wait_for_index)
    note(folder, hiermem_single=_seconds(lambda: ids.extend(map(memory.store, singles))))
    note(folder, hiermem_get=_seconds(lambda: [memory.retrieve(one) for one in ids]))
    note(folder, hiermem_bulk_get=_seconds(lambda: memory.bulk_get(ids)))
    half = len(ids) // 2
    note(folder, hiermem_delete=_seconds(lambda: [memory.delete(one) for one in ids[:half]]))
    note(folder, hiermem_bulk_delete=_seconds(lambda: memory.bulk_delete(ids[half:])))


def spare_entries(size: int) -> list[dict[str, Any]]:
    """Return entries beside those that are searched, with their vectors."""
    texts, vectors = texts_of(size + 1, SINGLES), vectors_of(size + 1, SINGLES)
    return [
        {"content": text, "embedding": vector, "tags": ("spare",), "metadata": {"place": -1}}
        for text, vector in zip(texts, vectors, strict=True)
    ]


def _stored(memory: Any, chunk: list[dict[str, Any]]) -> None:
    memory.bulk_insert(chunk).raise_for_errors()


def build_chroma(folder: Path, size: int) -> None:
    """Add all entries in bulk, and some one by one: with texts and metadata, as is usual."""
    vectors = stored_vectors(folder / "vectors.npy", size)
    collection = opened_collection(folder)
    done = collection.count() // CHUNK * CHUNK if collection.count() < size else size
    for chunk in entries(size, done):
        place = chunk[0]["metadata"]["place"]
        for start in range(0, len(chunk), 5000):
            part = chunk[start : start + 5000]
            first = place + start
            _timed(
                folder,
                "chroma_bulk",
                lambda part=part, first=first: _added(
                    collection, part, vectors[first : first + len(part)], first
                ),
            )
    if done == size:
        return
    spare = spare_entries(size)
    one_by_one = [(entry, entry.pop("embedding")) for entry in spare]
    note(
        folder,
        chroma_single=_seconds(
            lambda: [
                _added(collection, [entry], vector[None], size + place)
                for place, (entry, vector) in enumerate(one_by_one)
            ]
        ),
    )
    collection.delete(ids=[str(size + place) for place in range(len(spare))])


def _added(
    collection: Any, part: list[dict[str, Any]], vectors: NDArray[np.float32], first: int
) -> None:
    collection.upsert(
        ids=[str(first + place) for place in range(len(part))],
        embeddings=vectors,
        documents=[entry["content"] for entry in part],
        metadatas=[entry["metadata"] for entry in part],
    )


def _timed(folder: Path, name: str, call: Callable[[], object]) -> None:
    """Add the seconds of a call, of the clock and of the processor, to what is kept."""
    started = time.perf_counter()
    processor = _seconds(call)
    clock = time.perf_counter() - started
    known = facts_of(folder)
    both = {name: clock, f"{name}_processor": processor}
    note(folder, **{key: known.get(key, 0.0) + seconds for key, seconds in both.items()})


def _seconds(call: Callable[[], object]) -> float:
    """Return the seconds of the processor that a call takes, of all threads meanwhile."""
    started = time.process_time()
    call()
    return time.process_time() - started
