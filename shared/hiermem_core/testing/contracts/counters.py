"""What every token counter must hold."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hiermem_core.models.plain import dump_json
from hiermem_core.models.turns import ToolCall, TurnDraft
from hiermem_core.protocols import TokenCounter
from hiermem_core.testing.contracts.transcripts import drafts, texts

if TYPE_CHECKING:
    from collections.abc import Mapping

shared = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)
"""One property, run by every subclass, on one counter that no example changes."""

PAYLOAD = "QUJD" * 100_000
"""400 KB of base64."""

PAYLOAD_PARTS: dict[str, dict[str, Any]] = {
    "image": {"type": "media", "kind": "image", "mime_type": "image/png"},
    "audio": {"type": "media", "kind": "audio", "format": "wav"},
    "video": {"type": "media", "kind": "video", "mime_type": "video/mp4"},
    "file": {"type": "media", "kind": "document", "mime_type": "application/pdf"},
}

ODD_TEXTS = {
    "lone surrogate": "hi \ud83d there",
    "NUL": "a\x00b",
    "special token": "<|endoftext|><|im_start|>",
    "a million spaces": " " * 1_000_000,
    "no space at all": "x" * 300_000,
    "combining marks": "e" + "\u0301" * 5_000,
    "unassigned code points": "\U0003ffff\U000e0fff\uffff",
}

ARGUMENTS = {"query": "select the rows " * 200, "filters": [{"field": "größe", "op": "<"}] * 20}


class TokenCounterContract:
    """Every promise of a token counter.

    A subclass gives the fixture `counter`.
    """

    @pytest.fixture
    def counter(self) -> TokenCounter:
        """Give the counter under test."""
        raise NotImplementedError

    @shared
    @given(text=st.text() | texts())
    def test_p12_every_text_has_one_whole_count(self, counter: TokenCounter, text: str) -> None:
        tokens = counter.count(text)

        assert type(tokens) is int
        assert tokens >= 0
        assert counter.count("".join(list(text))) == tokens

    def test_p12_the_empty_text_counts_nothing(self, counter: TokenCounter) -> None:
        assert counter.count("") == 0

    @pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS.keys())
    def test_p12_no_text_raises(self, counter: TokenCounter, text: str) -> None:
        assert counter.count(text) == counter.count(text) >= 0

    @shared
    @given(draft=drafts())
    def test_p12_every_turn_has_one_count(self, counter: TokenCounter, draft: TurnDraft) -> None:
        tokens = counter.count_turn(draft)

        assert type(tokens) is int
        assert tokens > 0
        assert counter.count_turn(draft) == tokens

    def test_the_id_names_this_way_of_counting(self, counter: TokenCounter) -> None:
        assert isinstance(counter, TokenCounter)
        assert counter.id
        assert counter.id == counter.id.strip()

    @pytest.mark.parametrize("part", PAYLOAD_PARTS.values(), ids=PAYLOAD_PARTS.keys())
    def test_c15_a_payload_counts_flat_whatever_its_size(
        self, counter: TokenCounter, part: Mapping[str, Any]
    ) -> None:
        small = counter.count_turn(turn_with({**part, "base64": "QUJD"}))
        large = counter.count_turn(turn_with({**part, "base64": PAYLOAD}))
        linked = counter.count_turn(turn_with({**part, "uri": "https://example.org/x"}))

        assert small == large == linked
        assert counter.count_turn(turn_with()) < large < 5_000

    @pytest.mark.parametrize(
        "value",
        [
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PAYLOAD}"}},
            {"type": "new_media", "blob": {"data": PAYLOAD}},
            {"type": "new_media", "url_safe": "-_8" * 100_000},
        ],
        ids=["data address", "bare base64", "address-safe base64"],
    )
    def test_c15_a_payload_in_a_block_nobody_knows_counts_flat(
        self, counter: TokenCounter, value: Mapping[str, Any]
    ) -> None:
        assert counter.count_turn(turn_with({"type": "opaque", "value": value})) < 5_000

    def test_c15_text_beside_a_payload_counts(self, counter: TokenCounter) -> None:
        image = {**PAYLOAD_PARTS["image"], "base64": PAYLOAD}
        words = {"type": "text", "text": "what is in this picture " * 50}

        more = counter.count_turn(turn_with(image, words)) - counter.count_turn(turn_with(image))

        assert more == counter.count(words["text"])

    @pytest.mark.parametrize("content", [None, ""])
    def test_c16_calls_count_at_least_as_their_compact_json_and_once(
        self, counter: TokenCounter, content: str | None
    ) -> None:
        call = ToolCall("call_1", "search_everything", ARGUMENTS)
        bare = counter.count_turn(TurnDraft(role="assistant", content=content))

        added = counter.count_turn(calling(call, content=content)) - bare

        least = counter.count(dump_json(ARGUMENTS)) + counter.count(call.name)
        assert least <= added < 1.5 * least

    def test_c16_a_call_that_stands_among_the_parts_too_counts_once(
        self, counter: TokenCounter
    ) -> None:
        call = ToolCall("call_1", "search_everything", ARGUMENTS)
        mark = {"type": "tool_call", "id": "call_1", "index": 0}
        marked = TurnDraft(role="assistant", tool_calls=[call], parts=[mark])

        assert counter.count_turn(marked) == counter.count_turn(calling(call))

    def test_c16_each_of_two_calls_counts(self, counter: TokenCounter) -> None:
        one, other = (ToolCall(name, "search_everything", ARGUMENTS) for name in ("c1", "c2"))
        bare = counter.count_turn(TurnDraft(role="assistant"))

        added = counter.count_turn(calling(one)) - bare
        both = counter.count_turn(calling(one, other)) - bare

        assert both == added + counter.count_turn(calling(other)) - bare

    def test_c16_arguments_that_are_no_json_count_as_the_text_they_are(
        self, counter: TokenCounter
    ) -> None:
        raw = '{"query": "cut off in the midd' * 50
        bare = counter.count_turn(TurnDraft(role="assistant"))

        added = counter.count_turn(calling(ToolCall("c", "find", raw))) - bare

        assert added >= counter.count(raw)

    def test_name_and_call_id_of_a_turn_count(self, counter: TokenCounter) -> None:
        bare = counter.count_turn(TurnDraft(role="tool", content="42"))
        named = TurnDraft(role="tool", content="42", name="find_words", tool_call_id="call_1")

        assert counter.count_turn(named) > bare


def turn_with(*parts: Mapping[str, Any]) -> TurnDraft:
    """Return a user turn of these parts."""
    return TurnDraft(role="user", parts=parts)


def calling(*calls: ToolCall, content: str | None = None) -> TurnDraft:
    """Return an assistant turn that asks for these calls."""
    return TurnDraft(role="assistant", content=content, tool_calls=calls)
