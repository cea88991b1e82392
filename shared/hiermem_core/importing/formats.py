"""The names of all formats."""

from __future__ import annotations

from hiermem_core.importing import chat_jsonl, chroma, own_export
from hiermem_core.importing.documents import DOCUMENT_FORMATS
from hiermem_core.importing.tables import TABLE_FORMATS

FORMATS: tuple[str, ...] = tuple(
    dict.fromkeys(
        [
            *(one.name for one in DOCUMENT_FORMATS),
            *(one.name for one in TABLE_FORMATS),
            chat_jsonl.FORMAT,
            *chroma.FORMATS,
            own_export.FORMAT,
        ]
    )
)
"""As reports name them."""

CLAUDE_FLOW: tuple[str, ...] = tuple(name for name in FORMATS if name.startswith("claude-flow/"))
