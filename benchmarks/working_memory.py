"""What Layer 1 costs and saves, beside a plain `cachetools.TTLCache` with a lock.

Times are medians of processor time of one core, for answers of ten hits. The plain cache hands out
the stored object itself, which every caller can change, checks no generation, and lets callers that
come at once all load; LangChain's `InMemoryCache` (a cache of model answers) does the same without
a lock or an age.

The workload of an agent loop: 20,000 searches among 200 questions by Zipf's law with exponent 1.2,
100 answers kept, and every so many searches a write, after which no answer of before is given.

    python benchmarks/working_memory.py [--calls 1000000] [--output FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import gc
import itertools
import json
import random
import statistics
import tempfile
import threading
import time
import tracemalloc
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from cachetools import TTLCache, cached
from langchain_core.caches import InMemoryCache
from langchain_core.outputs import Generation
from rich.console import Console
from rich.table import Table

from hiermem_core import AsyncHierMem, HierMem, MemoryService, WorkingMemory
from hiermem_core.testing import FakeEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable

QUESTIONS, EXPONENT, SEARCHES, ENTRIES = 200, 1.2, 20_000, 100
LOAD_SECONDS = 0.05
WORDS = (Path(__file__).parent / "words.txt").read_text(encoding="utf-8").split()

Figures = dict[str, float]


def microseconds(call: Callable[[], object], *, number: int = 500, rounds: int = 15) -> float:
    """Return the median processor time of a call in microseconds, after some to warm up."""
    for _ in range(20):
        call()
    gc.collect()
    times = []
    for _ in range(rounds):
        before = time.process_time()
        for _ in range(number):
            call()
        times.append((time.process_time() - before) / number)
    return statistics.median(times) * 1e6


def filled(service: MemoryService) -> MemoryService:
    """Store entries that `the common word` finds more than ten of."""
    dice = random.Random(1)
    service.bulk_insert(
        {"content": "common " + " ".join(dice.choices(WORDS, k=20)), "metadata": {"n": number}}
        for number in range(50)
    )
    return service


def measure_hits(folder: str) -> Figures:
    """Return the microseconds of a hit, and of what it saves."""
    figures: Figures = {}
    for name, backend in (("in process", "in_memory"), ("with the check on SQLite", "hybrid")):
        with HierMem.open(
            f"{folder}/{backend}", backend=backend, embedder=FakeEmbedder()
        ) as opened:
            service = filled(opened.tenant("bench").memory)
            memory = WorkingMemory(service)
            figures[f"hit {name}"] = microseconds(partial(memory.search, "common"))
            figures[f"search {name}"] = microseconds(partial(service.search, "common"), number=20)
            figures[f"generation {name}"] = microseconds(service.generation)
    figures |= measure_awaited_hits(folder)
    answer = ten_hits()
    memory = WorkingMemory(lambda _: answer)
    figures["hit of a function"] = microseconds(lambda: memory.search("common"))
    figures["hit of a short text"] = microseconds(short_text().__next__)
    figures |= measure_peers(answer)
    return figures


def short_text() -> Any:
    """Yield hits of an answer that needs no copy."""
    memory = WorkingMemory(lambda query: query)
    while True:
        yield memory.search("common")


def measure_awaited_hits(folder: str) -> Figures:
    """Return the microseconds of an awaited hit, whose check runs in a private thread."""

    async def ask(memory: WorkingMemory, times: int) -> float:
        await memory.asearch("common")
        before = time.perf_counter()
        for _ in range(times):
            await memory.asearch("common")
        return (time.perf_counter() - before) / times * 1e6

    with HierMem.open(f"{folder}/hybrid", embedder=FakeEmbedder()) as opened:
        twin = AsyncHierMem(opened).tenant("bench").memory
        return {
            "awaited hit with the check on SQLite": asyncio.run(ask(WorkingMemory(twin), 2000)),
            "awaited hit of a function": asyncio.run(ask(WorkingMemory(ten_hits_of), 2000)),
        }


def measure_peers(answer: Any) -> Figures:
    """Return the microseconds of a hit of plain caches."""
    lock = threading.RLock()
    plain = cached(TTLCache(ENTRIES, 60), lock=lock)(lambda _: answer)
    langchain = InMemoryCache()
    langchain.update("common", "model", [Generation(text=hit.content) for hit in answer])
    return {
        "TTLCache and lock, the object itself": microseconds(lambda: plain("common")),
        "TTLCache and lock, with deepcopy": microseconds(
            lambda: copy.deepcopy(plain("common")), number=50
        ),
        "LangChain InMemoryCache, the object itself": microseconds(
            lambda: langchain.lookup("common", "model")
        ),
    }


def ten_hits() -> Any:
    """Return a search result of ten hits."""
    with HierMem.open(":memory:", embedder=FakeEmbedder()) as opened:
        return filled(opened.tenant("bench").memory).search("common")


_ANSWER = ten_hits()


def ten_hits_of(query: str) -> Any:
    """Answer any query with ten hits, at no cost."""
    del query
    return _ANSWER


def measure_misses() -> Figures:
    """Return the microseconds that a miss takes beside its load."""
    memory = WorkingMemory(ten_hits_of)
    counter = itertools.count()
    return {"miss": microseconds(lambda: memory.search(f"common {next(counter)}"), number=200)}


def measure_flights() -> dict[str, Figures]:
    """Return loads and seconds of equal calls at once, each load of 50 milliseconds."""
    table: dict[str, Figures] = {}
    for count in (20, 200):
        for name, share in (("threads", 1.0), ("tasks", 0.0), ("threads and tasks", 0.5)):
            loads: list[str] = []
            memory = WorkingMemory(slow_search(loads))
            took = together(memory.search, memory.asearch, count, int(count * share))
            table[f"{count} {name}"] = {"loads": len(loads), "seconds": took}
        loads = []
        plain = cached(TTLCache(ENTRIES, 60), lock=threading.RLock())(slow_search(loads))
        took = together(plain, None, count, count)
        table[f"{count} threads, TTLCache and lock"] = {"loads": len(loads), "seconds": took}
    return table


def slow_search(loads: list[str]) -> Callable[[str], str]:
    """Return a search that notes its loads."""

    def search(query: str) -> str:
        loads.append(query)
        time.sleep(LOAD_SECONDS)
        return query

    return search


def together(search: Any, asearch: Any, count: int, threads: int) -> float:
    """Return the seconds that equal calls take which start at once."""
    start = threading.Barrier(threads + (threads < count) + 1)

    def call() -> None:
        start.wait()
        search("common")

    async def gather() -> None:
        await asyncio.gather(*(asearch("common") for _ in range(count - threads)))

    def run_loop() -> None:
        start.wait()
        asyncio.run(gather())

    workers = [threading.Thread(target=call) for _ in range(threads)]
    workers += [threading.Thread(target=run_loop)] * (threads < count)
    for worker in workers:
        worker.start()
    start.wait()
    before = time.perf_counter()
    for worker in workers:
        worker.join()
    return time.perf_counter() - before


def measure_workload() -> Figures:
    """Return the share of hits, by how many searches there are for each write."""
    weights = [1 / (rank + 1) ** EXPONENT for rank in range(QUESTIONS)]
    questions = random.Random(7).choices(range(QUESTIONS), weights, k=SEARCHES)
    rates: Figures = {}
    for every in (0, 1000, 200, 50):
        writes = itertools.count(1)
        generation = [0]
        now = partial(generation.__getitem__, 0)
        memory = WorkingMemory(repr, max_entries=ENTRIES, generation=now)
        for question in questions:
            if every and next(writes) % every == 0:
                generation[0] += 1
            memory.search(f"question {question}")
        name = f"a write every {every} searches" if every else "no writes"
        rates[name] = memory.stats().hit_rate
    return rates


def measure_memory() -> Figures:
    """Return the bytes of 100 answers of ten hits each, with contents of their own."""
    answers = []
    for number in range(ENTRIES):
        hits = copy.deepcopy(_ANSWER)
        answers.append(hits)
        for hit in hits:
            object.__setattr__(hit, "content", f"{number} {hit.content}")
    iterator = iter(answers)
    gc.collect()
    tracemalloc.start()
    memory = WorkingMemory(lambda _: next(iterator))
    before = tracemalloc.get_traced_memory()[0]
    for number in range(ENTRIES):
        memory.search(str(number))
    gc.collect()
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    contents = sum(len(hit.content) for hits in answers for hit in hits)
    return {"bytes beside the contents": used, "bytes of the contents": contents}


def measure_growth(calls: int) -> Figures:
    """Return what a process gained over many calls, hits and misses, with writes amid."""
    memory = WorkingMemory(ten_hits_of, max_entries=ENTRIES)
    dice = random.Random(3)
    queries = [f"query {number}" for number in range(1000)]

    def run(count: int) -> None:
        for number in range(count):
            rank = int(min(999, dice.expovariate(0.05)))
            memory.search(queries[rank])
            if number % 10_000 == 0:
                memory.invalidate()

    run(50_000)
    gc.collect()
    process = psutil.Process()
    objects, size = len(gc.get_objects()), process.memory_info().rss
    before = time.perf_counter()
    run(calls)
    took = time.perf_counter() - before
    gc.collect()
    return {
        "calls": calls,
        "seconds": took,
        "objects gained": len(gc.get_objects()) - objects,
        "megabytes gained": (process.memory_info().rss - size) / 1e6,
        "hit rate": memory.stats().hit_rate,
    }


def table_of(title: str, figures: dict[str, Any]) -> Table:
    """Return figures for reading."""
    table = Table(title=title)
    table.add_column("")
    first = next(iter(figures.values()))
    columns = list(first) if isinstance(first, dict) else [""]
    for column in columns:
        table.add_column(column, justify="right")
    for name, value in figures.items():
        values = value.values() if isinstance(value, dict) else [value]
        table.add_row(name, *(f"{one:,.3f}".rstrip("0").rstrip(".") for one in values))
    return table


def verdicts(results: dict[str, Any]) -> list[tuple[str, bool]]:
    """Return the targets and whether this run met them."""
    times, flights = results["times"], results["flights"]
    here, across = times["hit in process"], times["hit with the check on SQLite"]
    ours = [row["loads"] for name, row in flights.items() if "TTLCache" not in name]
    rate, growth = results["workload"]["no writes"], results["growth"]
    return [
        (f"a hit takes at most 20 us in process: {here:.1f} us", here <= 20),
        (f"at most 60 us with the check on SQLite: {across:.1f} us", across <= 60),
        (f"a miss costs at most 100 us: {times['miss']:.1f} us", times["miss"] <= 100),
        (f"equal calls at once share one load: {max(ours):.0f}", set(ours) == {1}),
        (f"hits on the workload above 80 %: {rate:.1%}", rate > 0.8),
        (
            f"no growth over {growth['calls']:,} calls: {growth['megabytes gained']:.1f} MB",
            growth["megabytes gained"] < 2 and growth["objects gained"] < 1000,
        ),
    ]


def main() -> None:
    """Measure, print the tables, and write the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--output", default="benchmarks/results/working_memory.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results: dict[str, Any] = {"times": measure_hits(folder) | measure_misses()}
    results["flights"] = measure_flights()
    results["workload"] = measure_workload()
    results["memory"] = measure_memory()
    results["growth"] = measure_growth(options.calls)
    console = Console(width=110)
    console.print(table_of("microseconds of one core", results["times"]))
    console.print(table_of("equal calls at once", results["flights"]))
    console.print(table_of("share of hits in an agent loop", results["workload"]))
    console.print(table_of("100 answers of ten hits", results["memory"]))
    console.print(table_of("many calls", results["growth"]))
    for text, is_met in verdicts(results):
        console.print(("met:     " if is_met else "NOT met: ") + text)
    output = Path(options.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
