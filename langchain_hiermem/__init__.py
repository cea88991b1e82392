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
    from langchain_hiermem.messages import message_to_turn, turn_to_message

__all__ = [
    "HISTORY_FIELDS",
    "HierMemChatMessageHistory",
    "history_factory",
    "message_to_turn",
    "turn_to_message",
]

_HOMES = {
    "HISTORY_FIELDS": "chat_history",
    "HierMemChatMessageHistory": "chat_history",
    "history_factory": "chat_history",
    "message_to_turn": "messages",
    "turn_to_message": "messages",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if find_spec("langchain_core") is None:
        raise MissingExtraError("langchain", feature=f"langchain_hiermem.{name}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
