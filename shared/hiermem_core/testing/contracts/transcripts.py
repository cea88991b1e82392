"""Random transcripts: everything a thread may hold, sound or not, for hypothesis."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from hiermem_core.models.threads import Profile, ThreadOptions
from hiermem_core.models.turns import ToolCall, TurnDraft

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FRAGMENTS = (
    *("hello world ", "The quick brown fox. ", "x", "\n\n", "\r\n", "\t", "0123456789 "),
    *("你好世界。", "日本語の文章です。", "한국어 문장 ", "ᄒ\u1161\u11ab", "Привет, мир! "),
    *("مرحبا بالعالم ", "שלום ", "नमस्ते दुनिया ", "สวัสดี", "ὦ ξεῖν "),
    *("👩‍👩‍👧‍👦", "🇩🇪🇯🇵", "👍🏽", "é", "a\u0301\u0323", "\u200b", "\u202eabc"),
    *("def f(x):\n    return x ** 2\n", '{"a": [1, null]} ', "<|endoftext|>", "https://x.org/?a=b"),
)
"""Words of all scripts, joined and unjoined emoji, marks, code, and what looks like markup."""

SENTENCES = tuple(
    fragment + FRAGMENTS[(7 * place + 3) % len(FRAGMENTS)] + FRAGMENTS[(11 * place) % 13]
    for place, fragment in enumerate(FRAGMENTS)
)

TEXTS = (*FRAGMENTS, *SENTENCES, *(text * (9 + place) for place, text in enumerate(SENTENCES)))
"""Words, sentences across scripts, and long texts: one draw each, since drawing costs most."""

CALL_IDS = ("a", "b", "c", None)
"""Few, so that they are reused, answered late, and answered without a call."""

MEDIA: tuple[dict[str, Any], ...] = (
    {"type": "media", "kind": "image", "base64": "QUJD" * 30, "mime_type": "image/png"},
    {"type": "media", "kind": "audio", "uri": "https://example.org/a.mp3"},
    {"type": "media", "kind": "document", "file_id": "f1", "title": "größe"},
    {"type": "reasoning", "text": "let me think"},
    {"type": "reasoning", "text": "", "tokens": 12},
    {"type": "opaque", "value": {"type": "new", "deep": [1, None]}},
    {"type": "cache", "value": {"type": "ephemeral"}},
)


@dataclass(frozen=True)
class Request:
    """A transcript and what is asked of it.

    Attributes:
        turns: To be stored before.
        arguments: Of `Thread.context`, without the budget.
    """

    turns: Sequence[TurnDraft]
    budget: int
    arguments: Mapping[str, Any] = field(default_factory=dict)


def texts() -> st.SearchStrategy[str]:
    """Give texts of all scripts; some long."""
    return st.integers(0, len(TEXTS) - 1).map(TEXTS.__getitem__)


def blanks() -> st.SearchStrategy[str | None]:
    """Give what says nothing."""
    return st.sampled_from((None, "", "  \n\t", "\u2003"))


def parts() -> st.SearchStrategy[list[dict[str, Any]]]:
    """Give content blocks: texts, media, reasoning, and blocks nobody knows."""
    text = texts().map(lambda value: {"type": "text", "text": value})
    return st.lists(text | st.sampled_from(MEDIA), min_size=1, max_size=3)


def calls() -> st.SearchStrategy[list[ToolCall]]:
    """Give one to three parallel calls."""
    arguments = st.dictionaries(texts(), texts() | st.integers(), max_size=2)
    call = st.builds(ToolCall, st.sampled_from(CALL_IDS), st.just("find"), arguments | texts())
    return st.lists(call, min_size=1, max_size=3, unique_by=lambda call: call.id)


@st.composite
def spoken(draw: st.DrawFn, role: Any, *, pinned: bool = False) -> TurnDraft:
    """Give a turn of a role that says something, or nothing, in one of all forms."""
    if draw(st.integers(0, 5)) == 0:
        return TurnDraft(role=role, content=draw(blanks()), pinned=pinned)
    text = draw(texts())
    if draw(st.integers(0, 4)):
        return TurnDraft(role=role, content=text, pinned=pinned)
    blocks = draw(parts())
    said = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    return TurnDraft(role=role, content=said or None, parts=blocks, pinned=pinned)


@st.composite
def calling(draw: st.DrawFn) -> TurnDraft:
    """Give an assistant turn with calls."""
    content = draw(blanks() | texts())
    return TurnDraft(role="assistant", content=content, tool_calls=draw(calls()))


@st.composite
def results(draw: st.DrawFn, call_id: str | None = None) -> TurnDraft:
    """Give a tool result, possibly empty or long."""
    content = draw(texts() | blanks())
    return TurnDraft(role="tool", content=content, tool_call_id=call_id, name="find")


def loose_turns() -> st.SearchStrategy[TurnDraft]:
    """Give any one turn: a greeting, an orphan, a pending call, a system turn, a pinned one."""
    return st.one_of(
        spoken("user"),
        spoken("assistant"),
        calling(),
        st.sampled_from(CALL_IDS).flatmap(results),
        spoken("system"),
        spoken("user", pinned=True),
    )


@st.composite
def exchanges(draw: st.DrawFn) -> list[TurnDraft]:
    """Give a question, up to two rounds of calls with most of their results, and an answer."""
    turns = [TurnDraft(role="user", content="?" + draw(texts()))]
    for _ in range(draw(st.integers(0, 2))):
        asked = draw(calling())
        turns.append(asked)
        turns += [draw(results(call.id)) for call in asked.tool_calls if draw(st.integers(0, 5))]
    return turns + draw(st.lists(spoken("assistant"), max_size=1))


def transcripts() -> st.SearchStrategy[list[TurnDraft]]:
    """Give whole transcripts, with loose turns anywhere."""
    piece = exchanges() | loose_turns().map(lambda turn: [turn])
    return st.lists(piece, max_size=6).map(
        lambda pieces: [turn for some in pieces for turn in some]
    )


def drafts() -> st.SearchStrategy[TurnDraft]:
    """Give any one turn."""
    return loose_turns()


@st.composite
def currents(draw: st.DrawFn) -> Any:
    """Give what is used and not stored: nothing, a question, or results of stored calls."""
    kind = draw(st.sampled_from(("none", "none", "question", "results")))
    if kind == "none":
        return None
    if kind == "question":
        return "?" + draw(texts())
    return draw(st.lists(st.sampled_from(CALL_IDS).flatmap(results), min_size=1, max_size=2))


def earlier_turns() -> st.SearchStrategy[list[TurnDraft]]:
    """Give turns to be recalled."""
    return st.lists(spoken("user") | spoken("assistant"), min_size=3, max_size=9)


@st.composite
def requests(draw: st.DrawFn, *, recall: bool = True) -> Request:
    """Give a transcript that is not empty, a budget, and arguments of a context.

    Args:
        recall: Half of them recall what an earlier turn says, and show few exchanges.
    """
    turns = draw(transcripts().filter(bool))
    recalls = recall and draw(st.booleans())
    earlier = draw(earlier_turns()) if recalls else []
    said = [turn.content for turn in earlier if turn.content]
    tools = [{"name": "find", "description": draw(texts())}] if draw(st.booleans()) else []
    cap = draw(st.integers(0, 1) if recalls else st.none() | st.integers(0, 4))
    arguments = {
        "current": draw(currents()),
        "profile": Profile(working_memory=ThreadOptions(window_exchanges=cap)),
        "system": draw(st.just("") | texts()),
        "tools": tools,
        "on_over_budget": draw(st.sampled_from(("truncate", "truncate", "truncate", "raise"))),
        "recall": recalls,
    }
    if said:
        arguments["query"] = draw(st.sampled_from(said))
    budget = draw(st.integers(40, 400) | st.integers(0, 4_000))
    return Request([*earlier, *turns], budget, arguments)
