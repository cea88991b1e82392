"""Turns as records of a prompt: one line of JSON each, so that none can pose as another. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hiermem_core.models.plain import dump_json, load_json
from hiermem_core.tokens.cutting import head_and_tail

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hiermem_core.models.turns import ToolCall, Turn

Record = dict[str, Any]

LEARNED_ROLES = frozenset({"user", "assistant", "tool"})
"""A system prompt tells the model what to do; it is nothing that was said."""

# What could end the block, or the line for somebody who reads lines as Unicode ends them.
_ENDING = re.compile("[<\x7f-\x9f\u2028\u2029]")


def records_of(turns: Iterable[Turn]) -> list[Record]:
    """Return the records of turns: seq, role, text, and what else there is.

    `day` stands where it changes; media are named by their kind; `calls` have name and arguments.
    """
    records = []
    day = None
    for turn in turns:
        said = _day(turn)
        records.append(_record(turn, None if said == day else said))
        day = said
    return records


def line_of(record: Mapping[str, Any]) -> str:
    """Return a record as one line, in which nothing can end the line or the block it stands in."""
    return _ENDING.sub(lambda match: f"\\u{ord(match[0]):04x}", dump_json(dict(record)))


def parse_lines(lines: str) -> list[Record]:
    """Return the records of a block of lines, as `line_of` was given them."""
    return [load_json(line) for line in lines.split("\n") if line]


def shortened(record: Record, characters: int) -> Record:
    """Return a record whose texts, names and call arguments are at most about so long each."""
    short = dict(record)
    for name in ("name", "text"):
        if name in record:
            short[name] = head_and_tail(record[name], characters)
    if "calls" in record:
        short["calls"] = [_short_call(call, characters) for call in record["calls"]]
    return short


def thinned(record: Record, items: int) -> Record:
    """Return a record with at most so many calls and media, and how many are cut."""
    thin = dict(record)
    for name in {"calls", "media"} & record.keys():
        values = record[name]
        if len(values) > items:
            tail = items // 2
            thin[name] = [*values[: items - tail], *values[len(values) - tail :]]
            thin[f"{name}_cut"] = len(values) - items
    return thin


def _record(turn: Turn, day: str | None) -> Record:
    media = [part["kind"] for part in turn.parts if part["type"] == "media"]
    facts = {
        "seq": turn.seq,
        "day": day,
        "role": turn.role,
        "name": turn.name,
        "text": turn.content,
        "media": media or None,
        "calls": [_call(call) for call in turn.tool_calls] or None,
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def _call(call: ToolCall) -> Record:
    return {"name": call.name, "args": call.args if isinstance(call.args, str) else dict(call.args)}


def _short_call(call: Mapping[str, Any], characters: int) -> Record:
    args = call["args"] if isinstance(call["args"], str) else dump_json(call["args"])
    short = head_and_tail(args, characters)
    name = head_and_tail(call["name"], characters)
    return {"name": name, "args": call["args"] if short == args else short}


def _day(turn: Turn) -> str | None:
    return None if turn.created_at is None else turn.created_at.date().isoformat()
