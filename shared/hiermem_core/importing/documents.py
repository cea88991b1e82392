"""The formats of JSON documents: which shape tells one, and what reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hiermem_core.importing import (
    langchain_messages,
    llamaindex_chat,
    mem0_export,
    openai_messages,
)
from hiermem_core.importing.claude_flow import (
    advanced,
    mcp_json,
    memory_manager,
    simple,
    swarm_agents,
    swarm_state,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """What reads the documents of a format."""

    name: str
    fits: Callable[[Any], bool]
    read: Callable[[Any, Reading], Iterator[Record]]


def document_format(value: Any, wanted: str | None = None) -> DocumentFormat | None:
    """Return the format of a JSON value, the first that fits.

    Args:
        wanted: Only this one.
    """
    known = (one for one in DOCUMENT_FORMATS if wanted in (None, one.name))
    return next((one for one in known if one.fits(value)), None)


DOCUMENT_FORMATS: tuple[DocumentFormat, ...] = (
    DocumentFormat(langchain_messages.FORMAT, langchain_messages.fits, langchain_messages.read),
    DocumentFormat(openai_messages.FORMAT, openai_messages.fits, openai_messages.read),
    DocumentFormat(llamaindex_chat.FORMAT, llamaindex_chat.fits, llamaindex_chat.read),
    DocumentFormat(mem0_export.FORMAT, mem0_export.fits, mem0_export.read),
    DocumentFormat(advanced.FORMAT, advanced.fits, advanced.read),
    DocumentFormat(swarm_state.FORMAT, swarm_state.fits, swarm_state.read),
    DocumentFormat(
        swarm_state.DISTRIBUTED, swarm_state.fits_distributed, swarm_state.read_distributed
    ),
    DocumentFormat(swarm_agents.FORMAT, swarm_agents.fits, swarm_agents.read),
    DocumentFormat(mcp_json.FORMAT, mcp_json.fits, mcp_json.read),
    DocumentFormat(memory_manager.FORMAT, memory_manager.fits, memory_manager.read),
    DocumentFormat(simple.FORMAT, simple.fits, simple.read),
)
"""In this order; the first that fits is taken."""
