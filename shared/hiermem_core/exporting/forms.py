"""Entries, threads and turns as the JSON objects of an export, and back. Pure.

What is absent, empty or false is left out. Times are ISO text in UTC, to the millisecond.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hiermem_core.errors import InvalidInputError
from hiermem_core.exporting.fields import (
    checked_size,
    count_of,
    field_of,
    moment_of,
    moment_text,
    present,
)
from hiermem_core.exporting.run_forms import pattern_form, read_pattern
from hiermem_core.models.entries import DEFAULT_TRUST, EntryDraft, MemoryEntry
from hiermem_core.models.notes import Fact, ThreadState
from hiermem_core.models.turns import Origin, ToolCall, Turn, TurnDraft, source_of_role
from hiermem_core.service.checking import checked_draft
from hiermem_core.service.checking_vectors import check_embedding, checked_vector
from hiermem_core.threads.drafts import cleaned
from hiermem_core.threads.placing import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from hiermem_core.backends.records import Vector
    from hiermem_core.models.patterns import Pattern
    from hiermem_core.models.text import TextCleaner
    from hiermem_core.threads.notes import Notes
    from hiermem_core.threads.reading import Head


@dataclass(frozen=True, slots=True)
class Vectors:
    """The vectors of a row as stored: one, or one a passage.

    Attributes:
        blobs: float32, little endian.
        is_whole: False where only a prefix of the text was embedded.
    """

    blobs: tuple[bytes, ...]
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class ReadEntry:
    """An entry of an export.

    Attributes:
        merges: The same said again is counted there.
        pattern: What it is the text of.
    """

    entry: MemoryEntry
    merges: bool
    vectors: Vectors | None
    pattern: Pattern | None = None


@dataclass(frozen=True, slots=True)
class ReadThread:
    """A thread of an export, without its turns.

    Attributes:
        notes: `None`: none were made.
        reset_seq: The newest seq at the last reset of the notes.
    """

    thread_id: str
    last_seq: int
    created_at: datetime
    updated_at: datetime
    notes: ThreadState | None
    reset_seq: int


def entry_form(
    entry: MemoryEntry, vectors: Vectors | None, *, merges: bool, pattern: Pattern | None = None
) -> dict[str, Any]:
    """Return the form of an entry, and of the pattern that it is the text of."""
    given = {
        "key": entry.key,
        "tags": list(entry.tags),
        "metadata": entry.metadata,
        "ttl": entry.ttl,
        "expires_at": None if entry.expires_at is None else moment_text(entry.expires_at),
        "derived_from": list(entry.derived_from),
        "user_id": entry.user_id,
        "merges": merges,
    }
    form = {
        "kind": "entry",
        "id": entry.id,
        "namespace": entry.namespace,
        "type": entry.type,
        "content": entry.content,
        "created_at": moment_text(entry.created_at),
        "updated_at": moment_text(entry.updated_at),
        "version": entry.version,
        "times_stored": entry.times_stored,
        "source": entry.source,
        "trust": entry.trust,
        **present(given),
    }
    if entry.passages is not None:
        form["passages"] = list(entry.passages)
    if pattern is not None:
        form["pattern"] = pattern_form(pattern)
    return form | _vectors_form(vectors)


def read_entry(form: Mapping[str, Any], cleaner: TextCleaner, *, metadata_limit: int) -> ReadEntry:
    """Return the entry of a form.

    Raises:
        InvalidInputError: A field is missing, or cannot be stored.
    """
    draft = checked_draft(
        EntryDraft(
            content=field_of(form, "content", str),
            id=field_of(form, "id", str),
            namespace=field_of(form, "namespace", str),
            type=form.get("type", "semantic"),
            key=form.get("key"),
            tags=form.get("tags", ()),
            metadata=form.get("metadata", {}),
            passages=form.get("passages"),
            created_at=moment_of(form, "created_at"),
            ttl=form.get("ttl"),
            source=form.get("source", "user"),
            trust=form.get("trust"),
            derived_from=form.get("derived_from", ()),
            user_id=form.get("user_id"),
        ),
        cleaner,
        metadata_limit=metadata_limit,
    )
    created_at = moment_of(form, "created_at")
    entry = MemoryEntry(
        id=str(draft.id),
        content=draft.content,
        namespace=str(draft.namespace),
        type=draft.type,
        key=draft.key,
        tags=tuple(draft.tags),
        metadata=draft.metadata,
        passages=None if draft.passages is None else tuple(draft.passages),
        created_at=created_at,
        updated_at=moment_of(form, "updated_at"),
        ttl=draft.ttl,
        expires_at=moment_of(form, "expires_at") if "expires_at" in form else None,
        version=count_of(form, "version", least=1),
        times_stored=count_of(form, "times_stored", least=1),
        source=draft.source,
        trust=DEFAULT_TRUST[draft.source] if draft.trust is None else draft.trust,
        derived_from=tuple(draft.derived_from),
        user_id=draft.user_id,
    )
    vectors = None if cleaner.redacted else _read_vectors(form)
    if vectors is not None:
        check_embedding(
            entry.content if entry.passages is None else entry.passages,
            array_of(vectors, is_one=entry.passages is None),
        )
    pattern = read_pattern(form["pattern"], entry, cleaner) if "pattern" in form else None
    return ReadEntry(entry, form.get("merges") is True, vectors, pattern)


def thread_form(head: Head, notes: Notes) -> dict[str, Any]:
    """Return the form of a thread, its notes included."""
    state = notes.state
    form = {
        "kind": "thread",
        "id": head.thread_id,
        "last_seq": head.last_seq,
        "created_at": moment_text(head.info().created_at),
        "updated_at": moment_text(head.info().updated_at),
    }
    if state == ThreadState() and not notes.reset_seq:
        return form
    facts: list[dict[str, Any]] = [
        {"text": fact.text, "confirmed_seq": fact.confirmed_seq, "sources": fact.sources}
        for fact in state.facts
    ]
    given = {"summary": state.summary, "facts": facts, "reset_seq": notes.reset_seq or None}
    return form | {"notes": {"turn_count": state.turn_count} | present(given)}


def read_thread(form: Mapping[str, Any], cleaner: TextCleaner) -> ReadThread:
    """Return the thread of a form.

    Raises:
        InvalidInputError: A field is missing, or of a wrong type.
    """
    notes = form.get("notes")
    try:
        state = None if notes is None else _state(notes, cleaner)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise InvalidInputError("notes", "are not shaped like notes; mend them") from error
    return ReadThread(
        thread_id=field_of(form, "id", str),
        last_seq=count_of(form, "last_seq"),
        created_at=moment_of(form, "created_at"),
        updated_at=moment_of(form, "updated_at"),
        notes=state,
        reset_seq=0 if notes is None else count_of(notes, "reset_seq", default=0),
    )


def turn_form(turn: Turn, vectors: Vectors | None) -> dict[str, Any]:
    """Return the form of a turn, the framework's dump included."""
    given = {
        "status": "archived" if turn.status == "archived" else None,
        "parts": [dict(part) for part in turn.parts],
        "tool_calls": [
            present({"id": call.id, "name": call.name, "error": call.error}) | {"args": call.args}
            for call in turn.tool_calls
        ],
        "tool_call_id": turn.tool_call_id,
        "call_seq": turn.call_seq,
        "name": turn.name,
        "source": turn.source if turn.source != source_of_role(turn.role) else None,
        "pinned": turn.pinned,
        "user_id": turn.user_id,
        "metadata": turn.metadata,
        "dump": _dump(turn.origin),
        "tokens": dict(turn.token_counts),
    }
    form = {
        "kind": "turn",
        "seq": turn.seq,
        "id": turn.id,
        "role": turn.role,
        "content": turn.content,
        "created_at": moment_text(turn.created_at),
        "revision": turn.revision,
    }
    return form | present(given) | _vectors_form(vectors)


def read_turn(form: Mapping[str, Any], cleaner: TextCleaner) -> tuple[Turn, Vectors | None]:
    """Return the turn of a form, and its vector.

    Raises:
        InvalidInputError: A field is missing, or cannot be stored.
    """
    try:
        draft = cleaned(_turn_draft(form), cleaner)
        given = {} if cleaner.redacted else _tokens(form)
        tokens = {str(name): checked_size("tokens", n) for name, n in given.items()}
        turn = counted(draft, tokens)
    except (TypeError, KeyError, AttributeError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError("turn", "is not shaped like a turn; mend it") from error
    values: dict[str, Any] = {name: getattr(turn, name) for name in Turn.__dataclass_fields__}
    call_seq = form.get("call_seq")
    values |= {
        "seq": count_of(form, "seq", least=1),
        "revision": count_of(form, "revision", least=1),
        "status": "archived" if form.get("status") == "archived" else "active",
        "call_seq": None if call_seq is None else checked_size("call_seq", call_seq, least=1),
    }
    return Turn(**values), None if cleaner.redacted else _read_vectors(form)


def array_of(vectors: Vectors, *, is_one: bool) -> Vector:
    """Return vectors as numbers: one, or a row each.

    Raises:
        InvalidInputError: They are no vectors, or not of one length.
    """
    first = checked_vector(_numbers(vectors.blobs[0]))
    if is_one and len(vectors.blobs) == 1:
        return first
    return np.stack([checked_vector(_numbers(blob), len(first)) for blob in vectors.blobs])


def _turn_draft(form: Mapping[str, Any]) -> TurnDraft:
    dump = form.get("dump")
    return TurnDraft(
        role=form["role"],
        content=form.get("content"),
        parts=form.get("parts", ()),
        tool_calls=tuple(_calls(form.get("tool_calls", ()))),
        tool_call_id=form.get("tool_call_id"),
        name=form.get("name"),
        id=field_of(form, "id", str),
        source=form.get("source"),
        pinned=form.get("pinned") is True,
        user_id=form.get("user_id"),
        created_at=moment_of(form, "created_at"),
        metadata=form.get("metadata", {}),
        origin=None
        if dump is None
        else Origin(*(field_of(dump, name, str) for name in ("framework", "role", "text"))),
    )


def _calls(forms: Sequence[Mapping[str, Any]]) -> Iterator[ToolCall]:
    for form in forms:
        name = form.get("name", "")
        yield ToolCall(form.get("id"), name, form["args"], form.get("error"))


def _dump(origin: Origin | None) -> dict[str, str] | None:
    if origin is None:
        return None
    return {"framework": origin.framework, "role": origin.role, "text": origin.dump}


def _state(notes: Mapping[str, Any], cleaner: TextCleaner) -> ThreadState:
    facts = tuple(
        Fact(
            cleaner.text(fact["text"]),
            checked_size("confirmed_seq", fact["confirmed_seq"]),
            tuple(
                tuple(checked_size("sources", seq) for seq in source) for source in fact["sources"]
            ),
        )
        for fact in notes.get("facts", ())
    )
    return ThreadState(
        cleaner.text(notes.get("summary", "")), facts, count_of(notes, "turn_count", default=0)
    )


def _tokens(form: Mapping[str, Any]) -> Mapping[str, Any]:
    tokens: Mapping[str, Any] = field_of({"tokens": {}, **form}, "tokens", dict)
    return tokens


def _vectors_form(vectors: Vectors | None) -> dict[str, Any]:
    if vectors is None:
        return {}
    blobs = [base64.b64encode(blob).decode("ascii") for blob in vectors.blobs]
    return {"vectors": blobs} if vectors.is_whole else {"vectors": blobs, "shortened": True}


def _read_vectors(form: Mapping[str, Any]) -> Vectors | None:
    texts = form.get("vectors")
    if not texts:
        return None
    try:
        blobs = tuple(base64.b64decode(text, validate=True) for text in texts)
        return Vectors(blobs, is_whole=form.get("shortened") is not True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise InvalidInputError("vectors", "must be base64 of float32; leave them out") from error


def _numbers(blob: bytes) -> Vector:
    if len(blob) % 4:
        raise InvalidInputError("vectors", "must be base64 of float32; leave them out")
    return np.frombuffer(blob, "<f4")
