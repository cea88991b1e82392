"""Pruning: the oldest whole exchanges go until a thread is within its limits."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from hiermem_core.errors import InvalidInputError
from hiermem_core.models.threads import PruneReport
from hiermem_core.models.turns import Turn, is_standing
from hiermem_core.threads.exchanges import Unit, units_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from hiermem_core.threads.store import ThreadStore


def prune(
    store: ThreadStore,
    key: tuple[str, str],
    turns: Sequence[Turn],
    *,
    max_turns: int | None,
    oldest: datetime | None,
    max_bytes: int | None,
    covered_seq: int | None,
    dry_run: bool,
) -> PruneReport:
    """Delete what `surplus_units` chooses, and report it; `dry_run` deletes nothing.

    Args:
        covered_seq: No turn goes that is newer, since the notes do not cover it; `None`: no
            notes are kept.
    """
    for name, limit in (("max_turns", max_turns), ("max_bytes", max_bytes)):
        if limit is not None and limit < 0:
            raise InvalidInputError(name, "must be at least 0")
    body = [turn for turn in turns if not is_standing(turn)]
    units = surplus_units(units_of(body), max_turns=max_turns, oldest=oldest, max_bytes=max_bytes)
    if covered_seq is not None:
        units = list(takewhile(lambda unit: unit.stored[-1].seq <= covered_seq, units))
    ids = tuple(str(turn.id) for unit in units for turn in unit.stored)
    if ids and not dry_run:
        store.prune(*key, ids)
    return PruneReport(len(ids), sum(unit.exchanges for unit in units), ids, dry_run)


def surplus_units(
    units: Sequence[Unit],
    *,
    max_turns: int | None,
    oldest: datetime | None,
    max_bytes: int | None,
) -> list[Unit]:
    """Return the oldest units that must go so that the rest is within every limit. Pure.

    Args:
        oldest: A unit whose newest turn is older than this must go.
        max_bytes: UTF-8 bytes of content of the turns that stay.
    """
    turns = sum(len(unit.stored) for unit in units)
    size = sum(_bytes(unit) for unit in units)
    surplus: list[Unit] = []
    for unit in units[:-1]:
        too_many = max_turns is not None and turns > max_turns
        too_large = max_bytes is not None and size > max_bytes
        if not (too_many or too_large or _is_older(unit, oldest)):
            break
        surplus.append(unit)
        turns -= len(unit.stored)
        size -= _bytes(unit)
    return surplus


def _is_older(unit: Unit, oldest: datetime | None) -> bool:
    newest = unit.stored[-1].created_at
    return oldest is not None and newest is not None and newest < oldest


def _bytes(unit: Unit) -> int:
    return sum(len((turn.content or "").encode()) for turn in unit.stored)
