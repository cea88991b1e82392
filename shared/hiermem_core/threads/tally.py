"""The tally: what is counted of a thread's active turns, so that no reader has to.

Only turns inside the exchanges are counted; standing turns are read with every context anyway.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from hiermem_core.models.turns import Turn, is_blank, is_standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(slots=True)
class Count:
    """Some turns: by role, and by counter id how many are counted and their tokens."""

    roles: Counter[str] = field(default_factory=Counter)
    counted: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)

    @property
    def turns(self) -> int:
        """All of them."""
        return self.roles.total()

    @classmethod
    def of(cls, turns: Iterable[Turn]) -> Self:
        """Return the count of these turns."""
        count = cls()
        for turn in turns:
            count.add(turn)
        return count

    def add(self, turn: Turn) -> None:
        """Count one turn more."""
        self.add_counted(turn.role, turn.token_counts)

    def add_counted(self, role: str, token_counts: Mapping[str, int]) -> None:
        """Count one turn more, of which these facts are known."""
        self.roles[role] += 1
        for counter_id, tokens in token_counts.items():
            self.counted[counter_id] += 1
            self.tokens[counter_id] += tokens

    def plus(self, other: Count) -> Count:
        """Return the sum."""
        return Count(
            self.roles + other.roles, self.counted + other.counted, self.tokens + other.tokens
        )

    def minus(self, other: Count) -> Count:
        """Return the difference."""
        return Count(
            self.roles - other.roles, self.counted - other.counted, self.tokens - other.tokens
        )

    def to_json(self) -> list[dict[str, int]]:
        """Return the stored form."""
        return [dict(self.roles), dict(self.counted), dict(self.tokens)]

    @classmethod
    def from_json(cls, value: Iterable[Mapping[str, int]]) -> Self:
        """Return the count of a stored form."""
        return cls(*(Counter(facts) for facts in value))


@dataclass(slots=True)
class Tally:
    """Counts of a thread.

    Attributes:
        body: Every active turn outside the standing ones.
        standing: System and pinned turns; `standing_seqs` says where they are.
        leading: Those of the body before the first user turn.
        exchanges: User turns that open an exchange.
        first_seq: Of the first such user turn; `None` while there is none.
        answered_seq: Of the newest answer; what comes after it is not complete yet. 0: of none.
    """

    body: Count = field(default_factory=Count)
    leading: Count = field(default_factory=Count)
    standing: Count = field(default_factory=Count)
    standing_seqs: list[int] = field(default_factory=list)
    exchanges: int = 0
    first_seq: int | None = None
    answered_seq: int = 0

    @property
    def turns(self) -> int:
        """All active turns."""
        return self.body.turns + self.standing.turns

    @property
    def tokens(self) -> Counter[str]:
        """Stored tokens of all active turns, by counter id."""
        return self.body.tokens + self.standing.tokens

    @property
    def counted(self) -> Counter[str]:
        """How many of them have a stored count, by counter id."""
        return self.body.counted + self.standing.counted

    def add(self, turns: Iterable[Turn]) -> Self:
        """Count turns newer than all counted so far."""
        for turn in turns:
            if is_answer(turn):
                self.answered_seq = turn.seq
            if is_standing(turn):
                self.standing.add(turn)
                self.standing_seqs.append(turn.seq)
            else:
                self._add(turn)
        return self

    def _add(self, turn: Turn) -> None:
        self.body.add(turn)
        if opens_exchange(turn):
            self.exchanges += 1
            self.first_seq = turn.seq if self.first_seq is None else self.first_seq
        if self.first_seq is None:
            self.leading.add(turn)

    def to_json(self) -> dict[str, Any]:
        """Return the stored form; `answered_seq` is stored apart, to be asked for."""
        return {
            "body": self.body.to_json(),
            "leading": self.leading.to_json(),
            "standing": self.standing.to_json(),
            "standing_seqs": self.standing_seqs,
            "exchanges": self.exchanges,
            "first_seq": self.first_seq,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any], *, answered_seq: int = 0) -> Self:
        """Return the tally of a stored form."""
        return cls(
            body=Count.from_json(value["body"]),
            leading=Count.from_json(value["leading"]),
            standing=Count.from_json(value["standing"]),
            standing_seqs=list(value["standing_seqs"]),
            exchanges=value["exchanges"],
            first_seq=value["first_seq"],
            answered_seq=answered_seq,
        )


def is_answer(turn: Turn) -> bool:
    """Tell whether a turn completes its exchange: the assistant speaks, and calls nothing."""
    return turn.role == "assistant" and not turn.tool_calls


def opens_exchange(turn: Turn) -> bool:
    """Tell whether a turn begins an exchange: a user turn that says something."""
    return turn.role == "user" and not is_standing(turn) and not is_blank(turn)
