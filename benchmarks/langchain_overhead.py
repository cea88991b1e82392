"""What memory adds to a model call under LangChain, beside what others add.

Each contender answers one more question on a thread of so many messages, with a model that costs
nothing: what it reads, fits and saves is what is measured, as CPU time of the process. HierMem
writes to disk; the peers hold all messages in memory. "adds" is the time over the bare chain or
agent with the question alone. Peers that summarise are measured where there is nothing to do.

    python benchmarks/langchain_overhead.py [--turns 100 1000 10000] [--output FILE]

`langmem` is measured where it is installed.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
import warnings
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, SummarizationMiddleware
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableWithMessageHistory
from rich.console import Console
from rich.table import Table

from hiermem_core import HierMem
from langchain_hiermem import HierMemChatMessageHistory, HierMemContext, HierMemMiddleware

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hiermem_core import Context

BUDGET = 4000
RUNS = 30
NEVER = 10**9
TARGET = 2.0
"""Milliseconds of one core that HierMem may add to a call, at any length."""

WORDS = (Path(__file__).parent / "words.txt").read_text(encoding="utf-8").split()
ALICE = HierMemContext("alice", "long")
MODEL = FakeListChatModel(responses=["A short answer."])
PROMPT = ChatPromptTemplate([MessagesPlaceholder("history"), ("human", "{question}")])

Call = Any


def texts(turns: int) -> Iterator[str]:
    """Yield texts of about 200 characters."""
    dice = random.Random(turns)
    while True:
        yield " ".join(dice.choices(WORDS, k=34))


def log_of(turns: int) -> list[Any]:
    """Return a conversation of so many messages."""
    said = texts(turns)
    kinds = (HumanMessage, AIMessage)
    return [kinds[n % 2](next(said), id=f"m{n}") for n in range(turns)]


def bare_chain(turns: int) -> Call:
    """Return the chain without any memory."""
    del turns
    chain = PROMPT | MODEL
    return lambda question: chain.invoke({"history": [], "question": question})


def bare_agent(turns: int) -> Call:
    """Return the agent without any memory."""
    del turns
    agent = create_agent(MODEL)
    return lambda question: agent.invoke({"messages": [HumanMessage(question)]})


def filled(hiermem: HierMem, turns: int) -> HierMem:
    """Store a conversation."""
    history = HierMemChatMessageHistory(hiermem, tenant_id="alice", thread_id="long")
    log = log_of(turns)
    for start in range(0, turns, 500):
        history.add_messages(log[start : start + 500])
    return hiermem


def hiermem_history(hiermem: HierMem) -> Call:
    """Return a chain that reads the window of a history and saves the exchange."""
    history = HierMemChatMessageHistory(hiermem, tenant_id="alice", thread_id="long")
    chain = PROMPT | MODEL

    def call(question: str) -> None:
        answer = chain.invoke({"history": history.window(BUDGET), "question": question})
        history.add_messages([HumanMessage(question), answer])

    return call


def ignored(context: Context) -> None:
    """Tell nobody of a context."""
    del context


def middleware_of(hiermem: HierMem, *, recall: bool) -> HierMemMiddleware:
    """Return the middleware; nobody is told what is trimmed."""
    return HierMemMiddleware(hiermem, budget_tokens=BUDGET, recall=recall, on_context=ignored)


def hiermem_agent(hiermem: HierMem, *, recall: bool = False) -> Call:
    """Return an agent with the middleware."""
    agent = create_agent(
        MODEL, middleware=[middleware_of(hiermem, recall=recall)], context_schema=HierMemContext
    )
    return lambda question: agent.invoke({"messages": [HumanMessage(question)]}, context=ALICE)


def hiermem_hooks(hiermem: HierMem, *, recall: bool = False) -> Call:
    """Return the work of the middleware's hooks in one run, without the graph around them."""
    memory = middleware_of(hiermem, recall=recall)
    runtime: Any = SimpleNamespace(context=ALICE, execution_info=None)
    numbers = count()

    def call(question: str) -> None:
        messages: list[Any] = [HumanMessage(question, id=f"hook-{recall}-{next(numbers)}")]
        request = ModelRequest(model=MODEL, messages=messages, runtime=runtime)
        memory.wrap_model_call(request, lambda view: view)  # type: ignore[arg-type,return-value]  # no answer is needed
        messages.append(AIMessage("A short answer.", id=f"{messages[0].id}-a"))
        memory.after_agent({"messages": messages}, runtime)

    return call


def trimmed_history(turns: int) -> Call:
    """Return a chain under `RunnableWithMessageHistory` that trims what it is given."""
    history = InMemoryChatMessageHistory(messages=log_of(turns))
    trim = trim_messages(
        max_tokens=BUDGET, token_counter=count_tokens_approximately, start_on="human"
    )
    chain = {
        "history": lambda given: trim.invoke(given["history"]),
        "question": lambda given: given["question"],
    } | PROMPT
    remembering = RunnableWithMessageHistory(
        chain | MODEL,
        lambda session_id: history,  # noqa: ARG005 - it has one session
        input_messages_key="question",
        history_messages_key="history",
    )
    config: Any = {"configurable": {"session_id": "long"}}
    return lambda question: remembering.invoke({"question": question}, config)


def summarization(turns: int) -> Call:
    """Return the hook of LangChain's summarization before a model call, with nothing to do."""
    memory = SummarizationMiddleware(MODEL, trigger=("tokens", NEVER))
    log = log_of(turns)
    runtime: Any = SimpleNamespace(context=None)

    def call(question: str) -> None:
        log.append(HumanMessage(question, id=f"q{len(log)}"))
        memory.before_model({"messages": log}, runtime)
        log.append(AIMessage("A short answer.", id=f"a{len(log)}"))

    return call


def langmem_summary(turns: int) -> Call:
    """Return langmem's `summarize_messages` on what its running summary covers."""
    from langmem.short_term import summarize_messages  # noqa: PLC0415 - where it is installed

    log = log_of(turns)
    state: dict[str, Any] = {"summary": None}

    def call(question: str) -> None:
        log.append(HumanMessage(question, id=f"q{len(log)}"))
        result = summarize_messages(
            log, running_summary=state["summary"], model=MODEL, max_tokens=BUDGET
        )
        state["summary"] = result.running_summary
        log.append(AIMessage("A short answer.", id=f"a{len(log)}"))

    return call


def milliseconds(call: Any, turns: int) -> float:
    """Return the median CPU time of one call."""
    said = texts(turns + 1)
    taken = []
    for run in range(RUNS + 5):
        question = next(said)
        before = time.process_time()
        call(question)
        if run >= 5:
            taken.append(time.process_time() - before)
    return 1000 * median(taken)


def measured(turns: int) -> dict[str, float]:
    """Return what each contender takes for a call, in milliseconds."""
    with (
        tempfile.TemporaryDirectory() as folder,
        HierMem.open(Path(folder) / "memory", local_embedder=False) as hiermem,
    ):
        filled(hiermem, turns)
        own = {
            "HierMem history and chain": hiermem_history(hiermem),
            "HierMem middleware and agent": hiermem_agent(hiermem),
            "HierMem middleware, its hooks": hiermem_hooks(hiermem),
            "HierMem middleware, its hooks, recall": hiermem_hooks(hiermem, recall=True),
        }
        figures = {name: milliseconds(call, turns) for name, call in own.items()}
    peers = {
        "bare chain": bare_chain,
        "bare agent": bare_agent,
        "RunnableWithMessageHistory + trim_messages": trimmed_history,
        "SummarizationMiddleware, its hook, idle": summarization,
    }
    if find_spec("langmem") is not None:
        peers["langmem summarize_messages"] = langmem_summary
    return figures | {name: milliseconds(make(turns), turns) for name, make in peers.items()}


def added(name: str, figures: dict[str, float]) -> float:
    """Return what a contender adds to a call."""
    if name.endswith("agent") and name != "bare agent":
        return figures[name] - figures["bare agent"]
    if name.startswith(("HierMem history", "Runnable")):
        return figures[name] - figures["bare chain"]
    return figures[name]


def main() -> None:
    """Measure, print the table, and write the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--output", default="benchmarks/results/langchain_overhead.json")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        results = {turns: measured(turns) for turns in options.turns}
    table = Table(title=f"CPU milliseconds a call adds, {BUDGET:,} tokens; bare: takes")
    table.add_column("messages")
    for turns in results:
        table.add_column(f"{turns:,}", justify="right")
    for name in results[options.turns[0]]:
        cells = [f"{added(name, figures):,.2f}" for figures in results.values()]
        table.add_row(name, *cells)
    console = Console(width=120)
    console.print(table)
    worst = max(added("HierMem middleware, its hooks", figures) for figures in results.values())
    console.print(f"to reach: at most {TARGET} ms by the middleware's hooks; worst {worst:.2f} ms")
    output = Path(options.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
