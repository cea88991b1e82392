"""What is recalled takes its place among messages, within what they leave of a limit. Pure.

A block goes into the slot of a leading system message; else, where the question follows, to the
end of the leading system message, or into one of its own; else in front of the newest question,
inside the same message. Messages given are never changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from llama_index.core.llms import ChatMessage, MessageRole

from hiermem_core import memory_block
from llamaindex_hiermem.blocks import build_block
from llamaindex_hiermem.messages import AS_THE_TURN, made_message, restored_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hiermem_core import Hit, Turn, TurnHit
    from llamaindex_hiermem.counting import Counting

SLOT = "{memory}"


@dataclass(frozen=True, slots=True)
class Placed:
    """Messages with hits in them.

    Attributes:
        tokens: Of the joined text of all messages.
    """

    messages: tuple[ChatMessage, ...]
    hits: tuple[Hit | TurnHit, ...]
    tokens: int


def place_hits(
    messages: Sequence[ChatMessage],
    hits: Sequence[Hit | TurnHit],
    *,
    limit: int,
    count: Counting,
    follows: bool,
) -> Placed:
    """Return the messages with as many hits as fit `limit`, best first.

    A hit that does not fit is left out whole, and a smaller one may follow. No message is left out
    for a hit.
    """
    emptied = None if _slot_of(messages) is None else place(messages, "", follows=False)
    bare = list(messages) if emptied is None else emptied
    tokens = count.joined(texts_of(bare))
    picked: list[Hit | TurnHit] = []
    for hit in hits:
        block = memory_block("", [*picked, hit])
        if tokens + count(f"\n\n{block}") <= limit:
            picked.append(hit)
    while picked:
        placed = place(messages, memory_block("", picked), follows=follows)
        if placed is None:
            break
        total = count.joined(texts_of(placed))
        if total <= limit:
            return Placed(tuple(placed), tuple(picked), total)
        picked.pop()
    return Placed(tuple(bare), (), tokens)


def texts_of(messages: Sequence[ChatMessage]) -> list[str]:
    """Return what is counted of messages: their text, `None` where one has none."""
    return [str(message.content) for message in messages]


def place(
    messages: Sequence[ChatMessage], block: str, *, follows: bool
) -> list[ChatMessage] | None:
    """Return the messages with a block in its place; `None` where there is no place for it."""
    first, rest = messages[:1], messages[1:]
    slot = _slot_of(messages)
    if slot is not None:
        return [_with_text(first[0], slot, _text(first[0], slot).replace(SLOT, block, 1)), *rest]
    if follows and first and first[0].role == MessageRole.SYSTEM:
        return [_joined_to(first[0], block, is_first=False), *rest]
    if follows:
        return [ChatMessage(role=MessageRole.SYSTEM, content=block), *messages]
    asked = [i for i, message in enumerate(messages) if message.role == MessageRole.USER]
    if not asked:
        return None
    newest = asked[-1]
    question = _joined_to(messages[newest], block, is_first=True)
    return [*messages[:newest], question, *messages[newest + 1 :]]


def restored_view(turn: Turn, block: str) -> ChatMessage | None:
    """Return the message of a turn that is as it was stored, but for a block that was put in."""
    origin = turn.origin
    if not block or origin is None or not origin.is_stale or origin.dump == AS_THE_TURN:
        return None
    stored = restored_message(replace(turn, origin=replace(origin, is_stale=False)))
    if stored is None:
        return None
    (message,) = place([stored], block, follows=turn.role == "system") or [stored]
    bare = (turn.content or "").replace(block, "", 1).strip("\n")
    is_only_that = bare == (stored.content or "").replace(SLOT, "", 1).strip("\n")
    return message if is_only_that else None


def _slot_of(messages: Sequence[ChatMessage]) -> int | None:
    """Return which block of a leading system message asks for what is remembered."""
    if not messages or messages[0].role != MessageRole.SYSTEM:
        return None
    blocks: Sequence[Any] = messages[0].blocks
    asking = (i for i, b in enumerate(blocks) if b.block_type == "text" and SLOT in b.text)
    return next(asking, None)


def _joined_to(message: ChatMessage, block: str, *, is_first: bool) -> ChatMessage:
    """Return a message with a block before or after its text, and all else as it is."""
    blocks: Sequence[Any] = message.blocks
    if len(blocks) == 1 and blocks[0].block_type == "text" and blocks[0].text:
        texts = (block, blocks[0].text) if is_first else (blocks[0].text, block)
        return _with_text(message, 0, "\n\n".join(texts))
    added = build_block({"block_type": "text", "text": block})
    ordered = [added, *blocks] if is_first else [*blocks, added]
    return made_message(message.role, ordered, message.additional_kwargs)


def _with_text(message: ChatMessage, place: int, text: str) -> ChatMessage:
    blocks: list[Any] = list(message.blocks)
    blocks[place] = build_block({"block_type": "text", "text": text})
    return made_message(message.role, blocks, message.additional_kwargs)


def _text(message: ChatMessage, place: int) -> str:
    block: Any = message.blocks[place]
    return str(block.text)
