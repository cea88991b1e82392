"""Where the turns of a batch go. Pure."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import TurnConflictError
from hiermem_core.models.ids import new_id
from hiermem_core.models.moments import from_milliseconds, to_milliseconds
from hiermem_core.models.turns import Turn, TurnDraft, fingerprint, source_of_role

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

_DRAFT_FIELDS = tuple(field.name for field in fields(TurnDraft))
_EDITED_FIELDS = ("content", "parts", "origin", "user_id")


def counted(draft: TurnDraft, token_counts: Mapping[str, int]) -> Turn:
    """Return a draft as a turn that has no place yet."""
    values: dict[str, Any] = {name: getattr(draft, name) for name in _DRAFT_FIELDS}
    values["source"] = draft.source or source_of_role(draft.role)
    return Turn(**values | {"replaced": ()}, token_counts=dict(token_counts))


def edited(old: Turn, draft: TurnDraft, token_counts: Mapping[str, int]) -> Turn:
    """Return a stored turn with the content of a draft, one revision on."""
    values = {name: getattr(draft, name) for name in _EDITED_FIELDS}
    return replace(old, revision=old.revision + 1, token_counts=dict(token_counts), **values)


def placed_after(
    last_seq: int, turns: Sequence[Turn], known: Mapping[str, Turn], *, now: datetime
) -> list[Turn]:
    """Return the turns with seq, id and time; a repeated one as it is stored.

    Args:
        known: Stored turns by id.

    Raises:
        TurnConflictError: An id stands for another content, stored or earlier in the batch.
    """
    known = dict(known)
    placed = []
    conflicts = []
    for place, turn in enumerate(turns):
        stored = known.get(turn.id) if turn.id is not None else None
        if stored is None:
            last_seq += 1
            stored = replace(
                turn,
                seq=last_seq,
                id=turn.id or new_id(now),
                created_at=in_milliseconds(turn.created_at or now),
                revision=1,
                status="active",
            )
            known[str(stored.id)] = stored
        elif fingerprint(stored) != fingerprint(turn):
            conflicts.append(place)
        placed.append(stored)
    if conflicts:
        raise TurnConflictError(str(turns[conflicts[0]].id), tuple(conflicts))
    return placed


def new_among(placed: Sequence[Turn], *, last_seq: int) -> list[Turn]:
    """Return the turns that are not stored yet, each once."""
    return list({turn.seq: turn for turn in placed if turn.seq > last_seq}.values())


def in_milliseconds(moment: datetime) -> datetime:
    """Return a moment as it is stored: in UTC, cut to milliseconds."""
    return from_milliseconds(to_milliseconds(moment))


def shared_prefix(stored: Sequence[Turn], turns: Sequence[Turn]) -> int:
    """Return how many turns stand at the same place in both, dump and id included."""
    pairs = zip(stored, turns, strict=False)
    return next(
        (place for place, (old, new) in enumerate(pairs) if not _same(old, new)),
        min(len(stored), len(turns)),
    )


def _same(stored: Turn, turn: Turn) -> bool:
    return (
        fingerprint(stored) == fingerprint(turn)
        and dict(stored.metadata) == dict(turn.metadata)
        and stored.user_id == turn.user_id
        and stored.origin == turn.origin
        and stored.pinned == turn.pinned
        and turn.id in (None, stored.id)
    )
