"""The table of a working memory: answers, flights and counters, and the one lock around them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from hiermem_core.errors import LimitExceededError
from hiermem_core.working.answers import Answers, is_current
from hiermem_core.working.flights import LOST, Flight, blocks_itself, loading, would_deadlock
from hiermem_core.working.values import Counters, WorkingMemoryStats

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hiermem_core.working.answers import Answer
    from hiermem_core.working.flights import Landing, Waiter
    from hiermem_core.working.keys import Frozen, Key
    from hiermem_core.working.options import Options


class Step(NamedTuple):
    """What a call does next.

    Attributes:
        answer: It takes this one.
        joined: It waits for this flight.
        leads: It leads the flight it brought. Otherwise it goes straight to the searcher.
        counters: Where it was counted.
    """

    counters: Counters
    answer: Answer | None = None
    joined: Flight | None = None
    leads: bool = False


class Table:
    """What all callers of a working memory share.

    The lock is held for microseconds: never while a searcher, an observer or a copy runs. It may
    be taken again by the thread that holds it, as a finaliser can run anywhere.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self.lock = threading.RLock()
        self._answers = Answers(options.max_entries, options.monotonic)
        self._flights: dict[Key, Flight] = {}
        self._running: set[Flight] = set()
        self._counters = Counters()

    def hit(self, key: Key, generation: Frozen) -> Answer | None:
        """Return the answer of a key and count the hit; `None`, and nothing counted, if none."""
        with self.lock:
            answer = self._living(key, generation)
            if answer is not None:
                self._counters.hits += 1
            return answer

    def find(self, key: Key, generation: Frozen) -> Answer | None:
        """Return the answer of a key; counts nothing."""
        with self.lock:
            answer = self._answers.find(key)
            is_there = answer is not None and is_current(answer.generation, generation)
            return answer if is_there else None

    def enter(self, flight: Flight, waiter: Waiter, *, blocks: bool) -> Step:
        """Say what a call does, and count it.

        Args:
            flight: The one it would lead.
            waiter: What is woken when the flight lands that it joins.
            blocks: Waiting keeps the thread, and with it the event loop that runs in it.
        """
        callers = loading.get()
        with self.lock:
            counters, key = self._counters, flight.key
            answer = self._living(key, flight.generation)
            if answer is not None:
                counters.hits += 1
                return Step(counters, answer=answer)
            ahead = self._flights.get(key)
            if ahead is None or not _is_joinable(ahead, flight.generation):
                counters.misses += 1
                self._forget_lost()
                flight.waiters = []
                self._flights[key] = flight
                self._running.add(flight)
                if callers:
                    callers[-1].waits_for.add(flight)
                return Step(counters, leads=True)
            if would_deadlock(callers, ahead) or (blocks and _must_not_block(callers, ahead)):
                counters.bypassed += 1
                return Step(counters)
            counters.joined += 1
            if ahead.waiters is not None:
                ahead.waiters.append(waiter)
            if callers:
                callers[-1].waits_for.add(ahead)
            return Step(counters, joined=ahead)

    def leave(self, flight: Flight) -> None:
        """Note that the running load waits for a flight no longer."""
        callers = loading.get()
        if callers:
            with self.lock:
                callers[-1].waits_for.discard(flight)

    def count_bypass(self) -> None:
        """Count a call that has no key."""
        with self.lock:
            self._counters.bypassed += 1

    def recount(self, step: Step, *, bypassed: bool) -> None:
        """Count a call otherwise than before: it goes straight, or starts anew."""
        with self.lock:
            counters = step.counters
            counters.misses -= step.leads
            counters.joined -= not step.leads
            counters.bypassed += bypassed

    def count_failure(self) -> None:
        """Count a call that failed before it could be answered or load."""
        with self.lock:
            self._counters.misses += 1
            self._counters.failures += 1

    def land(
        self, flight: Flight, answer: Answer | None, *, seconds: float, failed: bool
    ) -> Sequence[Waiter]:
        """End a flight, keep its answer if nothing happened to its key meanwhile.

        Returns:
            Whom to wake.
        """
        with self.lock:
            waiters, flight.waiters = flight.waiters or [], None
            self._running.discard(flight)
            self._counters.load_seconds += seconds
            self._counters.failures += failed
            if self._flights.get(flight.key) is flight:
                del self._flights[flight.key]
                if answer is not None:
                    self._answers.keep(flight.key, answer, self._counters)
            return waiters

    def give_up(self, flight: Flight) -> None:
        """End a flight that will not land, so that one of its waiters starts anew."""
        if flight.waiters is not None:
            for waiter in self.land(flight, None, seconds=0.0, failed=False):
                waiter.wake(LOST)

    def drop(self, is_meant: Callable[[Key], bool]) -> int:
        """Drop answers, and let the flights alike land uncached; return how many answers."""
        with self.lock:
            for key in [key for key in self._flights if is_meant(key)]:
                del self._flights[key]
            return self._answers.drop(
                [key for key in self._answers.keys() if is_meant(key)],  # noqa: SIM118 - no mapping
                self._counters,
            )

    def clear(self) -> None:
        """Drop everything, pins too, and count from 0."""
        with self.lock:
            self._flights.clear()
            self._answers.clear()
            self._counters = Counters()

    def pin(self, key: Key, what: Any) -> bool:
        """Have the answer of a key stay; say whether the pin is new.

        Raises:
            LimitExceededError: Half of the room is pinned. Nothing changed.
        """
        most = self._options.max_entries // 2
        with self.lock:
            pins = self._answers.pins
            if key in pins:
                return False
            if len(pins) >= most:
                raise LimitExceededError("pins", limit=most, actual=len(pins) + 1)
            self._answers.pin(key, what)
            return True

    def unpin(self, key: Key) -> bool:
        """Have the answer of a key age like others; say whether it was pinned."""
        with self.lock:
            return self._answers.unpin(key, self._counters)

    @property
    def pins(self) -> list[Any]:
        """What was said of each pin."""
        with self.lock:
            return list(self._answers.pins.values())

    def stats(self) -> WorkingMemoryStats:
        """Return all figures, of one moment."""
        with self.lock:
            counted = self._counters
            self._answers.sweep(counted)
            return WorkingMemoryStats(
                **{name: getattr(counted, name) for name in Counters.__slots__},
                entries=len(self._answers),
                pinned=len(self._answers.pins),
                in_flight=sum(not flight.is_lost for flight in self._running),
            )

    def after_fork(self) -> None:
        """Keep counters and pins; what other threads were at does not go on here."""
        pins = self._answers.pins
        self.lock = threading.RLock()
        self._answers = Answers(self._options.max_entries, self._options.monotonic)
        for key, what in pins.items():
            self._answers.pin(key, what)
        self._flights = {}
        self._running = set()

    def _living(self, key: Key, generation: Frozen) -> Answer | None:
        answer = self._answers.find(key)
        if answer is None or is_current(answer.generation, generation):
            return answer
        self._answers.drop([key], self._counters)
        return None

    def _forget_lost(self) -> None:
        """Let the flights go whose event loop was closed, so that none stays for ever."""
        for flight in [flight for flight in self._running if flight.is_lost]:
            self._running.discard(flight)
            if self._flights.get(flight.key) is flight:
                del self._flights[flight.key]


def _is_joinable(flight: Flight, generation: Frozen) -> bool:
    return not flight.is_lost and is_current(flight.generation, generation)


def _must_not_block(callers: tuple[Flight, ...], ahead: Flight) -> bool:
    """Tell whether a thread that waits for a flight may be what the flight needs to go on."""
    return blocks_itself(ahead) or (ahead.is_queued and bool(callers))


def wake_all(waiters: Sequence[Waiter], landing: Landing) -> None:
    """Let all who waited go on."""
    for waiter in waiters:
        waiter.wake(landing)
