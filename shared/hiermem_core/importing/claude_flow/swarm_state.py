"""The formats `claude-flow/swarm-state` and `claude-flow/distributed`: entries in partitions.

An entry does not name its partition: it is in the first one that lists its id. Those lists hold
copies that may be stale, so they are no records. In a swarm's state a value is JSON text of the
value; in a distributed backup it is the value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core.importing.claude_flow.managed_entries import checksum_of, entry_facts
from hiermem_core.importing.names import DEFAULT, namespace_of, segment_of
from hiermem_core.importing.reading import (
    entry_record,
    needed,
    needed_text,
    numbered,
    optional_text,
    read_each,
)
from hiermem_core.importing.records import INDEX
from hiermem_core.importing.values import decoded, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

FORMAT = "claude-flow/swarm-state"
DISTRIBUTED = "claude-flow/distributed"

_CSV = "id,key,type,"


def fits(value: Any) -> bool:
    """Tell whether a JSON value is the state, a backup or an export of a swarm."""
    if not isinstance(value, dict) or not isinstance(value.get("entries"), list):
        return False
    if "partitions" in value:
        return "namespace" in value or "checksum" in value
    return "exported" in value and "entryCount" in value


def fits_distributed(value: Any) -> bool:
    """Tell whether a JSON value is a backup of a distributed memory."""
    if not isinstance(value, dict) or not isinstance(value.get("metadata"), dict):
        return False
    return "nodeId" in value["metadata"] and isinstance(value.get("entries"), list)


def is_valueless(line: str) -> bool:
    """Tell whether a text begins as the CSV export, which holds no values."""
    return line.startswith(_CSV) and "value" not in line.split(",")


def is_intact(value: Any) -> bool:
    """Tell whether a backup has the checksum it says."""
    if not isinstance(value, dict) or not {"entries", "partitions"} <= value.keys():
        return False
    body = {"entries": value["entries"], "partitions": value["partitions"]}
    return bool(value.get("checksum") == checksum_of(body))


def read(value: Any, reading: Reading, *, precedence: int = INDEX) -> Iterator[Record]:
    """Yield the records of a swarm."""
    root = value.get("namespace")
    if root is None and isinstance(value.get("metadata"), dict):
        root = value["metadata"].get("namespace")
    yield from _read(value, root, FORMAT, reading, precedence)


def read_distributed(value: Any, reading: Reading) -> Iterator[Record]:
    """Yield the records of a distributed memory."""
    config = value["metadata"].get("config")
    root = config.get("namespace") if isinstance(config, dict) else None
    yield from _read(value, root, DISTRIBUTED, reading, INDEX)


def _read(value: Any, root: Any, name: str, reading: Reading, precedence: int) -> Iterator[Record]:
    partitions = _partitions(value.get("partitions"))
    base = namespace_of(optional_text(root) or "")

    def entry(one: Any) -> Record:
        source_id = needed_text(one, "id")
        raw = needed(one, "value")
        is_text = name == FORMAT and isinstance(raw, str)
        facts = entry_facts(
            one,
            reading,
            format_name=name,
            value=decoded(raw) if is_text else value_of(raw),
            namespace=f"{base}/{partitions.get(source_id, DEFAULT)}",
            precedence=precedence,
        )
        return entry_record(facts, reading)

    yield from read_each(numbered(value["entries"]), entry)


def _partitions(listed: Any) -> dict[str, str]:
    """Return the partition of each id, as a segment."""
    places: dict[str, str] = {}
    for partition in listed if isinstance(listed, list) else []:
        if not isinstance(partition, dict) or not isinstance(partition.get("entries"), list):
            continue
        name = segment_of(optional_text(partition.get("name")) or "")
        for one in partition["entries"]:
            if isinstance(one, dict) and isinstance(one.get("id"), str):
                places.setdefault(one["id"], name)
    return places
