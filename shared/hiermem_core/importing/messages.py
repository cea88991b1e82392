"""From a message in the dialect of the OpenAI chat API to a turn."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import InvalidInputError
from hiermem_core.importing.names import derived_id
from hiermem_core.importing.reading import record_error
from hiermem_core.importing.records import Message, Record, RecordError, failed
from hiermem_core.importing.times import moment_of
from hiermem_core.models.ids import check_name
from hiermem_core.models.plain import dump_json
from hiermem_core.models.turns import CANONICAL_ROLES, ROLES, Origin, TurnDraft
from hiermem_core.threads.drafts import as_draft

if TYPE_CHECKING:
    from collections.abc import Mapping

MARK = "import"
"""Key of a turn's metadata that says which format it came from."""

_FIELDS = (
    *("role", "content", "tool_calls", "function_call", "refusal"),
    *("tool_call_id", "name", "metadata"),
)
_TIMES = ("created_at", "timestamp")
_REF_LIMIT = 100
_MISSHAPEN = "is not shaped like a chat message; mend it"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message stands in its source.

    Attributes:
        thread: The thread it goes to.
        number: Stands for its id where it has none: its line, or its index in a list.
        position: The same for people: `line 7`, `[3]`.
    """

    format: str
    thread: str
    number: int
    position: str


def read_message(
    value: Any, place: Place, *, origin: Origin | None = None, is_archived: bool = False
) -> Record:
    """Return the record of a message; never raises for what the message holds.

    Args:
        origin: The message as its own framework has it, if it is not from this dialect.
        is_archived: The source keeps it beside the thread.
    """
    ref = _ref(value) or place.position
    try:
        turn = _draft(_checked(value), place, origin)
    except RecordError as error:
        return failed(error, ref=ref, position=place.position)
    has_id = id_text(value.get("id")) is not None
    return Message(ref, place.position, place.thread, turn, has_id, is_archived)


def turn_id(place: Place, message_id: str | None) -> str:
    """Return the id of an imported turn: the same for the same record, in every run."""
    key = place.number if message_id is None else message_id
    return derived_id(place.format, "", "turn", place.thread, key)


def id_text(value: Any) -> str | None:
    """Return an id as text; numbers are ids too. `None` where there is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None


def _checked(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        kind = type(value).__name__
        raise RecordError("invalid_record", f"is a {kind}, not an object; give role and content")
    if value.get("role") is None:
        raise RecordError("missing_field", "has no role; add one")
    if not any(name in value for name in ("content", "tool_calls", "function_call", "refusal")):
        raise RecordError("missing_field", "has no content; add it, or null")
    if not isinstance(value["role"], str) or value["role"] not in CANONICAL_ROLES:
        known = ", ".join(sorted(CANONICAL_ROLES))
        detail = f"role {reprlib.repr(value['role'])} is unknown; use one of {known}"
        raise RecordError("unknown_role", detail)
    return value


def _ref(value: Any) -> str | None:
    text = id_text(value.get("id")) if isinstance(value, dict) else None
    return text if text and len(text) <= _REF_LIMIT and text.isprintable() else None


def _draft(message: Mapping[str, Any], place: Place, origin: Origin | None) -> TurnDraft:
    try:
        check_name("thread", place.thread)
        draft = as_draft({name: message[name] for name in _FIELDS if message.get(name) is not None})
        origin = origin or _origin(message)
    except InvalidInputError as error:
        raise record_error(error) from error
    except (TypeError, KeyError, AttributeError, ValueError, RecursionError) as error:
        raise RecordError("invalid_record", _MISSHAPEN) from error
    return replace(
        draft,
        id=turn_id(place, id_text(message.get("id"))),
        pinned=message.get("pinned") is True,
        user_id=id_text(message.get("user_id")),
        created_at=_created_at(message),
        metadata=_marked(draft.metadata, place.format),
        origin=origin,
    )


def _created_at(message: Mapping[str, Any]) -> Any:
    moments = (moment_of(message.get(name)) for name in _TIMES)
    return next((moment for moment in moments if moment is not None), None)


def _origin(message: Mapping[str, Any]) -> Origin | None:
    """Return the whole message as its dump; role and text alone need none."""
    role, content = message["role"], message.get("content")
    if set(message) <= {"role", "content"} and role in ROLES and isinstance(content, str):
        return None
    return Origin("openai", role, dump_json(message))


def _marked(metadata: Any, source_format: str) -> Any:
    if not isinstance(metadata, dict):
        return metadata
    kept = {f"{MARK}_" if name == MARK else name: fact for name, fact in metadata.items()}
    return {**kept, MARK: {"format": source_format}}
