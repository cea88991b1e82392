"""How fast the nearest entries are found and stored, beside exact scans and Chroma.

Entries have vectors of 384 dimensions, a text of twelve words, a namespace, a tag and metadata;
see `scale_data.py`. Search figures are milliseconds of processor time for ten hits, of this process
with all its threads; on an idle machine that is what a caller waits. Vectors of questions are
given. NumPy has one thread. Stores are filled before they index, where that can be chosen.

    python benchmarks/search_scale.py [--sizes 10000 100000] [--million] [--keep DIR]

With --keep the stores stay, and a later run goes on where it was broken off or only asks.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
from rich.console import Console
from rich.table import Table
from scale_data import CHROMA_WHERE, questions, restrictions, stored_vectors, texts_of
from scale_stores import (
    SINGLES,
    build_chroma,
    build_hiermem,
    facts_of,
    opened_collection,
    opened_hiermem,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

HITS = 10
QUESTIONS = 200
WARMING = 10
MILLION = 1_000_000
SLOW_SECONDS = 20.0
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")

Answers = list[set[int]]


def nearest_places(
    vectors: NDArray[np.float32], asked: NDArray[np.float32], mask: NDArray[np.bool_] | None
) -> Answers:
    """Return the places of the exactly nearest vectors for each question."""
    within = np.arange(len(vectors)) if mask is None else np.flatnonzero(mask)
    best = [(np.empty(0), np.empty(0, np.int64)) for _ in asked]
    for start in range(0, len(within), 50_000):
        part = within[start : start + 50_000]
        for row, cosines in enumerate(asked @ np.asarray(vectors[part]).T):
            top = np.argpartition(-cosines, min(HITS, len(part) - 1))[:HITS]
            values = np.concatenate([best[row][0], cosines[top]])
            places = np.concatenate([best[row][1], part[top]])
            order = np.argsort(-values, kind="stable")[:HITS]
            best[row] = (values[order], places[order])
    return [set(places.tolist()) for _, places in best]


def measured(
    ask: Callable[[NDArray[np.float32]], set[int]],
    asked: NDArray[np.float32],
    truth: Answers | None,
) -> dict[str, float]:
    """Return the figures of a way to search: milliseconds, and the share of hits that it finds."""
    for vector in asked[:WARMING]:
        ask(vector)
    gc.collect()
    times: list[float] = []
    found: Answers = []
    begun = time.perf_counter()
    for vector in asked[WARMING:]:
        started = time.process_time()
        found.append(ask(vector))
        times.append((time.process_time() - started) * 1e3)
        if time.perf_counter() - begun > SLOW_SECONDS and len(times) >= 3:
            break
    figures = {"p50": float(np.percentile(times, 50)), "p99": float(np.percentile(times, 99))}
    if truth is not None:
        pairs = list(zip(found, truth[WARMING:], strict=False))
        figures["recall"] = sum(len(f & t) for f, t in pairs) / max(
            1, sum(len(t) for _, t in pairs)
        )
    return figures


def python_scan(rows: list[list[float]]) -> Callable[[NDArray[np.float32]], set[int]]:
    """Return an exact scan without any library."""

    def ask(vector: NDArray[np.float32]) -> set[int]:
        asked = vector.tolist()
        cosines = [math.sumprod(row, asked) if _SUMPROD else _product(row, asked) for row in rows]
        return set(sorted(range(len(rows)), key=cosines.__getitem__)[-HITS:])

    return ask


_SUMPROD = hasattr(math, "sumprod")


def _product(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def numpy_scan(vectors: NDArray[np.float32]) -> Callable[[NDArray[np.float32]], set[int]]:
    """Return an exact scan of a matrix in memory."""
    return lambda vector: set(np.argpartition(-(vectors @ vector), HITS)[:HITS].tolist())


def chroma_ask(collection: Any, where: Any = None) -> Callable[[NDArray[np.float32]], set[int]]:
    """Return a search by Chroma."""

    def ask(vector: NDArray[np.float32]) -> set[int]:
        answer = collection.query(
            query_embeddings=vector[None], n_results=HITS, where=where, include=["distances"]
        )
        return set(map(int, answer["ids"][0]))

    return ask


def hiermem_ask(memory: Any, **fields: Any) -> Callable[[NDArray[np.float32]], set[int]]:
    """Return a search by HierMem, hits with all their fields."""

    def ask(vector: NDArray[np.float32]) -> set[int]:
        return {hit.metadata["place"] for hit in memory.search(vector=vector, limit=HITS, **fields)}

    return ask


def measure(folder: Path, size: int, *, with_python: bool) -> dict[str, Any]:
    """Return the figures of every way to search so many entries."""
    vectors = stored_vectors(folder / "vectors.npy", size)
    asked = questions(QUESTIONS + WARMING)
    truth = nearest_places(vectors, asked, None)
    results: dict[str, Any] = {}
    if with_python:
        results["pure Python scan"] = measured(python_scan(vectors[:].tolist()), asked, truth)
    results["NumPy scan"] = measured(numpy_scan(np.array(vectors)), asked, truth)
    shares = restrictions(size)
    truths = {
        share: {kind: nearest_places(vectors, asked, mask) for kind, (_, mask) in kinds.items()}
        for share, kinds in shares.items()
    }
    results |= _chroma_figures(folder, asked, truth, truths)
    with opened_hiermem(folder) as hiermem:
        memory = hiermem.tenant("bench").memory
        memory.wait_for_index()
        results["HierMem"] = measured(hiermem_ask(memory), asked, truth)
        for share, kinds in shares.items():
            for kind, (fields, _) in kinds.items():
                ask = hiermem_ask(memory, **fields)
                results[f"HierMem, {share} by {kind}"] = measured(ask, asked, truths[share][kind])
        results |= _text_figures(memory, asked)
    return results


def _chroma_figures(
    folder: Path, asked: NDArray[np.float32], truth: Answers, truths: dict[str, dict[str, Answers]]
) -> dict[str, Any]:
    collection = opened_collection(folder)
    results = {"Chroma": measured(chroma_ask(collection), asked, truth)}
    for share, where in CHROMA_WHERE.items():
        exact = truths[share]["metadata"]
        results[f"Chroma, {share} by where"] = measured(chroma_ask(collection, where), asked, exact)
    return results


def _text_figures(memory: Any, asked: NDArray[np.float32]) -> dict[str, Any]:
    """Return the figures of searches for five words, common ones as likely as in texts."""
    texts = iter(texts_of(5, 3 * len(asked), words=5))

    def keyword(_: NDArray[np.float32]) -> set[int]:
        return {len(memory.search(next(texts), mode="keyword", limit=HITS))}

    def hybrid(vector: NDArray[np.float32]) -> set[int]:
        return {len(memory.search(next(texts), vector=vector, limit=HITS))}

    return {
        "HierMem, keyword": measured(keyword, asked, None),
        "HierMem, hybrid": measured(hybrid, asked, None),
    }


def resident_bytes(folder: Path, store: str) -> int:
    """Return by how much a fresh process grows that opens a store and searches it."""
    command = [sys.executable, __file__, "--resident", store, "--keep", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - itself
    return int(done.stdout.split()[-1])


def print_resident(folder: Path, store: str) -> None:
    """Print how many bytes this process grows by, the libraries' code left out."""
    process = psutil.Process()
    asked = questions(50)
    before = process.memory_info().rss
    if store == "hiermem":
        with opened_hiermem(folder) as hiermem:
            memory = hiermem.tenant("bench").memory
            memory.wait_for_index()
            for vector in asked:
                hiermem_ask(memory)(vector)
                hiermem_ask(memory, namespace="h0")(vector)
            print(process.memory_info().rss - before)
        return
    collection = opened_collection(folder)
    for vector in asked:
        chroma_ask(collection)(vector)
    print(process.memory_info().rss - before)


def search_table(results: dict[int, dict[str, Any]]) -> Table:
    """Return the search figures for reading."""
    table = Table(title=f"{HITS} nearest entries: milliseconds p50 / p99, recall")
    table.add_column("")
    for size in results:
        table.add_column(f"{size:,}", justify="right")
    names = dict.fromkeys(name for one in results.values() for name in one["search"])
    for name in names:
        table.add_row(name, *(_cell(one["search"].get(name)) for one in results.values()))
    return table


def _cell(figures: dict[str, float] | None) -> str:
    if figures is None:
        return "-"
    recall = f"  {figures['recall']:.3f}" if "recall" in figures else ""
    return f"{figures['p50']:,.2f} / {figures['p99']:,.2f}{recall}"


def store_table(results: dict[int, dict[str, Any]]) -> Table:
    """Return what storing costs, for reading."""
    table = Table(title="Stored entries a second, acknowledged; megabytes resident")
    table.add_column("")
    for size in results:
        table.add_column(f"{size:,}", justify="right")
    rows: dict[str, Callable[[int, dict[str, Any]], float]] = {
        "HierMem in bulk": lambda n, f: n / f["hiermem_bulk"],
        "HierMem in bulk, by processor time": lambda n, f: n / f["hiermem_bulk_processor"],
        "HierMem one by one, by processor time": lambda _, f: SINGLES / f["hiermem_single"],
        "HierMem bulk_get, times faster than one by one": lambda _, f: (
            f["hiermem_get"] / f["hiermem_bulk_get"]
        ),
        "HierMem bulk_delete, times faster": lambda _, f: (
            f["hiermem_delete"] / f["hiermem_bulk_delete"]
        ),
        "HierMem, processor seconds until indexed": lambda _, f: f["hiermem_index_processor"],
        "Chroma in bulk": lambda n, f: n / f["chroma_bulk"],
        "Chroma in bulk, by processor time": lambda n, f: n / f["chroma_bulk_processor"],
        "Chroma one by one, by processor time": lambda _, f: SINGLES / f["chroma_single"],
        "HierMem resident": lambda _, f: f["hiermem_resident"] / 1e6,
        "Chroma resident": lambda _, f: f["chroma_resident"] / 1e6,
    }
    for name, figure in rows.items():
        table.add_row(name, *(_figure(figure, size, one["built"]) for size, one in results.items()))
    return table


def _figure(
    figure: Callable[[int, dict[str, Any]], float], size: int, built: dict[str, Any]
) -> str:
    try:
        return f"{figure(size, built):,.1f}"
    except (KeyError, ZeroDivisionError):
        return "-"


def verdicts(results: dict[int, dict[str, Any]]) -> list[tuple[str, bool]]:
    """Return the targets, and whether this run met them."""
    found: list[tuple[str, bool]] = []
    for size, one in results.items():
        search, built = one["search"], one["built"]
        ours = {name: figures for name, figures in search.items() if name.startswith("HierMem")}
        near = {name: figures for name, figures in ours.items() if "recall" in figures}
        worst = max(figures["p99"] for name, figures in near.items() if "," in name)
        recall = min(figures["recall"] for figures in near.values())
        plain = search["HierMem"]["p99"]
        found += [
            (f"{size:,}: p99 at most 20 ms: {plain:.1f}", plain <= 20),
            (f"{size:,}: p99 with any restriction at most 100 ms: {worst:.1f}", worst <= 100),
            (f"{size:,}: recall at least 0.95: {recall:.3f}", recall >= 0.95),
        ]
        rate = size / built["hiermem_bulk_processor"]
        found.append((f"{size:,}: at least 10,000 stored a second: {rate:,.0f}", rate >= 10_000))
        if size == 100_000:
            found += _verdicts_at_100_000(search, built)
    return found


def _verdicts_at_100_000(search: dict[str, Any], built: dict[str, Any]) -> list[tuple[str, bool]]:
    times = search.get("pure Python scan", {}).get("p50", math.nan) / search["HierMem"]["p50"]
    found = [(f"150 times faster than pure Python: {times:,.0f}", times >= 150)]
    for share in CHROMA_WHERE:
        mine = search[f"HierMem, {share} by metadata"]["p50"]
        ratio = search[f"Chroma, {share} by where"]["p50"] / mine
        found.append((f"{share}: 20 times faster than Chroma's where: {ratio:.0f}", ratio >= 20))
    megabytes = built["hiermem_resident"] / 1e6
    found.append((f"at most 400 MB resident: {megabytes:.0f}", megabytes <= 400))
    return found


def run(sizes: Sequence[int], keep: Path) -> dict[int, dict[str, Any]]:
    """Build what is missing, and measure."""
    results: dict[int, dict[str, Any]] = {}
    for size in sizes:
        folder = keep / str(size)
        folder.mkdir(parents=True, exist_ok=True)
        print(f"  {size:,} entries: storing", flush=True)
        build_hiermem(folder, size)
        build_chroma(folder, size)
        print(f"  {size:,} entries: searching", flush=True)
        search = measure(folder, size, with_python=size <= 100_000)
        built = facts_of(folder)
        built |= {f"{store}_resident": resident_bytes(folder, store) for store in _STORES}
        results[size] = {"search": search, "built": built}
    return results


_STORES = ("hiermem", "chroma")


def main() -> None:
    """Measure, print the tables, and write the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument(
        "--million", action="store_true", help="1,000,000 too: the better part of an hour"
    )
    parser.add_argument("--keep", type=Path, help="where the stores stay")
    parser.add_argument("--resident", choices=_STORES, help=argparse.SUPPRESS)
    parser.add_argument("--output", default="benchmarks/results/search_scale.json")
    options = parser.parse_args()
    if options.resident:
        print_resident(options.keep, options.resident)
        return
    if not ONE_THREAD.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | ONE_THREAD)  # noqa: S606 - itself
    sizes = [*options.sizes, *([MILLION] if options.million else [])]
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        results = run(sizes, options.keep or Path(folder))
    console = Console(width=130)
    console.print(search_table(results), store_table(results))
    print(f"load of the machine: {load:.1f} at the start, {os.getloadavg()[0]:.1f} at the end")
    for text, is_met in verdicts(results):
        console.print(("met:     " if is_met else "NOT met: ") + text)
    output = Path(options.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
