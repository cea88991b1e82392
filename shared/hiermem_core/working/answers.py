"""The answers that are kept: least recently used and too old ones leave, pinned ones stay."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from cachetools import TLRUCache

from hiermem_core.models.queries import ResultList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hiermem_core.working.copying import Maker
    from hiermem_core.working.keys import Frozen, Key
    from hiermem_core.working.values import Counters


EXPIRES_AT = "hiermem_expires_at"
_MOST_JSON = 10_000


@dataclass(frozen=True, slots=True)
class Answer:
    """A loaded answer.

    Attributes:
        make: Makes a fresh copy of it.
        generation: Of the searcher, read before the load.
        started: When its load began.
        stale_at: When it is too old; a pin looks past that.
        ends_at: When an entry in it expires; nothing looks past that.
    """

    make: Maker
    generation: Frozen
    started: float
    stale_at: float
    ends_at: float


def is_current(kept: Frozen, now: Frozen) -> bool:
    """Tell whether an answer of one generation may be given where another one is known.

    Generations that are numbers grow, so that a later one is as good.
    """
    return kept == now or (type(kept) is int and type(now) is int and kept > now)


def first_expiry(result: Any) -> datetime | None:
    """Return when the first of the entries in a result expires; `None`: no entry ever does.

    A document or node tells it in its metadata, as a moment or in ISO form, by `EXPIRES_AT`.
    """
    if isinstance(result, ResultList):
        moments = [getattr(hit, "expires_at", None) for hit in result]
    elif isinstance(result, list):
        moments = [_expiry_told(getattr(document, "metadata", None)) for document in result]
    else:
        return None
    return min([moment for moment in moments if moment is not None], default=None)


def _expiry_told(metadata: Any) -> datetime | None:
    """Return when the entry behind a document or node expires, as HierMem's retrievers tell it."""
    told = metadata.get(EXPIRES_AT) if isinstance(metadata, Mapping) else None
    if isinstance(told, str):
        with suppress(ValueError):
            told = datetime.fromisoformat(told)
    return told if isinstance(told, datetime) and told.tzinfo is not None else None


def tells_of_failure(result: Any) -> bool:
    """Tell whether a result says that it failed: `success` is false, or there is an `error`.

    Looks at mappings, at JSON objects written as text, and at results with a flag `is_error`.
    """
    if isinstance(result, str) and result.lstrip()[:1] == "{" and len(result) <= _MOST_JSON:
        try:
            result = json.loads(result)
        except (ValueError, RecursionError):
            return False
    if isinstance(result, Mapping):
        return result.get("success") is False or result.get("error") is not None
    return getattr(result, "is_error", None) is True


def hits_in(result: Any) -> int | None:
    """Return how many hits a result holds; `None` where it does not say."""
    if isinstance(result, Mapping):
        result = result.get("results")
    is_list = isinstance(result, Sequence) and not isinstance(result, str | bytes)
    return len(result) if is_list else None


def is_weak(result: Any) -> bool:
    """Tell whether an answer says that it is weaker than asked for, and may soon be better."""
    return isinstance(result, ResultList) and bool(result.warnings)


class _Loose(TLRUCache):  # type: ignore[type-arg]  # it takes types in its stubs only
    """What is kept without a pin; counts what got too old, whoever noticed it."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        super().__init__(most, ttu=_end_of, timer=clock)
        self.expired = 0

    def expire(self, time: Any = None) -> Any:
        gone = super().expire(time)
        self.expired += len(gone)
        return gone


def _end_of(key: Key, answer: Answer, now: float) -> float:
    del key, now
    return min(answer.stale_at, answer.ends_at)


class Answers:
    """At most `most` answers by key. Not locked: its owner locks.

    The algorithm is `cachetools.TLRUCache`'s; pins stand beside it and take of its room.
    """

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._clock = clock
        self._loose = _Loose(most, clock)
        self._fixed: dict[Key, Answer] = {}
        self._pins: dict[Key, Any] = {}

    def __len__(self) -> int:
        """Return how many are kept, and of those too old the ones not swept yet."""
        return int(self._loose.currsize) + len(self._fixed)

    @property
    def pins(self) -> dict[Key, Any]:
        """What was said of each pin, in the order they were set."""
        return dict(self._pins)

    def find(self, key: Key) -> Answer | None:
        """Return the living answer of a key, which is then the most recently used one."""
        pinned = self._fixed.get(key)
        if pinned is not None:
            return pinned if self._clock() < pinned.ends_at else None
        try:
            found: Answer = self._loose[key]
        except KeyError:
            return None
        return found

    def keep(self, key: Key, answer: Answer, counters: Counters) -> None:
        """Keep an answer, in the place of the one that was there; unless it is too old by now."""
        self.sweep(counters)
        if key in self._pins:
            self._make_room(counters, key not in self._fixed)
            self._fixed[key] = answer
            return
        if self._clock() < _end_of(key, answer, 0.0):
            self._make_room(counters, key not in self._loose)
        self._loose[key] = answer

    def drop(self, keys: Iterator[Key] | list[Key], counters: Counters) -> int:
        """Drop the answers of keys, because they hold no more; return how many there were."""
        dropped = 0
        for key in keys:
            found = self._fixed.pop(key, None) or self._loose.pop(key, None)
            dropped += found is not None
        counters.invalidated += dropped
        return dropped

    def keys(self) -> list[Key]:
        """Return the keys of all answers."""
        return [*self._fixed, *self._loose]

    def pin(self, key: Key, what: Any) -> None:
        """Have the answer of a key stay; the present one, and those that come in its place."""
        self._pins[key] = what
        kept = self._loose.pop(key, None)
        if kept is not None:
            self._fixed[key] = kept

    def unpin(self, key: Key, counters: Counters) -> bool:
        """Have the answer of a key age like others; say whether it was pinned."""
        if self._pins.pop(key, None) is None:
            return False
        kept = self._fixed.pop(key, None)
        if kept is not None:
            self._loose[key] = kept
            counters.expired += key not in self._loose
        return True

    def clear(self) -> None:
        """Drop answers and pins."""
        self._loose.clear()
        self._fixed.clear()
        self._pins.clear()

    def sweep(self, counters: Counters) -> None:
        """Drop what is too old."""
        loose = self._loose
        loose.expire()
        counters.expired += loose.expired
        loose.expired = 0

    def _make_room(self, counters: Counters, wanted: int) -> None:
        while self._loose.currsize and len(self) + wanted > self._most:
            try:
                self._loose.popitem()
            except KeyError:  # the last of them grew too old since they were counted
                return
            counters.evicted += 1
