"""What a summary of a long thread costs, and what of the thread stays known, beside the frameworks.

One conversation grows exchange by exchange. After each, every turn is looked for: in the context
of 4,000 tokens, covered by the notes, or counted in a warning. The summariser is scripted: it
gives a summary of 120 words and a fact each time, so only calls and tokens are compared. Every
fifth of its replies is empty, as a provider's may be; what each memory then loses is counted.

    python benchmarks/learning_cost.py [--turns 10000] [--output FILE]
"""

from __future__ import annotations

import argparse
import json
import random
import time
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from langchain_classic.memory import ConversationSummaryBufferMemory
from langchain_core._api.deprecation import LangChainDeprecationWarning
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import ChatMessage, ChatResponse
from llama_index.core.llms.mock import MockLLM
from llama_index.core.memory import ChatSummaryMemoryBuffer
from rich.console import Console
from rich.table import Table

from hiermem_core import HierMem
from hiermem_core.models.plain import dump_json
from hiermem_core.testing import ScriptedModel

BUDGET = 4000
SUMMARY_WORDS = 120
EMPTY_EVERY = 5
WORDS = (Path(__file__).parent / "words.txt").read_text(encoding="utf-8").split()


@dataclass
class Spent:
    """What a memory took, and what it lost.

    Attributes:
        tokens: Sent to the summariser, by HierMem's counter.
        lost: Turns that at the end are in no summary, no window and no store.
        unseen: Steps at which a turn was neither shown, nor covered, nor counted.
    """

    calls: int = 0
    tokens: int = 0
    lost: int = 0
    unseen: int = 0
    seconds: float = 0.0
    sent: set[int] = field(default_factory=set, repr=False)


def exchanges(turns: int) -> list[tuple[str, str]]:
    """Return exchanges of about 400 characters, each with a number of its own in it."""
    dice = random.Random(turns)
    return [
        (
            f"[{2 * n}] " + " ".join(dice.choices(WORDS, k=34)),
            f"[{2 * n + 1}] " + " ".join(dice.choices(WORDS, k=34)),
        )
        for n in range(turns // 2)
    ]


class Summariser:
    """Replies with a summary, and every so often with nothing; keeps what it was sent."""

    def __init__(self, count: Any) -> None:
        self.spent = Spent()
        self._count = count
        self._dice = random.Random(7)

    def reply(self, prompt: str) -> str:
        """Return a summary, and note what it is of.

        A peer puts the reply in the place of its summary, an empty one too.
        """
        self.spent.calls += 1
        self.spent.tokens += self._count(prompt)
        if self.spent.calls % EMPTY_EVERY == 0:
            self.spent.sent.clear()
            return ""
        self.spent.sent |= numbers_in(prompt)
        return " ".join(self._dice.choices(WORDS, k=SUMMARY_WORDS)) + "."


def numbers_in(text: str) -> set[int]:
    """Return the numbers of the turns that stand in a text."""
    heads = (part.split("] ", 1)[0] for part in text.split("[")[1:] if "] " in part)
    return {int(head) for head in heads if head.isdigit()}


def hiermem_spent(turns: int) -> Spent:
    """Return what HierMem takes, and whether every turn was accounted for at every step."""
    with HierMem.open(":memory:", local_embedder=False) as plain:
        summariser = Summariser(plain.counter.count)

    def reply(messages: Any) -> str:
        summary = summariser.reply("\n".join(message.content for message in messages))
        fact = " ".join(summary.split()[:8])
        return summary and dump_json({"summary": summary, "facts": [fact], "retract": []})

    spent = summariser.spent
    model = ScriptedModel([reply])
    with HierMem.open(
        ":memory:", local_embedder=False, chat_model=model, inline_updates=True
    ) as hiermem:
        thread = hiermem.tenant("bench").thread("long")
        for asked, answered in exchanges(turns):
            before = time.process_time()
            thread.append(
                [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
            )
            thread.save_context()
            context = thread.context(budget_tokens=BUDGET, recall=False)
            spent.seconds += time.process_time() - before
            shown = {turn.seq for turn in context.messages if turn.seq}
            missed = set(range(thread.state().turn_count + 1, max(shown) + 1)) - shown
            counted = [w.count for w in context.warnings if w.code == "turns_not_covered"]
            spent.unseen += sum(counted) != len(missed)
        stored = {turn.seq - 1 for turn in thread.turns()}
    spent.lost = len(set(range(turns)) - stored)
    return spent


class LangChainModel(BaseChatModel):
    """The summariser as a LangChain chat model; a token is one of HierMem's."""

    summariser: Any
    count: Any

    @property
    def _llm_type(self) -> str:
        return "summariser"

    def _generate(self, messages: Any, *given: Any, **options: Any) -> ChatResult:
        del given, options
        text = self.summariser.reply("\n".join(str(message.content) for message in messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    def get_num_tokens_from_messages(self, messages: Any, tools: Any = None) -> int:
        """Return the tokens of messages."""
        del tools
        return sum(self.count(str(message.content)) for message in messages)


def langchain_spent(turns: int, count: Any) -> Spent:
    """Return what LangChain's summary buffer takes."""
    summariser = Summariser(count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LangChainDeprecationWarning)
        memory = ConversationSummaryBufferMemory(
            llm=LangChainModel(summariser=summariser, count=count), max_token_limit=BUDGET
        )
    before = time.process_time()
    for asked, answered in exchanges(turns):
        memory.save_context({"input": asked}, {"output": answered})
        kept = memory.load_memory_variables({})
    summariser.spent.seconds = time.process_time() - before
    known = summariser.spent.sent | numbers_in(str(kept))
    summariser.spent.lost = len(set(range(turns)) - known)
    return summariser.spent


class LlamaIndexModel(MockLLM):
    """The summariser as a LlamaIndex LLM."""

    _summariser: Summariser = PrivateAttr()

    def __init__(self, summariser: Summariser) -> None:
        super().__init__()
        self._summariser = summariser

    def chat(self, messages: Any, **options: Any) -> ChatResponse:
        """Return the summary of the messages."""
        del options
        text = self._summariser.reply("\n".join(str(message.content) for message in messages))
        return ChatResponse(message=ChatMessage(role="assistant", content=text))


def llamaindex_spent(turns: int, count: Any) -> Spent:
    """Return what LlamaIndex's summary buffer takes."""
    summariser = Summariser(count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        memory = ChatSummaryMemoryBuffer.from_defaults(
            llm=LlamaIndexModel(summariser),
            token_limit=BUDGET,
            tokenizer_fn=lambda text: range(count(text)),
        )
    before = time.process_time()
    for asked, answered in exchanges(turns):
        memory.put(ChatMessage(role="user", content=asked))
        memory.put(ChatMessage(role="assistant", content=answered))
        kept = memory.get()
    summariser.spent.seconds = time.process_time() - before
    text = "\n".join(str(message.content) for message in [*kept, *memory.get_all()])
    summariser.spent.lost = len(set(range(turns)) - summariser.spent.sent - numbers_in(text))
    return summariser.spent


def main() -> None:
    """Measure, print the table, and write the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--output", default="benchmarks/results/learning_cost.json")
    options = parser.parse_args()
    with HierMem.open(":memory:", local_embedder=False) as plain:
        count = plain.counter.count
    results = {
        "HierMem summary buffer": hiermem_spent(options.turns),
        "LangChain ConversationSummaryBufferMemory": langchain_spent(options.turns, count),
        "LlamaIndex ChatSummaryMemoryBuffer": llamaindex_spent(options.turns, count),
    }
    title = f"{options.turns:,} turns, {BUDGET:,} tokens, every {EMPTY_EVERY}th reply empty"
    table = Table(title=title)
    for column in ("", "calls", "tokens sent", "turns lost", "steps unaccounted", "seconds"):
        table.add_column(column, justify="left" if column == "" else "right")
    for name, spent in results.items():
        unseen = f"{spent.unseen:,}" if name.startswith("HierMem") else "-"
        figures = (f"{spent.calls:,}", f"{spent.tokens:,}", f"{spent.lost:,}", unseen)
        table.add_row(name, *figures, f"{spent.seconds:,.1f}")
    Console(width=120).print(table)
    output = Path(options.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    figures_of = {name: asdict(spent) for name, spent in results.items()}
    for spent in figures_of.values():
        del spent["sent"]
    output.write_text(json.dumps(figures_of, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
