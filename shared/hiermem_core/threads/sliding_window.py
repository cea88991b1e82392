"""The sliding window: the newest exchanges that fit, read newest first, and no more."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal

from hiermem_core.errors import InvalidInputError
from hiermem_core.models.threads import ThreadLoad
from hiermem_core.models.turns import is_standing
from hiermem_core.models.warnings import ContextWarning
from hiermem_core.threads import reading
from hiermem_core.threads.counting import (
    count_warning,
    tokens_of,
    unreadable_warnings,
)
from hiermem_core.threads.exchanges import Unit, units_newest_first
from hiermem_core.threads.newest import MOST
from hiermem_core.threads.rows import turn_of
from hiermem_core.threads.tally import Count, Tally
from hiermem_core.tokens.counters import GuardedCounter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import Connection

    from hiermem_core.models.threads import ModelInfo, Profile
    from hiermem_core.models.turns import Turn, TurnDraft
    from hiermem_core.protocols import TokenCounter
    from hiermem_core.storage.database import Database
    from hiermem_core.threads.newest import NewestTurns
    from hiermem_core.threads.reading import Head

PAGE = 64
"""Rows of one read at least; the first has some more, so that one is enough for most windows."""

_LEAST_TOKENS = 64
_MOST_ROWS = 4096


@dataclass(frozen=True, slots=True)
class Window:
    """The units taken, in order, and why the next older one was not.

    Attributes:
        ended_by: `"budget"`, `"cap"`, or `"start"` when the thread has no older unit.
        older: The newest unit that was left out, if one was.
    """

    units: tuple[Unit, ...]
    ended_by: Literal["budget", "cap", "start"]
    older: Unit | None = None

    @property
    def newest_first(self) -> list[Unit]:
        """Every unit that was read."""
        return [*self.units[::-1], *([self.older] if self.older else [])]


class SlidingWindow:
    """Give the newest exchanges that fit the budget, without notes.

    Never calls a model. Never writes. Reads the rows of the window that are new and no others,
    whatever the length of the thread.

    Args:
        newest: Remembers what was read.
        window_exchanges: Exchanges beside the current one at most; `None`: the budget decides.
    """

    def __init__(
        self,
        database: Database,
        newest: NewestTurns,
        *,
        counter: TokenCounter,
        window_exchanges: int | None = None,
    ) -> None:
        self._database = database
        self._newest = newest
        self._counter = counter
        self._window_exchanges = checked_cap(window_exchanges)

    def load(
        self,
        *,
        tenant_id: str,
        thread_id: str,
        budget_tokens: int,
        model: ModelInfo,
        profile: Profile,
    ) -> ThreadLoad:
        """Return the window within `budget_tokens`; the current exchange always, whole.

        The turns are as stored: the assembler leaves out what providers refuse.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        del model
        return self.newest(tenant_id, thread_id, budget_tokens=budget_tokens, profile=profile)

    def newest(
        self,
        tenant_id: str,
        thread_id: str,
        *,
        budget_tokens: int,
        profile: Profile,
        covered_seq: int | None = None,
    ) -> ThreadLoad:
        """Return the window within `budget_tokens`, as `load` does.

        Args:
            covered_seq: The newest turn that notes cover; `None`: there are no notes.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        cap = checked_cap(profile.working_memory.window_exchanges)
        cap = self._window_exchanges if cap is None else cap
        with self._database.read() as connection:
            size = min(MOST, PAGE + budget_tokens // _LEAST_TOKENS)
            head, page = self._newest.read(connection, tenant_id, thread_id, size)
            first = (turn for turn in page if not is_standing(turn))
            older: Iterable[Turn] = ()
            if len(page) == size:
                more = _turns_within(budget_tokens, head.tally, self._counter.id) - size
                older = backwards(connection, head, before=page[-1].seq, page=more + PAGE // 2)
            units = units_newest_first(chain(first, older))
            stored = StoredCounts(self._counter.id)
            read = take_window(units, budget=budget_tokens, cap=cap, counter=stored)
            unread = Count()
            if covered_seq is not None and read.older is not None:
                unread = _unread(connection, head, read, covered_seq)
        guard = GuardedCounter(self._counter)
        window = read
        if not stored.is_exact:
            window = take_window(read.newest_first, budget=budget_tokens, cap=cap, counter=guard)
        turns = tuple(turn for unit in window.units for turn in unit.stored)
        uncovered = None
        if covered_seq is not None:
            uncovered = unread.plus(_left_by(window, read, covered_seq))
        told = warnings_of(window, head.tally, guard, uncovered)
        return ThreadLoad(turns, warnings=tuple(told), covered_seq=covered_seq)


class StoredCounts:
    """Count by what is stored and nothing else, so that nobody's code runs in a transaction.

    What is stored under another counter counts an eighth of it, more than counters differ by, so
    that a window taken with it is not too short, and its reading is bounded all the same.

    Attributes:
        is_exact: Everything so far was stored under this counter.
    """

    def __init__(self, counter_id: str) -> None:
        self.id = counter_id
        self.is_exact = True

    def count(self, text: str) -> int:
        """Return 0."""
        del text
        return 0

    def count_turn(self, turn: TurnDraft) -> int:
        """Return an eighth of what another counter stored, else 0."""
        self.is_exact = False
        counts = getattr(turn, "token_counts", {})
        return min(counts.values(), default=0) // 8


def _turns_within(budget: int, tally: Tally, counter_id: str) -> int:
    """Return how many turns of the thread's usual length a budget takes. Pure."""
    tokens, counted = tally.body.tokens[counter_id], tally.body.counted[counter_id]
    return budget * counted // tokens if tokens else 0


def backwards(
    connection: Connection, head: Head, *, before: int | None = None, page: int = PAGE
) -> Iterator[Turn]:
    """Yield the turns inside the exchanges, newest first, read page by page when asked for.

    Args:
        before: Only those with a smaller seq.
        page: How many will be asked for, probably: rows of one read, within bounds.
    """
    size = min(max(page, PAGE), _MOST_ROWS)
    before = head.last_seq + 1 if before is None else before
    while before > 1:
        rows = reading.page_before(connection, head.number, before, size)
        yield from map(turn_of, rows)
        if len(rows) < size:
            return
        before = int(rows[-1][1])


def turns_back_to(connection: Connection, head: Head, seq: int) -> list[Turn]:
    """Return the turns of the newest units, in order, back to the one that holds `seq`."""
    turns: list[Turn] = []
    for unit in units_newest_first(backwards(connection, head)):
        turns[:0] = unit.stored
        if unit.stored[0].seq <= seq:
            break
    return turns


def checked_cap(window_exchanges: int | None) -> int | None:
    """Return the cap of a window.

    Raises:
        InvalidInputError: It is negative.
    """
    if window_exchanges is not None and window_exchanges < 0:
        raise InvalidInputError("window_exchanges", "must be at least 0, or None for no cap")
    return window_exchanges


def take_window(
    units: Iterable[Unit], *, budget: int, cap: int | None, counter: TokenCounter
) -> Window:
    """Take units newest first: the current one always, then each while it fits. Pure.

    Nothing older than the first unit that does not fit is taken, so the window has no hole. No
    more units are asked for than are needed to decide.
    """
    taken: list[Unit] = []
    earlier = 0
    for unit in units:
        if not unit.complete:
            break
        budget -= tokens_of(unit.turns, counter)
        if taken and cap is not None:
            earlier += unit.exchanges
            if earlier > cap:
                return Window(tuple(taken[::-1]), "cap", unit)
        if taken and budget < 0:
            return Window(tuple(taken[::-1]), "budget", unit)
        taken.append(unit)
    return Window(tuple(taken[::-1]), "start")


def warnings_of(
    window: Window, tally: Tally, counter: GuardedCounter, uncovered: Count | None
) -> list[ContextWarning]:
    """Say what of a thread is not in its window, and what cannot be read in it.

    Args:
        uncovered: The turns older than the window that no notes cover; `None`: there are no notes.
    """
    shown = [turn for unit in window.units for turn in unit.stored]
    warnings = [*_left_out(window, tally, counter, uncovered), *unreadable_warnings(shown, counter)]
    if counter.failures:
        warnings.append(ContextWarning("counter_failed", detail={"counter": counter.id}))
    if tally.leading.turns:
        warnings.append(count_warning("leading_turns_dropped", tally.leading, counter, {}))
    return warnings


def _left_out(
    window: Window, tally: Tally, counter: TokenCounter, uncovered: Count | None
) -> Iterator[ContextWarning]:
    """Say what the budget trimmed, and what nothing covers: without notes what the cap left out."""
    if window.older is None:
        return
    gone = tally.body.minus(tally.leading).minus(_count_of(window.units))
    exchanges = tally.exchanges - sum(unit.exchanges for unit in window.units)
    last_seq = window.older.stored[-1].seq
    facts = {"exchanges": exchanges, "roles": dict(gone.roles)}
    facts |= {"first_seq": tally.first_seq, "last_seq": last_seq}
    if window.ended_by == "budget":
        yield count_warning("turns_trimmed", gone, counter, facts)
    elif uncovered is None:
        yield count_warning("turns_not_covered", gone, counter, facts)
    if uncovered is not None and uncovered.turns:
        roles = uncovered.roles
        facts = {"exchanges": roles["user"], "roles": dict(roles), "last_seq": last_seq}
        yield count_warning("turns_not_covered", uncovered, counter, facts)


def _count_of(units: Iterable[Unit]) -> Count:
    return Count.of(turn for unit in units for turn in unit.stored)


def _unread(connection: Connection, head: Head, read: Window, covered_seq: int) -> Count:
    """Return the count of the turns that no notes cover and that were not read."""
    oldest = read.newest_first[-1].stored[0].seq if read.newest_first else head.last_seq + 1
    after = max(covered_seq, (head.tally.first_seq or 1) - 1)
    return reading.counted_between(connection, head.number, after, oldest)


def _left_by(window: Window, read: Window, covered_seq: int) -> Count:
    """Return the count of the turns that no notes cover, and that were read and are not shown."""
    shown = {unit.stored[0].seq for unit in window.units}
    return Count.of(
        turn
        for unit in read.newest_first
        if unit.stored[0].seq not in shown
        for turn in unit.stored
        if turn.seq > covered_seq
    )
