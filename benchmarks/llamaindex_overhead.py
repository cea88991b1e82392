"""What a chat memory costs a LlamaIndex engine per call, by the length of the thread.

HierMem's buffer reads its thread from disk; LlamaIndex's `ChatMemoryBuffer` and `Memory` hold
theirs in memory and in an SQLite database in memory. All have their default limits, but for a
`Memory` that archives nothing. HierMem is read after each put, as engines do. The floor is what a
read cannot do without: the newest rows of a table of messages with their counts, as far as the
default limit reaches, made into messages. Figures are medians of processor time of one core, and
noisy on a busy machine. A call that would take over a minute at
a size is left out there.

    python benchmarks/llamaindex_overhead.py [--sizes 100 1000 10000] [--output FILE]
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import math
import random
import sqlite3
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer, Memory
from llama_index.core.utils import get_tokenizer
from rich.console import Console
from rich.table import Table

from hiermem_core import HierMem
from llamaindex_hiermem import HierMemChatMemoryBuffer
from llamaindex_hiermem.memory import HierMemTrimWarning

WORDS = (Path(__file__).parent / "words.txt").read_text(encoding="utf-8").split()
PEER_SECONDS = 60.0
BATCH = 1000
ALL = 10**9
LIMIT = 3000

Call = Callable[[], Any]
Measured = tuple[str, Call, Call]
"""A name, a call, and what is done before each, which is not measured."""

FLOOR = "the floor"
MEMORIES = ("Memory: get", "Memory, all active: get")

Results = dict[str, dict[int, float]]


def conversation(size: int, seed: int = 7) -> list[ChatMessage]:
    """Return messages of 20 to 60 words, users and assistants in turn."""
    dice = random.Random(seed)
    return [
        ChatMessage(
            role=("user", "assistant")[number % 2],
            content=" ".join(dice.choices(WORDS, k=dice.randint(20, 60))),
        )
        for number in range(size)
    ]


def median_seconds(
    call: Call, before_each: Call = int, *, at_most: float = 3.0, rounds: int = 50
) -> float:
    """Return the median processor time of a call, after one that warms it up."""
    call()
    gc.collect()
    times: list[float] = []
    started = time.perf_counter()
    while len(times) < rounds and (time.perf_counter() - started < at_most or not times):
        before_each()
        before = time.process_time()
        call()
        times.append(time.process_time() - before)
    return statistics.median(times)


def hiermem_calls(hiermem: HierMem, messages: list[ChatMessage]) -> Iterator[Measured]:
    """Yield what HierMem is measured on: a thread of these messages on disk."""
    tenant = hiermem.tenant("bench")
    place = {"tenant": tenant, "chat_store_key": f"{len(messages)} messages"}
    buffer = HierMemChatMemoryBuffer.from_defaults(**place)
    for start in range(0, len(messages), BATCH):
        buffer.put_messages(messages[start : start + BATCH])
    core = HierMemChatMemoryBuffer.from_defaults(**place, counting="core")
    recalling = HierMemChatMemoryBuffer.from_defaults(**place, recall_k=5)
    extra = iter(conversation(10_000, seed=11))
    questions = iter(conversation(10_000, seed=13))

    def put() -> None:
        buffer.put(next(extra))

    def get_anew() -> None:
        HierMemChatMemoryBuffer.from_defaults(**place).get()

    def recall() -> None:
        recalling.get(next(questions).content)

    yield "HierMem get", buffer.get, put
    yield "HierMem get, the same again", buffer.get, int
    yield "HierMem get, nothing counted before", get_anew, int
    yield "HierMem get, core mode", core.get, put
    yield "HierMem get, a new question recalled", recall, put
    yield "HierMem put", put, int


def floor_calls(messages: list[ChatMessage]) -> Iterator[Measured]:
    """Yield the reading of a window by hand, from a table in memory."""
    table = sqlite3.connect(":memory:")
    table.execute("CREATE TABLE messages (seq INTEGER PRIMARY KEY, tokens INTEGER, message TEXT)")
    rows = [(len(get_tokenizer()(str(m.content))), m.model_dump_json()) for m in messages]
    table.executemany("INSERT INTO messages (tokens, message) VALUES (?, ?)", rows)

    def read() -> list[ChatMessage]:
        window: list[ChatMessage] = []
        total = 0
        for tokens, message in table.execute(
            "SELECT tokens, message FROM messages ORDER BY seq DESC"
        ):
            total += tokens
            if total > LIMIT:
                break
            window.append(ChatMessage.model_validate_json(message))
        return window[::-1]

    yield FLOOR, read, int


def peer_calls(messages: list[ChatMessage]) -> Iterator[Measured]:
    """Yield what the framework brings, each made only when its turn comes."""
    buffer = ChatMemoryBuffer.from_defaults(chat_history=list(messages))
    yield "ChatMemoryBuffer.get", buffer.get, int
    extra = iter(conversation(10_000, seed=11))
    for name, options in (("Memory", {}), ("Memory, all active", {"token_limit": ALL})):
        memory = Memory.from_defaults(session_id=f"{name} {len(messages)}", **options)
        for start in range(0, len(messages), BATCH):
            memory.put_messages(messages[start : start + BATCH])
        yield f"{name}: get", memory.get, int
        yield f"{name}: put", functools.partial(_put_next, memory, extra), int


def _put_next(memory: Memory, messages: Iterator[ChatMessage]) -> None:
    memory.put(next(messages))


def growth(times: dict[int, float]) -> float:
    """Return the exponent e of time = size ** e, by least squares on the logarithms."""
    if len(times) < 2:
        return math.nan
    xs, ys = zip(*[(math.log(size), math.log(t)) for size, t in times.items()], strict=True)
    return statistics.linear_regression(xs, ys).slope


def is_too_slow(times: dict[int, float], size: int) -> bool:
    """Tell whether a call would take over a minute at a size, by its growth so far."""
    if not times:
        return False
    last = max(times)
    exponent = growth(times) if len(times) > 1 else 2.0
    return times[last] * (size / last) ** exponent > PEER_SECONDS


def measure(sizes: list[int], folder: str) -> Results:
    """Return the median seconds of each call at each size."""
    results: Results = {}
    with HierMem.open(folder, local_embedder=False) as hiermem:
        for size in sizes:
            messages = conversation(size)
            for name, call, before in chain(
                floor_calls(messages), hiermem_calls(hiermem, messages), peer_calls(messages)
            ):
                times = results.setdefault(name, {})
                if is_too_slow(times, size):
                    continue
                print(f"  {size} messages: {name}", flush=True)
                times[size] = median_seconds(call, before)
    return results


def table_of(results: Results, sizes: list[int]) -> Table:
    """Return the figures for reading: milliseconds, and how they grow."""
    table = Table(title="A chat memory's calls, milliseconds of one core")
    for column in ("", *(f"{size:,} messages" for size in sizes), "growth"):
        table.add_column(column, justify="left" if column == "" else "right")
    for name, times in results.items():
        cells = [f"{times[size] * 1e3:,.2f}" if size in times else "-" for size in sizes]
        table.add_row(name, *cells, f"n^{growth(times):.2f}")
    return table


def verdicts(results: Results, sizes: list[int]) -> list[tuple[str, bool]]:
    """Return the targets and whether this run met them."""
    get, put = results["HierMem get"], results["HierMem put"]
    flat, slowest = get[sizes[-1]] / get[sizes[0]], max(put.values()) * 1e3
    checks = [
        (
            f"get at {sizes[-1]:,} takes at most 3 ms: {get[sizes[-1]] * 1e3:.2f}",
            get[sizes[-1]] <= 3e-3,
        ),
        (f"and at most 1.3 times its time at {sizes[0]:,}: {flat:.2f}", flat <= 1.3),
        (f"put takes at most 1 ms: {slowest:.2f}", slowest <= 1),
    ]
    growth_of_put = put[sizes[-1]] / put[sizes[0]]
    checks.append(
        (f"and at {sizes[-1]:,} 1.5 times as long: {growth_of_put:.2f}", growth_of_put <= 1.5)
    )
    for name, bar in (("HierMem get", 8), ("HierMem get, core mode", 4)):
        most = max(results[name][size] / floor for size, floor in results[FLOOR].items())
        checks.append((f"{name} takes at most {bar} times the floor: {most:.1f}", most <= bar))
    for name, factor in (("ChatMemoryBuffer.get", 100), *((name, 10) for name in MEMORIES)):
        if 1000 in results[name]:
            ratio = results[name][1000] / get[1000]
            checks.append(
                (
                    f"get at 1,000 is {factor} times faster than {name}: {ratio:,.0f}",
                    ratio >= factor,
                )
            )
    return checks


def main() -> None:
    """Measure, print the table, and write the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--output", default="benchmarks/results/llamaindex_overhead.json")
    options = parser.parse_args()
    warnings.simplefilter("ignore", HierMemTrimWarning)
    with tempfile.TemporaryDirectory() as folder:
        results = measure(sorted(options.sizes), folder)
    console = Console(width=120)
    console.print(table_of(results, sorted(options.sizes)))
    for text, is_met in verdicts(results, sorted(options.sizes)):
        console.print(("met:     " if is_met else "NOT met: ") + text)
    output = Path(options.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
