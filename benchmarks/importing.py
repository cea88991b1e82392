"""What an import costs: records a second and memory, of a database and of a JSONL file.

    python benchmarks/importing.py --records 10000 100000

Each import runs in a process of its own, with embedding switched off, into an empty memory; then
again, to find everything unchanged. Memory is the peak resident size of the process, and how much
of it came with the import. The targets are 5,000 records a second of one core at every size, and
memory that does not grow with the source.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORDS = Path(__file__).with_name("words.txt")
TARGET = 5000
TOLERANCE = 8.0
"""MiB that the peaks of two sizes may differ by, for what an allocator keeps."""

MEBIBYTE = 1024
HEAD = "source     records  core second      second     again  peak MiB   grown"
_TABLE = """CREATE TABLE memory_entries (id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL,
value TEXT NOT NULL, namespace TEXT NOT NULL, metadata TEXT, created_at INTEGER, updated_at INTEGER,
accessed_at INTEGER, access_count INTEGER, ttl INTEGER, expires_at INTEGER,
UNIQUE(key, namespace))"""
_PUT = "INSERT INTO memory_entries (key, value, namespace, metadata, created_at) VALUES (?,?,?,?,?)"


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--one", nargs=2, metavar=("SOURCE", "LOCATION"))
    options = parser.parse_args()
    if options.one:
        print(json.dumps(import_one(*options.one)))
        return
    print(HEAD)
    met = True
    with tempfile.TemporaryDirectory() as folder:
        for kind, make in (("sqlite", make_database), ("jsonl", make_jsonl)):
            runs = [row(kind, make, Path(folder), records) for records in options.records]
            spread = max(run["peak"] for run in runs) - min(run["peak"] for run in runs)
            met = met and min(run["rate"] for run in runs) >= TARGET and spread <= TOLERANCE
    verdict = "met" if met else "missed"
    print(f"target: {TARGET:,} per second of one core, and one peak at every size: {verdict}")


def row(
    kind: str, make: Callable[[Path, int], Path], folder: Path, records: int
) -> dict[str, float]:
    """Measure one source, print its row, and return the figures of its first import."""
    source, location = make(folder, records), folder / f"{kind}-{records}"
    first, again = measured(source, location), measured(source, location)
    if (first["imported"], again["imported"]) != (records, 0):
        raise SystemExit(f"wrong: {first}, {again}")
    rates = f"{first['rate']:>12,.0f} {first['passed']:>11,.0f} {again['rate']:>9,.0f}"
    memory = f"{first['peak']:>9.1f} {first['grown']:>7.1f}"
    print(f"{kind:8} {records:>9,} {rates} {memory}", flush=True)
    return first


def measured(source: Path, location: Path) -> dict[str, float]:
    """Import in a process of its own, and return its figures."""
    command = [sys.executable, __file__, "--one", str(source), str(location)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - ours
    figures: dict[str, float] = json.loads(run.stdout)
    return figures


def import_one(source: str, location: str) -> dict[str, float]:
    """Import a source, and return what it took."""
    from hiermem_core import HierMem  # noqa: PLC0415 - measured processes only
    from hiermem_core.importing import import_memories  # noqa: PLC0415 - as above

    with HierMem.open(location, indexing=False) as memory:
        tenant = memory.tenant("bench")
        tenant.remember("warm")
        tenant.thread("warm").append([{"role": "user", "content": "the counter's ranks"}])
        before = peak()
        begun, worked = time.perf_counter(), time.process_time()
        report = import_memories(source, tenant)
        seconds, core = time.perf_counter() - begun, time.process_time() - worked
    return {
        "imported": report.imported,
        "rate": report.found / core,
        "passed": report.found / seconds,
        "peak": peak() / MEBIBYTE,
        "grown": (peak() - before) / MEBIBYTE,
    }


def peak() -> int:
    """Return the peak memory of this process so far, in KiB (Linux)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def texts(records: int) -> Iterator[str]:
    """Yield sentences of about thirty words, one by one: a process starts at its parent's peak."""
    words, dice = WORDS.read_text(encoding="utf-8").split(), random.Random(7)
    return (" ".join(dice.choices(words, k=30)) + f" {number}" for number in range(records))


def make_database(folder: Path, records: int) -> Path:
    """Write a database of claude-flow."""
    path = folder / f"memory-{records}.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(_TABLE)
        rows = (
            (f"k{n}", text, f"n{n % 20}", '{"source":"bench"}', 1796048835 + n)
            for n, text in enumerate(texts(records))
        )
        connection.executemany(_PUT, rows)
    return path


def make_jsonl(folder: Path, records: int) -> Path:
    """Write a log of chat messages, of threads of a hundred turns."""
    path = folder / f"talk-{records}.jsonl"
    roles = ("user", "assistant")
    with path.open("w", encoding="utf-8") as file:
        for number, text in enumerate(texts(records)):
            message = {
                "role": roles[number % 2],
                "content": text,
                "id": f"m{number}",
                "thread_id": f"t{number // 100}",
            }
            file.write(json.dumps(message) + "\n")
    return path


if __name__ == "__main__":
    main()
