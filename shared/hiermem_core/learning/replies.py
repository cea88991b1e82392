"""Reading what a model replied: one JSON object, or nothing. Pure.

Small models wrap it: a thinking block first, a code fence, a sentence after, single quotes, a comma
too many. That is read where it can mean one thing only: what begins like an object and cannot be
read makes the reply unreadable, since what stands inside it may be something that was quoted.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hiermem_core.threads.notes_text import says_something

if TYPE_CHECKING:
    from collections.abc import Iterator

Refusal = Literal["empty", "no_json", "ambiguous", "wrong_types"]

LONGEST_REPLY = 100_000
"""Characters that are looked at; a reply is thousands at most."""

_THINKING = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_THINKING_OPENS = re.compile(r"\A\s*<(think|thinking|reasoning)>", re.IGNORECASE)
# Of thoughts whose beginning was part of the prompt. What follows begins on a line of its own.
_THINKING_ENDS = re.compile(r"</(think|thinking|reasoning)>[ \t]*$", re.MULTILINE | re.IGNORECASE)
_REPLY_BEGINS = re.compile(r"\A\s*(?:\{|```)")

_KEYS = frozenset({"summary", "facts", "retract"})
_OBJECT_BEGINS = re.compile(
    r"\{\s*+(?:\\?[\"'`\u2018-\u201f]|(?:summary|facts|retract)\b)", re.IGNORECASE
)
_TOKEN = re.compile(
    r"""\s*+(?:(?P<quote>['"])(?P<text>(?:(?!(?P=quote))[^\\]|\\.)*+)(?P=quote)"""
    r"|(?P<sign>[{}\[\],:])|(?P<word>[-+.\w]++))",
    re.DOTALL,
)
_QUOTED = re.compile(r"\\.|\"", re.DOTALL)
_REQUOTED = {"\\'": "'", '"': '\\"'}
_WORDS = {"None": "null", "True": "true", "False": "false"}


class UnreadableReplyError(Exception):
    """The reply cannot be read as notes; `reason` says why, without its content."""

    def __init__(self, reason: Refusal) -> None:
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact as a reply states it; `seqs` is empty where the reply names no turns."""

    text: str
    seqs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model makes of some turns; `retract` numbers the listed facts from 1."""

    summary: str = ""
    facts: tuple[Statement, ...] = ()
    retract: tuple[int, ...] = ()


def parse_reply(text: str) -> Reply:
    """Return what a reply says.

    Raises:
        UnreadableReplyError: It is empty, holds no JSON object of the asked form or several, or
            its values are of other types.
    """
    if not text.strip():
        raise UnreadableReplyError("empty")
    found = list(_objects(_without_thinking(text[:LONGEST_REPLY])))
    if not any(_KEYS & value.keys() for value in found):
        raise UnreadableReplyError("no_json")
    if any(other != found[0] for other in found[1:]):
        raise UnreadableReplyError("ambiguous")
    return _reply(found[0])


def _without_thinking(text: str) -> str:
    """Return what follows the thinking blocks; nothing where one does not end."""
    while (match := _THINKING.match(text)) is not None:
        text = text[match.end() :]
    if _THINKING_OPENS.match(text):
        return ""
    ends = None if _REPLY_BEGINS.match(text) else _THINKING_ENDS.search(text)
    return text if ends is None else text[ends.end() :]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the outermost objects."""
    place = text.find("{")
    while place >= 0:
        end = place + 1
        if _OBJECT_BEGINS.match(text, place):
            value, end = _object_at(text, place)
            yield value
        place = text.find("{", end)


def _object_at(text: str, place: int) -> tuple[Any, int]:
    """Return the object that begins at a place, and its end."""
    try:
        return _DECODER.raw_decode(text, place)
    except (ValueError, RecursionError):
        pass
    try:
        written, end = _as_json(text, place)
        return _DECODER.decode(written), end
    except (ValueError, RecursionError):
        raise UnreadableReplyError("no_json") from None


def _as_json(text: str, place: int) -> tuple[str, int]:
    """Return an object written as Python does, or with commas too many, as JSON; and its end."""
    written: list[str] = []
    depth = 0
    while (match := _TOKEN.match(text, place)) is not None:
        place = match.end()
        sign = match["sign"]
        if sign and sign in "]}" and written[-1] == ",":
            written.pop()
        written.append(sign or _value(match))
        depth += (sign in {"{", "["}) - (sign in {"}", "]"})
        if depth == 0:
            return " ".join(written), place
    raise ValueError(place)


def _value(match: re.Match[str]) -> str:
    if match["quote"] is None:
        return _WORDS.get(match["word"], match["word"])
    return f'"{_QUOTED.sub(lambda found: _REQUOTED.get(found[0], found[0]), match["text"])}"'


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise UnreadableReplyError("ambiguous")
    return dict(pairs)


_DECODER = json.JSONDecoder(object_pairs_hook=_without_repeats, strict=False)


def _reply(value: dict[str, Any]) -> Reply:
    summary = value.get("summary")
    if summary is not None and not isinstance(summary, str):
        raise UnreadableReplyError("wrong_types")
    if summary and summary.strip() and not says_something(summary):
        raise UnreadableReplyError("empty")  # the dots of the form that was asked for
    facts = tuple(_statement(fact) for fact in _list(value.get("facts")))
    retract = tuple(_number(number) for number in _list(value.get("retract")))
    stated = tuple(fact for fact in facts if says_something(fact.text))
    reply = Reply((summary or "").strip(), stated, retract)
    if reply == Reply():
        raise UnreadableReplyError("empty")
    return reply


def _statement(value: Any) -> Statement:
    if isinstance(value, str):
        return Statement(value.strip())
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise UnreadableReplyError("wrong_types")
    return Statement(value["text"].strip(), tuple(map(_number, _list(value.get("seqs")))))


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise UnreadableReplyError("wrong_types")
    return value


def _number(value: Any) -> int:
    if type(value) is not int:
        raise UnreadableReplyError("wrong_types")
    return value
