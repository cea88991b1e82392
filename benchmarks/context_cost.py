"""What a 4,000-token context costs, by the length of the thread, beside the frameworks' own memory.

HierMem reads its threads from disk; the peers get their messages in memory, loaded beforehand.
Figures are medians of processor time of one core. Peers that grow with the square of the thread
are measured up to where one call takes about a minute; beyond that the table has no figure.

    python benchmarks/context_cost.py [--sizes 100 1000 10000 100000] [--output FILE]
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer, Memory
from rich.console import Console
from rich.table import Table

from hiermem_core import HierMem
from llamaindex_hiermem import HierMemChatMemoryBuffer

BUDGET = 4000
WORDS = (Path(__file__).parent / "words.txt").read_text(encoding="utf-8").split()
PEER_SECONDS = 60.0

Call = Callable[[], object]


def conversation(size: int) -> list[dict[str, str]]:
    """Return `size` turns of about 200 characters, the same ones every time."""
    dice = random.Random(size)
    roles = ("user", "assistant")
    return [
        {"role": roles[index % 2], "content": " ".join(dice.choices(WORDS, k=34))}
        for index in range(size)
    ]


def median_seconds(call: Call, *, at_most: float = 3.0, rounds: int = 50) -> float:
    """Return the median processor time of a call, after one call to warm up."""
    call()
    gc.collect()
    times: list[float] = []
    started = time.perf_counter()
    while len(times) < rounds and (time.perf_counter() - started < at_most or not times):
        before = time.process_time()
        call()
        times.append(time.process_time() - before)
    return statistics.median(times)


def hiermem_calls(hiermem: HierMem, turns: list[dict[str, str]]) -> dict[str, Call]:
    """Return what HierMem is measured on: a thread of these turns on disk."""
    thread = hiermem.tenant("bench").thread(f"{len(turns)} turns")
    for start in range(0, len(turns), 5000):
        thread.append(turns[start : start + 5000])
    buffer = HierMemChatMemoryBuffer.from_defaults(
        tenant=hiermem.tenant("bench"), chat_store_key=thread.id, token_limit=3000
    )
    extra = iter(conversation(10_000))
    return {
        "HierMem context": lambda: thread.context(budget_tokens=BUDGET, recall=False),
        "HierMem context with recall": lambda: thread.context(budget_tokens=BUDGET),
        "HierMem buffer get": buffer.get,
        "HierMem append": lambda: thread.append([next(extra)]),
    }


def peer_calls(turns: list[dict[str, str]]) -> Iterator[tuple[str, Call]]:
    """Yield what the frameworks bring, each made only when its turn comes."""
    messages = [ChatMessage(role=turn["role"], content=turn["content"]) for turn in turns]
    buffer = ChatMemoryBuffer.from_defaults(chat_history=messages)
    yield "LlamaIndex ChatMemoryBuffer.get", buffer.get
    memory = Memory.from_defaults(session_id=str(len(turns)), token_limit=BUDGET)
    for start in range(0, len(messages), 1000):
        memory.put_messages(messages[start : start + 1000])
    yield "LlamaIndex Memory.get", memory.get
    kinds: dict[str, Any] = {"user": HumanMessage, "assistant": AIMessage}
    loaded = [kinds[turn["role"]](turn["content"]) for turn in turns]
    yield (
        "LangChain trim_messages",
        lambda: trim_messages(
            loaded,
            max_tokens=BUDGET,
            token_counter=count_tokens_approximately,
            start_on="human",
        ),
    )


def growth(times: dict[int, float]) -> float:
    """Return the exponent e of time = size ** e, by least squares on the logarithms."""
    xs, ys = zip(*[(math.log(size), math.log(t)) for size, t in times.items()], strict=True)
    return statistics.linear_regression(xs, ys).slope if len(times) > 1 else math.nan


def measure(sizes: list[int], folder: str) -> dict[str, dict[int, float]]:
    """Return the median seconds of each call at each size."""
    results: dict[str, dict[int, float]] = {}
    too_slow: set[str] = set()
    with HierMem.open(folder, local_embedder=False) as hiermem:
        for size in sizes:
            turns = conversation(size)
            for name, call in hiermem_calls(hiermem, turns).items():
                results.setdefault(name, {})[size] = median_seconds(call)
            for name, call in peer_calls(turns):
                if name in too_slow:
                    continue
                print(f"  {size} turns: {name}", flush=True)
                taken = median_seconds(call)
                results.setdefault(name, {})[size] = taken
                if taken * (10 ** growth(results[name]) if len(results[name]) > 1 else 100) > (
                    PEER_SECONDS
                ):
                    too_slow.add(name)
    return results


def table_of(results: dict[str, dict[int, float]], sizes: list[int]) -> Table:
    """Return the figures for reading: milliseconds, ratio to HierMem, growth."""
    table = Table(title=f"A context of {BUDGET} tokens, milliseconds of one core")
    for column in ("", *(f"{size:,} turns" for size in sizes), "growth"):
        table.add_column(column, justify="left" if column == "" else "right")
    base = results["HierMem context"]
    for name, times in results.items():
        cells = [
            f"{times[size] * 1e3:,.2f} ({times[size] / base[size]:,.1f}x)" if size in times else "-"
            for size in sizes
        ]
        table.add_row(name, *cells, f"n^{growth(times):.2f}")
    return table


def verdicts(results: dict[str, dict[int, float]], sizes: list[int]) -> list[tuple[str, bool]]:
    """Return the targets and whether this run met them."""
    context, append = results["HierMem context"], results["HierMem append"]
    peer = results["LlamaIndex ChatMemoryBuffer.get"]
    flat = context[sizes[-1]] / context[sizes[0]]
    slowest = max(context.values()) * 1e3
    checks = [
        (f"a context takes at most 2 ms: {slowest:.2f} ms", slowest <= 2),
        (f"{sizes[-1]:,} turns cost at most 1.3 times {sizes[0]:,}: {flat:.2f}", flat <= 1.3),
        (
            f"an append takes at most 1 ms: {max(append.values()) * 1e3:.2f} ms",
            max(append.values()) <= 1e-3,
        ),
    ]
    if 1000 in peer:
        ratio = peer[1000] / results["HierMem buffer get"][1000]
        checks.append((f"at 1,000 turns 100 times faster than its get: {ratio:,.0f}", ratio >= 100))
    return checks


def main() -> None:
    """Measure, print the table, and write the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10_000, 100_000])
    parser.add_argument("--output", default="benchmarks/results/context_cost.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = measure(options.sizes, folder)
    console = Console(width=130)
    console.print(table_of(results, options.sizes))
    for text, is_met in verdicts(results, options.sizes):
        console.print(("met:     " if is_met else "NOT met: ") + text)
    output = Path(options.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
