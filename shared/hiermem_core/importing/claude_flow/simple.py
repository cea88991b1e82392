"""The format `claude-flow/simple`: namespaces of texts under keys."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from hiermem_core.importing.names import namespace_of
from hiermem_core.importing.reading import Facts, entry_record, needed, needed_text, read_each
from hiermem_core.importing.times import in_milliseconds
from hiermem_core.importing.values import value_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

FORMAT = "claude-flow/simple"


def fits(value: Any) -> bool:
    """Tell whether a JSON value is of this format."""
    return (
        isinstance(value, dict)
        and any(value.values())
        and all(isinstance(listed, list) for listed in value.values())
        and any(_is_record(one) for listed in value.values() for one in listed)
    )


def read(value: Any, reading: Reading) -> Iterator[Record]:
    """Yield the records of each namespace."""
    for name, listed in value.items():
        items = ((f"{name}[{place}]", one) for place, one in enumerate(listed))
        yield from read_each(items, partial(_record, namespace=name, reading=reading))


def _is_record(one: Any) -> bool:
    return isinstance(one, dict) and "key" in one and "value" in one


def _record(one: Any, namespace: str, reading: Reading) -> Record:
    facts = Facts(
        format=FORMAT,
        value=value_of(needed(one, "value")),
        namespace=namespace_of(namespace),
        key=needed_text(one, "key"),
        created_at=in_milliseconds(one.get("timestamp")),
        fields={"redacted": one.get("redacted") or None},
    )
    return entry_record(facts, reading)
