"""HierMem for LlamaIndex: chat memory and long-term memory on disk, scoped to a tenant."""

from __future__ import annotations

from importlib.util import find_spec

from hiermem_core import MissingExtraError

if find_spec("llama_index") is None or find_spec("llama_index.core") is None:
    raise MissingExtraError("llamaindex", feature="llamaindex_hiermem")

from llamaindex_hiermem.chat_store import HierMemChatStore
from llamaindex_hiermem.db_chat_store import HierMemDBChatStore
from llamaindex_hiermem.memory import HierMemChatMemoryBuffer
from llamaindex_hiermem.memory_block import HierMemMemoryBlock
from llamaindex_hiermem.retrievers import HierMemRetriever
from llamaindex_hiermem.tools import create_memory_tools

__all__ = [
    "HierMemChatMemoryBuffer",
    "HierMemChatStore",
    "HierMemDBChatStore",
    "HierMemMemoryBlock",
    "HierMemRetriever",
    "create_memory_tools",
]
