"""The format `claude-flow/swarm-agents`: what agents of a swarm know, and their knowledge bases.

An entry that is shared is copied under a new id. A copy is no record of its own where its original
is there.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from hiermem_core.importing.names import segment_of
from hiermem_core.importing.reading import (
    Facts,
    entry_record,
    needed,
    needed_text,
    numbered,
    optional_text,
    read_each,
    ref_of,
)
from hiermem_core.importing.records import BACKUP, INDEX, skipped
from hiermem_core.importing.times import moment_of
from hiermem_core.importing.values import Value, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

FORMAT = "claude-flow/swarm-agents"

BASES = "knowledge-bases"
_SHARING = ("originalId", "sharedFrom", "sharedTo", "sharedAt", "tags")
_UPPER = re.compile(r"(?<=[a-z0-9])([A-Z])")


def fits(value: Any) -> bool:
    """Tell whether a JSON value is of this format."""
    return isinstance(value, list) and any(_is_entry(one) or _is_base(one) for one in value)


def read(value: Any, reading: Reading) -> Iterator[Record]:
    """Yield the records of a list of entries or of knowledge bases."""
    if any(map(_is_base, value)):
        yield from _read_bases(value, reading)
    else:
        yield from _read_entries(value, reading)


def _is_entry(one: Any) -> bool:
    return isinstance(one, dict) and "agentId" in one


def _is_base(one: Any) -> bool:
    facts = one.get("metadata") if isinstance(one, dict) else None
    return isinstance(facts, dict) and "domain" in facts and "entries" in one


def _read_entries(listed: list[Any], reading: Reading) -> Iterator[Record]:
    ids = {one["id"] for one in listed if _is_entry(one) and isinstance(one.get("id"), str)}
    shared: dict[str, set[str]] = {}
    firsts: dict[str, str] = {}
    for one in listed:
        original = _original_of(one)
        if original is not None:
            shared.setdefault(original, set()).update(_receiver(one))
            if original not in ids:
                firsts.setdefault(original, ref_of(one) or "")

    def entry(one: Any) -> Record:
        name, original = needed_text(one, "id"), _original_of(one)
        if original is not None and firsts.get(original, original) != name:
            return skipped(name, "shared_copy", of=firsts.get(original, original))
        return _entry(one, reading, {"shared_to": sorted(shared.get(name, ()))})

    yield from read_each(numbered(listed), entry)


def _read_bases(listed: list[Any], reading: Reading) -> Iterator[Record]:
    for position, base in numbered(listed):
        yield from read_each([(position, base)], lambda one: _base(one, reading))
        name = base.get("id") if isinstance(base, dict) else None
        entries = base.get("entries") if isinstance(base, dict) else None
        places = ((f"{position}.entries{at}", one) for at, one in numbered(entries or []))
        more = {"knowledge_base": optional_text(name)}
        yield from read_each(places, partial(_entry, reading=reading, more=more, rank=BACKUP))


def _entry(one: Any, reading: Reading, more: Mapping[str, Any], *, rank: int = INDEX) -> Record:
    name, agent = needed_text(one, "id"), needed_text(one, "agentId")
    about = one.get("metadata") if isinstance(one.get("metadata"), dict) else {}
    facts = Facts(
        format=FORMAT,
        value=value_of(needed(one, "content")),
        namespace=f"agents/{segment_of(agent)}",
        key=name,
        id=name,
        type=optional_text(one.get("type")),
        tags=about.get("tags") or (),
        created_at=moment_of(one.get("timestamp")),
        fields={"agent_id": agent, **_snake(about), **more},
        precedence=rank,
    )
    return entry_record(facts, reading)


def _base(one: Any, reading: Reading) -> Record:
    name, about = needed_text(one, "id"), needed(one, "metadata")
    texts = (optional_text(one.get(part)) for part in ("name", "description"))
    facts = Facts(
        format=FORMAT,
        value=Value("\n\n".join(filter(None, texts))),
        namespace=BASES,
        key=name,
        id=name,
        created_at=moment_of(about.get("lastUpdated")),
        fields={
            "name": one.get("name"),
            "domain": about.get("domain"),
            "expertise": about.get("expertise"),
            "contributors": about.get("contributors"),
        },
    )
    return entry_record(facts, reading)


def _original_of(one: Any) -> str | None:
    about = one.get("metadata") if isinstance(one, dict) else None
    original = about.get("originalId") if isinstance(about, dict) else None
    return original if isinstance(original, str) else None


def _receiver(one: Any) -> set[str]:
    name = optional_text(one["metadata"].get("sharedTo"))
    return set() if name is None else {name}


def _snake(about: Mapping[str, Any]) -> dict[str, Any]:
    return {
        _UPPER.sub(lambda match: f"_{match[1].lower()}", name): value
        for name, value in about.items()
        if name not in _SHARING
    }
