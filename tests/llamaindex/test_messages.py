"""Messages become turns and come back equal, in this process and in another one."""

from __future__ import annotations

import ast
import json
from copy import deepcopy
from dataclasses import asdict, replace
from datetime import UTC, datetime
from enum import Enum
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.bridge.pydantic import AnyUrl, BaseModel
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.schema import ImageDocument

from hiermem_core import InvalidInputError, Origin, ToolCall, TurnDraft, from_plain
from llamaindex_hiermem import blocks, messages, parts
from llamaindex_hiermem.blocks import block_classes
from llamaindex_hiermem.messages import message_to_turn, restored_message, turn_to_message

KINDS = tuple(block_classes())
PAYLOAD_FIELDS = {"image": "image", "audio": "audio", "video": "video", "document": "data"}
MEDIA = tuple(kind for kind in PAYLOAD_FIELDS if kind in KINDS)
HERE = Path(__file__)
LEGACY_CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


class Hologram(BaseModel):
    """A block kind of a core that is not released yet."""

    block_type: Literal["hologram"] = "hologram"
    beam: str = "blue"


class Finish(Enum):
    """An enumeration of a provider's SDK."""

    STOP = 1


class WebUrl(AnyUrl):
    """A URL type that an application brings."""


def block(kind: str, **fields: Any) -> Any:
    return block_classes()[kind](**fields)


def message_of(*items: Any, **kwargs: Any) -> ChatMessage:
    return ChatMessage(role=MessageRole.ASSISTANT, blocks=list(items), additional_kwargs=kwargs)


def restarted(draft: TurnDraft) -> TurnDraft:
    """Return a draft as another process reads it: through JSON text."""
    body = json.loads(json.dumps(asdict(draft), allow_nan=False))
    body["tool_calls"] = tuple(ToolCall(**call) for call in body["tool_calls"])
    return TurnDraft(**{**body, "origin": Origin(**body["origin"])})


def round_trip(message: ChatMessage) -> ChatMessage:
    return turn_to_message(restarted(message_to_turn(message)))


def with_dump(draft: TurnDraft, **fields: Any) -> TurnDraft:
    """Return a draft as a newer core would have stored it."""
    assert draft.origin is not None
    dump = json.dumps(json.loads(draft.origin.dump) | fields)
    return replace(draft, origin=replace(draft.origin, dump=dump))


def spoken_calls(draft: TurnDraft) -> list[tuple[Any, ...]]:
    return [(call.id, call.name, from_plain(call.args)) for call in draft.tool_calls]


def typed(value: Any) -> Any:
    """Return a value with its types spelled out: 1, 1.0 and True differ, NaN is NaN."""
    if isinstance(value, BaseModel):
        return type(value), typed(dict(value))
    if isinstance(value, dict):
        return {(type(key), key): typed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value), [typed(item) for item in value]
    if isinstance(value, set | frozenset):
        return type(value), frozenset(typed(item) for item in value)
    return type(value), repr(value)


TEXT = st.text(max_size=8)
OPTIONAL_TEXT = st.none() | TEXT
SCALARS = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXT, st.binary()),
    *(st.dates(), st.uuids(), st.decimals(allow_nan=False)),
    st.datetimes(timezones=st.none() | st.just(UTC)).map(lambda moment: moment.replace(fold=0)),
)
KEYS = TEXT | st.sampled_from(["$hiermem", "value", "block_type", "path"])
VALUES = st.recursive(
    SCALARS | st.sets(SCALARS, max_size=3) | st.frozensets(SCALARS, max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS | st.integers(), inner, max_size=3)
    ),
    max_leaves=4,
)
MAPPINGS = st.dictionaries(KEYS, VALUES, max_size=3)
PLACES: dict[str, st.SearchStrategy[Any]] = {
    "path": st.none() | st.just(HERE),
    "url": st.sampled_from([None, "https://a.example/ä b.png", "data:text/plain;base64,YQ=="]),
}
MEDIA_FACTS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "image": {"image_mimetype": OPTIONAL_TEXT, "detail": OPTIONAL_TEXT},
    "audio": {"format": OPTIONAL_TEXT},
    "video": {"video_mimetype": OPTIONAL_TEXT, "fps": st.none() | st.integers()},
    "document": {"document_mimetype": OPTIONAL_TEXT, "title": OPTIONAL_TEXT},
}


def blocks_of(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return blocks of a kind; a place that is none is not given, as old cores refuse that."""
    given = {name: values for name, values in fields.items() if name not in PLACES}
    places = {name: values for name, values in fields.items() if name in PLACES}
    known = st.fixed_dictionaries(places).map(
        lambda all_of: {name: place for name, place in all_of.items() if place is not None}
    )
    return st.builds(lambda known, **facts: block(kind, **facts, **known), known, **given)


def media_of(kind: str) -> st.SearchStrategy[Any]:
    payload = {PAYLOAD_FIELDS[kind]: st.none() | st.binary(max_size=40)}
    return blocks_of(kind, **payload, **PLACES, **MEDIA_FACTS[kind])


TEXTS = blocks_of("text", text=TEXT)
SOURCE = {"title": TEXT, "source": TEXT}
BLOCKS = {
    "text": TEXTS,
    **{kind: media_of(kind) for kind in MEDIA},
    "thinking": blocks_of(
        "thinking",
        content=OPTIONAL_TEXT,
        num_tokens=st.none() | st.integers(),
        additional_information=MAPPINGS,
    ),
    "tool_call": blocks_of(
        "tool_call",
        tool_call_id=OPTIONAL_TEXT,
        tool_name=TEXT,
        tool_kwargs=MAPPINGS | TEXT | st.just('{"a": 1}'),
    ),
    "citable": blocks_of(
        "citable", content=st.lists(TEXTS | media_of("image") | media_of("document")), **SOURCE
    ),
    "citation": blocks_of(
        "citation",
        cited_content=TEXTS | media_of("image"),
        additional_location_info=st.dictionaries(TEXT, st.integers(), max_size=2),
        **SOURCE,
    ),
    "cache": blocks_of("cache", cache_control=st.fixed_dictionaries({"type": TEXT, "ttl": TEXT})),
}
KNOWN_KWARGS: dict[str, st.SearchStrategy[Any]] = {
    "name": TEXT,
    "tool_call_id": TEXT,
    "tool_calls": st.just([LEGACY_CALL]),
}
MESSAGES = st.builds(
    ChatMessage,
    role=st.sampled_from(MessageRole),
    blocks=st.lists(st.one_of([BLOCKS[kind] for kind in KINDS]), max_size=4),
    additional_kwargs=st.tuples(MAPPINGS, st.fixed_dictionaries({}, optional=KNOWN_KWARGS)).map(
        lambda both: both[0] | both[1]
    ),
)


@given(message=MESSAGES)
def test_l49_a_message_comes_back_equal_after_a_restart(message: ChatMessage) -> None:
    restored = round_trip(message)

    assert restored == message
    assert typed(restored) == typed(message)


@given(message=MESSAGES)
def test_l49_the_neutral_form_says_what_the_message_says(message: ChatMessage) -> None:
    draft = restarted(message_to_turn(message))
    again = message_to_turn(turn_to_message(replace(draft, origin=None)))

    assert draft.content == message.content == again.content
    assert spoken_calls(again) == spoken_calls(draft)
    assert again.tool_call_id == draft.tool_call_id
    assert again.name == draft.name


@pytest.mark.parametrize("kind", KINDS)
def test_l49_every_block_kind_of_this_core_is_generated_and_has_a_part(kind: str) -> None:
    assert kind in BLOCKS
    assert kind in parts._PARTS_OF


def test_l49_nan_and_typed_values_in_kwargs_come_back() -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    kwargs = {"usage": {1: float("nan"), "at": moment}, "pair": (b"\xff", {2})}

    restored = round_trip(message_of(**deepcopy(kwargs)))

    assert typed(restored.additional_kwargs) == typed(kwargs)


def test_l49_a_path_comes_back_after_its_file_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "scan.png"
    file.write_bytes(b"x")
    message = message_of(*[block(kind, path=file) for kind in MEDIA])
    draft = message_to_turn(message)
    file.unlink()

    assert turn_to_message(draft) == message
    assert [part["path"] for part in draft.parts] == [str(file)] * len(MEDIA)


def test_l49_a_document_type_is_not_guessed_from_its_base64_text() -> None:
    looks_like_a_bitmap_once_encoded = {"block_type": "document", "data": b"\x04\xc0\x00\x00"}
    message = ChatMessage(role="user", blocks=[looks_like_a_bitmap_once_encoded])

    restored: Any = round_trip(message)

    assert restored == message
    assert restored.blocks[0].document_mimetype is None


def test_l49_raw_bytes_set_after_construction_come_back_raw() -> None:
    message = message_of(block("image"))
    image: Any = message.blocks[0]
    image.image = b"\x89raw"

    draft = message_to_turn(message)

    assert turn_to_message(draft) == message
    assert draft.parts[0]["base64"] == "iXJhdw=="


@pytest.mark.parametrize(("items", "content"), [([], None), ([""], ""), (["", ""], "\n")])
def test_l49_no_text_and_empty_text_differ(items: list[str], content: str | None) -> None:
    message = message_of(*[block("text", text=text) for text in items])

    assert message_to_turn(message).content == content
    assert round_trip(message).content == content


@given(message=MESSAGES)
def test_converting_and_changing_the_result_leave_the_message_alone(message: ChatMessage) -> None:
    before = typed(message)
    draft = message_to_turn(message)
    for part in draft.parts:
        part.clear()  # type: ignore[attr-defined]  # a dict inside
    turn_to_message(draft).additional_kwargs.clear()
    turn_to_message(draft).blocks.clear()

    assert typed(message) == before
    assert turn_to_message(draft) == message


def test_legacy_images_in_kwargs_are_not_fetched_or_added_again() -> None:
    document = ImageDocument(image="eHl6")
    message = ChatMessage(role="user", content="see", additional_kwargs={"images": [document]})

    draft = message_to_turn(message)

    assert turn_to_message(draft).blocks == message.blocks
    assert draft.replaced == ("$.additional_kwargs.images[0]",)


@pytest.mark.skipif(
    "IOBase" not in str(block_classes()["image"].model_fields["image"].annotation),
    reason="an image of this core is no stream",
)
def test_an_in_memory_stream_is_stored_and_an_open_file_is_not_read() -> None:
    stream = BytesIO(b"abc")
    stream.seek(2)
    with HERE.open("rb") as file:
        draft = message_to_turn(
            message_of(block("image", image=stream), block("image", image=file))
        )
        positions = stream.tell(), file.tell()
    restored: Any = turn_to_message(draft)

    assert positions == (2, 0)
    assert [item.image for item in restored.blocks] == [b"YWJj", None]
    assert draft.replaced == ("$.blocks[0].image", "$.blocks[1].image")
    assert draft.parts[0] == {"type": "media", "kind": "image", "base64": "YWJj"}


def test_values_that_cannot_come_back_are_named() -> None:
    message = message_of(raw={"model": Hologram(), "stop": Finish.STOP}, handle=object(), fine=1)

    draft = message_to_turn(message)
    kwargs = turn_to_message(draft).additional_kwargs

    prefix = "$.additional_kwargs"
    assert draft.replaced == (f"{prefix}.raw.model", f"{prefix}.raw.stop", f"{prefix}.handle")
    assert kwargs["raw"] == {"model": {"block_type": "hologram", "beam": "blue"}, "stop": 1}
    assert kwargs["fine"] == 1


def test_a_url_of_a_narrower_type_comes_back_as_a_url_and_is_named() -> None:
    draft = message_to_turn(message_of(block("image", url=WebUrl("https://a.example/b.png"))))
    restored: Any = turn_to_message(draft)

    assert draft.replaced == ("$.blocks[0].url",)
    assert restored.blocks[0].url == AnyUrl("https://a.example/b.png")


@pytest.mark.parametrize("kind", [None, *sorted({"thinking", "tool_call"} & set(KINDS))])
def test_l14_values_within_themselves_are_refused(kind: str | None) -> None:
    endless: dict[str, Any] = {}
    endless["self"] = endless
    message = message_of(*([block(kind, tool_name="look")] if kind else []))
    holder: Any = message.blocks[0] if kind else message
    field = {"thinking": "additional_information", "tool_call": "tool_kwargs"}
    setattr(holder, field.get(str(kind), "additional_kwargs"), endless)

    with pytest.raises(InvalidInputError, match="nested too deeply"):
        message_to_turn(message)


def test_l22_thinking_and_several_texts_keep_their_order() -> None:
    thinking = [block("thinking", content="hm") for _ in range("thinking" in KINDS)]
    message = message_of(*thinking, block("text", text="a"), block("text", text="b"))

    draft = message_to_turn(message)

    assert [part["type"] for part in draft.parts] == ["reasoning"] * len(thinking) + ["text"] * 2
    assert draft.content == "a\nb"
    assert turn_to_message(draft) == message


def test_l46_an_unknown_role_becomes_a_placeholder_with_role_and_text() -> None:
    draft = with_dump(message_to_turn(message_of(block("text", text="hello"))), role="critic")

    message = turn_to_message(draft)

    assert restored_message(draft) is None
    assert (message.role, message.content) == (MessageRole.ASSISTANT, "hello")


def test_l46_a_block_kind_of_a_newer_core_waits_for_that_core(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    newer = message_of(block("text", text="look"))
    newer.blocks.append(Hologram(beam="red"))  # type: ignore[arg-type]  # unknown on purpose
    draft = restarted(message_to_turn(newer))
    placeholder = turn_to_message(draft)
    known = {**block_classes(), "hologram": Hologram}
    monkeypatch.setattr(blocks, "block_classes", lambda: known)

    assert placeholder == message_of(block("text", text="look"))
    assert turn_to_message(draft) == newer
    assert draft.parts[1]["type"] == "opaque"


@pytest.mark.parametrize("dump", ["", "[]", "{}", '{"role": "user", "blocks": [{"text": "x"}]}'])
def test_l46_a_damaged_dump_still_gives_the_text(dump: str) -> None:
    draft = TurnDraft(role="user", content="kept", origin=Origin("llamaindex", "user", dump))

    assert turn_to_message(draft) == ChatMessage(role="user", content="kept")


@pytest.mark.parametrize("kind", MEDIA)
def test_a_large_payload_lands_in_a_media_part(kind: str) -> None:
    payload = b"\x89" * 300_000
    message = message_of(block("text", text="see"), block(kind, **{PAYLOAD_FIELDS[kind]: payload}))

    draft = message_to_turn(message)

    assert [part["type"] for part in draft.parts] == ["text", "media"]
    assert (draft.parts[1]["kind"], len(draft.parts[1]["base64"])) == (kind, 400_000)
    assert draft.content == "see"
    assert turn_to_message(draft) == message


@pytest.mark.parametrize("module", [blocks, messages, parts])
def test_blocks_are_dispatched_by_kind_and_no_block_class_is_named(module: Any) -> None:
    source = Path(module.__file__).read_text(encoding="utf-8")
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    foreign = [node for node in imports if (node.module or "").startswith("llama_index")]
    names = {alias.name for node in foreign for alias in node.names}
    core_modules = {node.module for node in imports if "hiermem_core" in (node.module or "")}

    assert names <= {"AnyUrl", "BaseModel", "ChatMessage", "MessageRole"}
    assert core_modules <= {"hiermem_core"}
    assert not [model for model in block_classes().values() if model.__name__ in source]
