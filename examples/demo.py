"""One conversation on disk, read by LangChain and by LlamaIndex, within a token budget.

Run it as `python examples/demo.py`. It needs no key, no server and no network, and it shows the
frameworks that are installed.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hiermem_core import HierMem
from hiermem_core.importing import import_memories

if TYPE_CHECKING:
    from collections.abc import Callable

CONVERSATION = Path(__file__).with_name("conversation.jsonl")
TENANT = "alice"
THREAD = "conversation"
BUDGET = 1000
WIDTH = 80
NEWS = "One more thing: the exhibition opens on the second of May."
QUESTION = "What is Tobias allergic to?"
"""Answered in the second of 368 messages."""


def main() -> None:
    """Import the conversation, then go on with it in each framework."""
    with TemporaryDirectory() as folder, HierMem.open(folder) as memory:
        alice = memory.tenant(TENANT)
        print(import_memories(CONVERSATION, alice))
        alice.memory.wait_for_index()  # makes the vectors, where the extra `embed` is installed
        title("LangChain")
        attempt(langchain, memory)
        title("LlamaIndex")
        attempt(llamaindex, memory)
        title("the same thread, from the core")
        print(f"{alice.thread(THREAD).info().turns} turns; the newest:")
        for turn in alice.thread(THREAD).turns(last=2):
            show_line(turn.role, turn.content)
        show_recall(memory)


def langchain(memory: HierMem) -> None:
    """Read and write the thread as a LangChain message history, and ask it with recall."""
    from langchain_hiermem import HierMemChatMessageHistory, turn_to_message

    history = HierMemChatMessageHistory(memory, tenant_id=TENANT, thread_id=THREAD)
    history.add_user_message(NEWS)
    show_window(len(history.messages), [(m.type, m.text) for m in history.window(BUDGET)])

    thread = memory.tenant(TENANT).thread(THREAD)
    context = thread.context(current=QUESTION, budget_tokens=BUDGET)
    messages = [turn_to_message(turn) for turn in context.messages]
    told = "holds" if any("latex" in message.text for message in messages) else "lacks"
    print(f"with recall, a prompt of {context.receipt.total} tokens {told} what was said at first")


def llamaindex(memory: HierMem) -> None:
    """Read and write the thread as a LlamaIndex chat memory."""
    from llama_index.core.llms import ChatMessage

    from llamaindex_hiermem import HierMemChatMemoryBuffer

    buffer = HierMemChatMemoryBuffer.from_defaults(
        tenant=memory.tenant(TENANT), chat_store_key=THREAD, token_limit=BUDGET
    )
    buffer.put(ChatMessage(role="assistant", content="Noted: the second of May."))
    window = [(message.role.value, message.content) for message in buffer.get()]
    show_window(len(buffer.get_all()), window)


def show_recall(memory: HierMem) -> None:
    """Print what the thread recalls of something said long ago."""
    hits = memory.tenant(TENANT).thread(THREAD).recall(QUESTION, limit=3)
    print(f"recalled for {QUESTION!r}:")
    for hit in hits:
        show_line(f"{hit.score:.2f}", hit.content)


def attempt(show: Callable[[HierMem], None], memory: HierMem) -> None:
    """Show a framework, or say how to install it; its extra has the function's name."""
    try:
        show(memory)
    except ImportError:
        print(f'not installed; run: pip install "hiermem-core[{show.__name__}]"')


def show_window(stored: int, window: list[tuple[str, str | None]]) -> None:
    """Print how much of a thread fits the budget, and its end."""
    print(f"{len(window)} of {stored} messages fit {BUDGET} tokens; the last of them:")
    for role, text in window[-4:]:
        show_line(role, text)


def show_line(role: str, text: str | None) -> None:
    """Print the beginning of a message."""
    line = " ".join((text or "(calls a tool)").split())
    print(f"  {role:>9}  {line[:WIDTH]}{'...' if line[WIDTH:] else ''}")


def title(text: str) -> None:
    """Print a heading."""
    print(f"\n{text}\n{'-' * len(text)}")


if __name__ == "__main__":
    main()
