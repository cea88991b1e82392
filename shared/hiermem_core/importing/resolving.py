"""Which of several records of one source counts. Pure.

Of records with one id the newest version is kept. Of records with one key and different content the
newest keeps the key, and the others are stored without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hiermem_core.importing.report import Reason


class Rank(NamedTuple):
    """What decides between records.

    Attributes:
        n: Its place among all records read.
        updated: In milliseconds, and so `created`; -1 where it is not known.
        digest: Of its content.
    """

    n: int
    ref: str
    version: float
    updated: int
    created: int
    precedence: int
    digest: bytes


class Loser(NamedTuple):
    """A record that does not count, and the ref of the one that does."""

    n: int
    reason: Reason
    of: str


class Keyless(NamedTuple):
    """A record that gives its key up, and the place of the one that keeps it."""

    n: int
    successor: int


def losers_of_id(ranks: Sequence[Rank]) -> list[Loser]:
    """Return the records of one id that do not count."""
    winner = max(ranks, key=lambda one: (one.version, one.updated, one.precedence, -one.n))
    return [
        Loser(one.n, "duplicate" if one.digest == winner.digest else "superseded", winner.ref)
        for one in ranks
        if one.n != winner.n
    ]


def losers_of_key(ranks: Sequence[Rank]) -> tuple[list[Loser], list[Keyless]]:
    """Return the records of one namespace and key that repeat another, and those without the key.

    What is said several times is as new as the newest who says it.
    """
    groups: dict[bytes, list[Rank]] = {}
    for one in sorted(ranks):
        groups.setdefault(one.digest, []).append(one)
    repeated = [
        Loser(one.n, "duplicate", first.ref) for first, *others in groups.values() for one in others
    ]
    keeper = max(groups.values(), key=_newest)[0]
    others = [first for first, *_ in groups.values() if first.n != keeper.n]
    return repeated, [Keyless(one.n, keeper.n) for one in others]


def _newest(ranks: Iterable[Rank]) -> tuple[int, int, int]:
    return max((one.updated, one.created, one.n) for one in ranks)
