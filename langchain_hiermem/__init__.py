"""HierMem for LangChain. Names are loaded when first touched, one module each."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hiermem_core import MissingExtraError

if TYPE_CHECKING:
    from langchain_hiermem.chat_history import (
        HISTORY_FIELDS,
        HierMemChatMessageHistory,
        history_factory,
    )
    from langchain_hiermem.counting import count_tokens
    from langchain_hiermem.identity import HierMemContext
    from langchain_hiermem.memory import HierMemMemory
    from langchain_hiermem.messages import message_to_turn, turn_to_message
    from langchain_hiermem.middleware import HierMemMiddleware
    from langchain_hiermem.retrievers import HierMemRetriever, WorkingMemoryRetriever
    from langchain_hiermem.store import HierMemStore
    from langchain_hiermem.tools import create_memory_tools

__all__ = [
    "HISTORY_FIELDS",
    "HierMemChatMessageHistory",
    "HierMemContext",
    "HierMemMemory",
    "HierMemMiddleware",
    "HierMemRetriever",
    "HierMemStore",
    "WorkingMemoryRetriever",
    "count_tokens",
    "create_memory_tools",
    "history_factory",
    "message_to_turn",
    "turn_to_message",
]

_HOMES = {
    "HISTORY_FIELDS": "chat_history",
    "HierMemChatMessageHistory": "chat_history",
    "HierMemContext": "identity",
    "HierMemMemory": "memory",
    "HierMemMiddleware": "middleware",
    "HierMemRetriever": "retrievers",
    "HierMemStore": "store",
    "WorkingMemoryRetriever": "retrievers",
    "count_tokens": "counting",
    "create_memory_tools": "tools",
    "history_factory": "chat_history",
    "message_to_turn": "messages",
    "turn_to_message": "messages",
}
_NEEDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "identity": ("", ()),
    "memory": ("langchain-classic", ("langchain_core", "langchain_classic")),
    "middleware": ("agents", ("langchain_core", "langgraph.store.base", "langchain.agents")),
    "store": ("langgraph", ("langchain_core", "langgraph.store.base")),
}
"""By module, the extra it needs instead of `langchain`, and modules that the extra brings."""


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    extra, brought = _NEEDS.get(home, ("langchain", ("langchain_core",)))
    if not all(map(_is_there, brought)):
        raise MissingExtraError(extra, feature=f"langchain_hiermem.{name}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package above it
        return False


def __dir__() -> list[str]:
    return __all__
