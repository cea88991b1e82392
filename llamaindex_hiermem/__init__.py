"""HierMem for LlamaIndex: chat memory on disk, scoped to a tenant and a thread."""

from __future__ import annotations

from importlib.util import find_spec

from hiermem_core import MissingExtraError

if find_spec("llama_index") is None or find_spec("llama_index.core") is None:
    raise MissingExtraError("llamaindex", feature="llamaindex_hiermem")

from llamaindex_hiermem.memory import HierMemChatMemoryBuffer

__all__ = ["HierMemChatMemoryBuffer"]
