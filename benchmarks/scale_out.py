"""Eight processes on one location: throughput and waiting, on SQLite and on PostgreSQL.

Each process serves random ones of 200 tenants by append, context, store and recall until the time
is over. Times are of the wall clock, as the callers see them, waiting for others included. Then a
context of 4,000 tokens from a thread of 10,000 turns, alone.

PostgreSQL is a server of its own on this machine unless --postgres names a database. What the
server does takes processor time from the clients here; on a machine of its own it does not.

    python benchmarks/scale_out.py [--seconds 20] [--processes 8] [--postgres URL] [--output FILE]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from hiermem_core import ApproximateCounter, HierMem, HierMemError

if TYPE_CHECKING:
    from collections.abc import Callable

TENANTS, BEFORE, BUDGET, LONG = 200, 20, 4000, 10_000
SHARES = {"append": 40, "context": 30, "store": 15, "recall": 15}
WORDS = (Path(__file__).parent / "words.txt").read_text(encoding="utf-8").split()

Figures = dict[str, float]


def opened(location: str) -> HierMem:
    """Open a location without vectors, whose making is measured elsewhere."""
    return HierMem.open(location, counter=ApproximateCounter(), backend="sqlite")


def text(dice: random.Random) -> str:
    """Return a text of about 200 characters."""
    return " ".join(dice.choices(WORDS, k=34))


def exchange(dice: random.Random) -> list[dict[str, str]]:
    """Return a question and its answer."""
    return [{"role": role, "content": text(dice)} for role in ("user", "assistant")]


def fill(location: str) -> None:
    """Give every tenant a thread and entries, and one a long thread."""
    dice = random.Random(0)
    with opened(location) as hiermem:
        for number in range(TENANTS):
            tenant = hiermem.tenant(f"tenant {number}")
            tenant.thread("talk").append([t for _ in range(BEFORE) for t in exchange(dice)])
            tenant.memory.bulk_insert(text(dice) for _ in range(BEFORE))
        long = [turn for _ in range(LONG // 2) for turn in exchange(dice)]
        for start in range(0, LONG, 2000):
            hiermem.tenant("long").thread("talk").append(long[start : start + 2000])


def calls_of(hiermem: HierMem, dice: random.Random) -> dict[str, Callable[[], object]]:
    """Return what a process does, each call for a random tenant."""

    def tenant() -> Any:
        return hiermem.tenant(f"tenant {dice.randrange(TENANTS)}")

    return {
        "append": lambda: tenant().thread("talk").append(exchange(dice)),
        "context": lambda: tenant().thread("talk").context(budget_tokens=BUDGET, recall=False),
        "store": lambda: tenant().remember(text(dice)),
        "recall": lambda: tenant().recall(" ".join(dice.choices(WORDS, k=4))),
    }


def work(location: str, seed: int, seconds: float, start: Any, results: Any) -> None:
    """Call until the time is over; hand in the times by call, and the errors."""
    dice = random.Random(seed)
    times: dict[str, list[float]] = {name: [] for name in SHARES}
    errors: Counter[str] = Counter()
    with opened(location) as hiermem:
        calls = calls_of(hiermem, dice)
        start.wait()
        until = time.perf_counter() + seconds
        while (begun := time.perf_counter()) < until:
            (name,) = dice.choices(list(SHARES), SHARES.values())
            try:
                calls[name]()
            except HierMemError as error:
                errors[f"{name}: {type(error).__name__}"] += 1
            else:
                times[name].append(time.perf_counter() - begun)
    results.put((times, errors))


def load(location: str, processes: int, seconds: float) -> dict[str, Figures]:
    """Return the figures of each call, and of all, under the load of several processes."""
    spawn = multiprocessing.get_context("spawn")
    start, results = spawn.Barrier(processes), spawn.Queue()
    children = [
        spawn.Process(target=work, args=(location, seed, seconds, start, results))
        for seed in range(1, processes + 1)
    ]
    for child in children:
        child.start()
    gathered = [results.get(timeout=seconds * 4 + 120) for _ in children]
    for child in children:
        child.join()
    figures = {}
    for name in SHARES:
        figures[name] = summed([t for times, _ in gathered for t in times[name]], seconds)
    everything = [t for times, _ in gathered for each in times.values() for t in each]
    errors: Counter[str] = sum((errors for _, errors in gathered), Counter())
    figures["all"] = summed(everything, seconds) | {"errors": errors.total()}
    return figures


def summed(times: list[float], seconds: float) -> Figures:
    """Return calls a second, and the milliseconds of half and of 99 of 100."""
    cuts = statistics.quantiles(times, n=100)
    return {"per_second": len(times) / seconds, "p50": cuts[49] * 1e3, "p99": cuts[98] * 1e3}


def long_context(location: str) -> Figures:
    """Return what a context of the long thread costs when nobody else is there."""
    with opened(location) as hiermem:
        thread = hiermem.tenant("long").thread("talk")
        times = []
        for _ in range(60):
            begun = time.perf_counter()
            thread.context(budget_tokens=BUDGET, recall=False)
            times.append(time.perf_counter() - begun)
    return {"p50": statistics.median(times[10:]) * 1e3, "most": max(times[10:]) * 1e3}


def table_of(results: dict[str, Any], processes: int) -> Table:
    """Return the figures for reading."""
    title = f"{processes} processes, {TENANTS} tenants, {os.cpu_count()} cores"
    table = Table("", "call", "a second", "p50 ms", "p99 ms", "errors", title=title)
    for engine, figures in results.items():
        for name, one in figures["load"].items():
            cells = [f"{one[key]:,.1f}" for key in ("per_second", "p50", "p99")]
            table.add_row(engine, name, *cells, f"{one['errors']}" if "errors" in one else "")
        p50 = f"{figures['long']['p50']:,.2f}"
        table.add_row(engine, f"context of {LONG:,} turns, alone", "", p50, "", "")
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--postgres", help="The URL of an empty database; else one of our own.")
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results" / "scale_out.json"
    )
    given = parser.parse_args()
    results: dict[str, Any] = {}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        locations = {"SQLite": folder, "PostgreSQL": given.postgres or own_server(stack)}
        for engine, location in locations.items():
            print(f"  {engine}: filling", flush=True)
            fill(location)
            results[engine] = {"long": long_context(location)}
            print(f"  {engine}: a load of {given.seconds:g} s", flush=True)
            results[engine]["load"] = load(location, given.processes, given.seconds)
            print(f"  {json.dumps(results[engine])}", flush=True)
    given.output.parent.mkdir(exist_ok=True)
    given.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    Console(width=100).print(table_of(results, given.processes))


def own_server(stack: ExitStack) -> str:
    """Start a server for this run, as the tests do; return the URL of an empty database."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from postgres_server import running_server  # noqa: PLC0415 - of the tests, where it is needed

    return stack.enter_context(running_server()).new_database()


if __name__ == "__main__":
    main()
