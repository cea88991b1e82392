"""A block of LlamaIndex's `Memory` on the long-term entries of one tenant."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence  # noqa: TC003 - read by pydantic
from typing import Any, Literal, Self
from urllib.parse import quote

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import Field
from llama_index.core.memory.memory import BaseMemoryBlock

from hiermem_core import EntryDraft, MissingIdentityError, Tenant, memory_block
from llamaindex_hiermem.counting import default_tokenizer
from llamaindex_hiermem.entries import entries_for
from llamaindex_hiermem.handles import Live, dumped_tenant, place_of, tenant_of
from llamaindex_hiermem.messages import message_to_turn

NAMESPACE = "chat"
"""Where entries go if no namespace is named."""

_DUMP_VERSION = 1
_ENTRIES = "[entries]\n"
_END = "</recalled>\n"
_CONTENT_LIMIT = 1024 * 1024
_SPEAKERS: Mapping[str, Literal["user", "assistant"]] = {"user": "user", "assistant": "assistant"}


class HierMemMemoryBlock(Live, BaseMemoryBlock[str]):
    """What `Memory` forgets becomes episodic entries; what answers the newest question comes back.

    A message is one entry, however often it is put, with its role and thread as metadata. What
    users and assistants say is kept; calls of tools and their results are not. The text given to
    the prompt is one escaped part that says it is data, best hits first. Messages given are never
    changed.

    `Memory.reset` leaves blocks alone; forget their entries by the tenant. On some versions of
    LlamaIndex a block of `priority=1` is shortened before one of `priority=2`.

    Attributes:
        k: Hits at most.
        namespace: Where entries are kept and looked for; `None`: kept in `"chat"`, looked for
            everywhere.
        types: Only entries of these are looked for; `None`: of every type.
        min_score: The least score, 0 to 1.
        scope: `"session"`: a call keeps and finds only what its own session put.
        tokenizer_fn: Counts what is cut off: the length of what it returns.

    Example:
        ```python
        block = HierMemMemoryBlock(tenant=hiermem.tenant("alice"), k=3)
        memory = Memory.from_defaults(session_id="trip", memory_blocks=[block])
        ```
    """

    name: str = "hiermem"
    tenant: Tenant = Field(default_factory=lambda: tenant_of(None), exclude=True)
    k: int = Field(default=5, ge=1)
    namespace: str | None = None
    types: list[str] | None = Field(default=None, min_length=1)
    min_score: float | None = None
    scope: Literal["tenant", "session"] = "tenant"
    tokenizer_fn: Callable[[str], list[Any]] = Field(
        default_factory=lambda: default_tokenizer, exclude=True
    )

    async def aput(
        self,
        messages: Sequence[ChatMessage],
        from_short_term_memory: bool = False,  # noqa: FBT001, FBT002 - spelled by LlamaIndex
        session_id: str | None = None,
    ) -> None:
        """Keep what is said in messages.

        Raises:
            MissingIdentityError: A block of scope `"session"`, and no session.
        """
        if not from_short_term_memory or self.accept_short_term_memory:
            await self.tenant.pool.run(self._keep, list(messages), session_id)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Return the content without its lowest hits, so that as many tokens go; `None`: all do."""
        return await self.tenant.pool.run(self._shortened, content, tokens_to_truncate)

    async def _aget(
        self, messages: Sequence[ChatMessage] | None = None, **block_kwargs: Any
    ) -> str:
        session_id = block_kwargs.get("session_id")
        return await self.tenant.pool.run(self._found, list(messages or ()), session_id)

    async def _aput(self, messages: Sequence[ChatMessage]) -> None:
        await self.tenant.pool.run(self._keep, list(messages), None)

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` needs, as plain JSON; no entries."""
        fields = self.model_dump()
        return {"version": _DUMP_VERSION, **place_of(self.tenant), "fields": fields}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the block of a dump, on the same entries.

        Raises:
            ConfigurationError: The dump's location does not exist.
        """
        return cls(tenant=dumped_tenant(data), **data["fields"])

    def __copy__(self) -> Self:
        """Return a block on the same tenant and live service."""
        return type(self)(**{name: getattr(self, name) for name in type(self).model_fields})

    def _found(self, messages: Sequence[ChatMessage], session_id: str | None) -> str:
        """Return what the newest question recalls, as one part of data."""
        asked = [m.content for m in messages if m.role == MessageRole.USER and m.content]
        if not asked or (self.scope == "session" and session_id is None):
            return ""
        hits = entries_for(
            self.tenant,
            asked[-1],
            k=self.k,
            namespace=self._place(session_id) if self.scope == "session" else self.namespace,
            types=self.types,
            min_score=self.min_score,
        )
        return _inside(memory_block("", hits))

    def _keep(self, messages: Sequence[ChatMessage], session_id: str | None) -> None:
        namespace = self._place(session_id)
        drafts = [_draft(message, namespace, session_id) for message in messages]
        self.tenant.memory.write([draft for draft in drafts if draft is not None])

    def _place(self, session_id: str | None) -> str:
        namespace = self.namespace or NAMESPACE
        if self.scope == "tenant":
            return namespace
        if not session_id:
            raise MissingIdentityError("session_id")
        return f"{namespace}/{quote(session_id, safe='')}"

    def _shortened(self, content: str, tokens_to_truncate: int) -> str | None:
        if not content:
            return None
        if tokens_to_truncate <= 0:
            return content
        most = len(self.tokenizer_fn(content)) - tokens_to_truncate
        head, items, tail = _parted(content)
        while items:
            items.pop()
            shorter = f"{head}{''.join(items)}{tail}"
            if items and len(self.tokenizer_fn(shorter)) <= most:
                return shorter
        return None


def _inside(block: str) -> str:
    """Return a block without the tags around it, which the template of `Memory` sets by itself."""
    return block.removeprefix("<memory>\n").removesuffix("</memory>")


def _parted(content: str) -> tuple[str, list[str], str]:
    """Return what stands before the hits, each hit with its further lines, and what follows."""
    head, separator, rest = content.partition(_ENTRIES)
    listed, end, after = rest.rpartition(_END)
    items: list[str] = []
    for line in listed.splitlines(keepends=True):
        if line.startswith(" ") and items:
            items[-1] += line
        else:
            items.append(line)
    return head + separator, items, end + after


def _draft(message: ChatMessage, namespace: str, session_id: str | None) -> EntryDraft | None:
    """Return the entry of a message; `None` for one that says nothing to keep."""
    turn = message_to_turn(message)
    source = _SPEAKERS.get(turn.role)
    text = (turn.content or "")[:_CONTENT_LIMIT]
    if source is None or not text.strip():
        return None
    said = "\0".join((session_id or "", turn.role, text))
    metadata: dict[str, Any] = {"role": turn.role}
    if session_id is not None:
        metadata["thread"] = session_id
    return EntryDraft(
        content=text,
        namespace=namespace,
        key=hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest(),
        type="episodic",
        source=source,
        metadata=metadata,
    )
