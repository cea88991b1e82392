"""Questions: whom one names, and what of it is worth looking up. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import regex

from hiermem_core.ranking.words import STOP_WORDS, is_unspaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_ENDING = r"(?:['\u2019]s)?"
_CAPITALISED = regex.compile(rf"(?<!\w)(\p{{Lu}}[\p{{L}}\p{{M}}\p{{N}}]*){_ENDING}(?!\w)")
_SPACES = regex.compile(r"\s+")
_LETTER = regex.compile(r"\p{L}")
_LONGEST_TITLE = 2


def named_participant(question: str, participants: Iterable[str]) -> str | None:
    """Return the participant that `question` names, or None unless it is exactly one.

    A participant is named by the whole name or its first word, in any case; a name that is a
    common English word, such as Will, only as it is written.
    """
    named = _named(question, participants)
    return named[0] if len(named) == 1 else None


def without_names(
    question: str,
    *,
    participants: Iterable[str] = (),
    is_common: Callable[[str], bool] | None = None,
) -> str:
    """Return what of `question` to look up and to embed, as names say who and not what.

    Leaves out the participants it names; where it names none, the capitalised words that stand
    in many rows. Returns `question` where nothing else would be left.

    Args:
        participants: The authors of the turns searched.
        is_common: Whether a word stands in more than about 3 % of the rows searched.
    """
    kept = question
    named = _named(question, participants)
    for name in sorted(named, key=len, reverse=True):
        kept = _calls(name).sub(" ", kept)
    if is_common is not None and not named:
        kept = _CAPITALISED.sub(lambda word: _unless_common(word, is_common), kept)
    kept = _SPACES.sub(" ", kept).strip()
    return kept if _LETTER.search(kept) else question


def _named(question: str, participants: Iterable[str]) -> list[str]:
    """Return the participants that `question` names."""
    folded = question.casefold()
    near = [
        name
        for name in dict.fromkeys(participants)
        if any(first.casefold() in folded for first in name.split()[:1])
    ]
    return [name for name in near if _calls(name).search(question)]


def _unless_common(word: regex.Match[str], is_common: Callable[[str], bool]) -> str:
    """Return a matched word, or a space in its place where it is common in the rows."""
    return " " if word[1].lower() not in STOP_WORDS and is_common(word[1]) else word[0]


@lru_cache(maxsize=1024)
def _calls(name: str) -> regex.Pattern[str]:
    """Return the pattern of what calls `name` in a question."""
    if is_unspaced(name):
        return regex.compile(regex.escape(name))
    first = name.split()[:1]
    called = {name, *(word for word in first if len(word) > _LONGEST_TITLE)}
    words = "|".join(map(_as_called, sorted(called, key=len, reverse=True)))
    return regex.compile(rf"(?<!\w)(?:{words}){_ENDING}(?!\w)")


def _as_called(name: str) -> str:
    """Return the pattern of `name` in any case, or as written where it is a common word."""
    return regex.escape(name) if name.lower() in STOP_WORDS else f"(?i:{regex.escape(name)})"
