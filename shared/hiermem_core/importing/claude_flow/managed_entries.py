"""Entries as claude-flow's memory managers keep them: owned, versioned, of a type, with tags."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from hiermem_core.importing.reading import Facts, iso_expiry, needed_text, optional_text
from hiermem_core.importing.times import iso_moment
from hiermem_core.importing.values import compact_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.values import Value

_FIELDS = {
    "owner": "owner",
    "access_level": "accessLevel",
    "version": "version",
    "references": "references",
    "dependencies": "dependencies",
}
"""What else an entry says: our name and theirs."""


def entry_facts(
    one: Mapping[str, Any],
    reading: Reading,
    *,
    format_name: str,
    value: Value,
    namespace: str,
    precedence: int,
) -> Facts:
    """Return what an entry says, with a value and a namespace that its format decides.

    Raises:
        RecordError: It has no key.
    """
    return Facts(
        format=format_name,
        value=value,
        namespace=namespace,
        key=needed_text(one, "key"),
        id=optional_text(one.get("id")) or None,
        type=optional_text(one.get("type")),
        tags=one.get("tags") or (),
        metadata=one.get("metadata"),
        created_at=iso_moment(one.get("createdAt")),
        updated_at=iso_moment(one.get("updatedAt")),
        expires_at=iso_expiry(one.get("expiresAt"), reading),
        fields={name: one.get(theirs) for name, theirs in _FIELDS.items()},
        version=one.get("version"),
        precedence=precedence,
    )


def checksum_of(value: Any) -> str:
    """Return the checksum of a value: the SHA-256 of its compact JSON, in hexadecimal."""
    return hashlib.sha256(compact_json(value).encode("utf-8", "surrogatepass")).hexdigest()
