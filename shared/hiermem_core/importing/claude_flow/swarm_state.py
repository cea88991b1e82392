"""The formats `claude-flow/swarm-state` and `claude-flow/distributed`: entries in partitions.

An entry does not name its partition: it is in the first one that lists its id. Those lists hold
copies that may be stale, so they are no records. In a swarm's state a value is JSON text of the
value; in a distributed backup it is the value.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from hiermem_core.importing.names import DEFAULT, namespace_of, segment_of
from hiermem_core.importing.reading import (
    Facts,
    entry_record,
    iso_expiry,
    needed,
    needed_text,
    numbered,
    optional_text,
    read_each,
)
from hiermem_core.importing.records import INDEX
from hiermem_core.importing.times import iso_moment
from hiermem_core.importing.values import compact_json, decoded, value_of

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
    body = compact_json({"entries": value["entries"], "partitions": value["partitions"]})
    digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()
    return bool(value.get("checksum") == digest)


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
        facts = Facts(
            format=name,
            value=decoded(raw) if is_text else value_of(raw),
            namespace=f"{base}/{partitions.get(source_id, DEFAULT)}",
            key=needed_text(one, "key"),
            id=source_id,
            type=optional_text(one.get("type")),
            tags=one.get("tags") or (),
            metadata=one.get("metadata"),
            created_at=iso_moment(one.get("createdAt")),
            updated_at=iso_moment(one.get("updatedAt")),
            expires_at=iso_expiry(one.get("expiresAt"), reading),
            fields={
                "owner": one.get("owner"),
                "access_level": one.get("accessLevel"),
                "version": one.get("version"),
                "references": one.get("references"),
                "dependencies": one.get("dependencies"),
            },
            version=one.get("version"),
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
