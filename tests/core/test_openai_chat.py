"""Messages of the OpenAI chat API and its neighbours: read without loss, written without loss."""

import pytest

from hiermem_core import HierMem, InvalidInputError
from hiermem_core.threads.openai_chat import draft_of

PNG = "iVBORw0KGgo="


@pytest.fixture
def thread():
    with HierMem.open(":memory:") as hiermem:
        yield hiermem.tenant("alice").thread("t1")


def shown(thread, *messages):
    thread.append([{"role": "user", "content": "go"}, *messages])
    return thread.context(budget_tokens=10_000).to_openai()[1:]


def test_a_refusal_beside_the_content_is_part_of_it(thread):
    refusal = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}

    assert shown(thread, refusal)[0]["content"] == "I cannot help with that."
    assert thread.turns()[1].parts[0]["type"] == "refusal"


def test_a_legacy_function_call_is_one_call(thread):
    call = {"name": "weather", "arguments": '{"city": "Kyoto"}'}
    draft = draft_of({"role": "assistant", "content": None, "function_call": call})

    assert [(c.id, c.name, c.args) for c in draft.tool_calls] == [
        (None, "weather", {"city": "Kyoto"})
    ]


def test_tool_blocks_of_other_providers_are_calls_and_results(thread):
    use = {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Kyoto"}}
    asked = draft_of(
        {"role": "assistant", "content": [{"type": "text", "text": "Let me see"}, use]}
    )
    result = {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [{"type": "text", "text": "18"}],
    }
    answered = draft_of({"role": "user", "content": [result]})

    assert [(c.id, c.name, c.args) for c in asked.tool_calls] == [
        ("c1", "weather", {"city": "Kyoto"})
    ]
    assert asked.content == "Let me see"
    assert answered.content == "18"


def test_images_and_audio_come_out_as_they_went_in(thread):
    blocks = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
    ]

    assert shown(thread, {"role": "user", "content": blocks})[-1]["content"] == blocks


def test_media_without_a_block_there_are_named_by_their_kind(thread):
    video = {"type": "media", "kind": "video", "uri": "https://example.com/a.mp4"}

    content = shown(thread, {"role": "user", "content": "see", "parts": [video]})[-1]["content"]

    assert [block["text"] for block in content] == ["see", "[video]"]


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ({"role": "user", "content": 5}, "content"),
        ({"role": "user", "content": [5]}, "content"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": 5}}]}, "content"),
        ({"role": "user", "parts": 5}, "parts"),
        ({"role": "assistant", "tool_calls": 5}, "tool_calls"),
        ({"role": "assistant", "tool_calls": ["x"]}, "tool_calls"),
        ({"role": "narrator", "content": "x"}, "role"),
        ({"role": "user", "content": "x", "created_at": "soon"}, "created_at"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(message, name):
    with pytest.raises(InvalidInputError) as raised:
        draft_of(message)

    assert raised.value.name == name
