"""The format `claude-flow/sparc`: memories in categories, as a table or as Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hiermem_core.importing.claude_flow.hive import after
from hiermem_core.importing.names import namespace_of, segment_of
from hiermem_core.importing.reading import Facts, entry_record, json_column, read_each
from hiermem_core.importing.records import RENDERING, SQLITE, RecordError
from hiermem_core.importing.times import in_milliseconds, moment_of
from hiermem_core.importing.values import Value, decoded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hiermem_core.importing.databases import Row
    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

FORMAT = "claude-flow/sparc"

COLUMNS = frozenset({"category", "key", "value", "namespace"})
"""By which its table is known."""

INDEX_NAME = ".memory-index.json"
"""A file whose folder is walked for Markdown."""

_TITLE = re.compile(r"\A\s*# (.+)\n")
_FRONT = re.compile(r"\A\s*---\n(.*?)\n---\n?", re.DOTALL)
_FENCE = re.compile(r"\A\s*```json\n(.*?)\n```\s*\Z", re.DOTALL)
_VECTOR = re.compile(r"<!--.*?-->\s*\Z", re.DOTALL)


def read_rows(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the records of the table."""

    def read(row: Row) -> Record:
        metadata = json_column(row.text("metadata"))
        created_at, ttl = in_milliseconds(row.get("created_at")), row.get("ttl")
        category, version = row.text("category"), row.get("version")
        facts = Facts(
            format=FORMAT,
            value=decoded(row.given("value")),
            namespace=_namespace(row.text("namespace"), category),
            key=row.needed("key"),
            id=row.text("id"),
            tags=metadata.get("tags") or () if isinstance(metadata, dict) else (),
            metadata=metadata,
            created_at=created_at,
            updated_at=in_milliseconds(row.get("updated_at")),
            expires_at=after(created_at, ttl / 1000 if isinstance(ttl, int | float) else None),
            fields={"category": category, "version": version},
            version=version,
            precedence=SQLITE,
        )
        return entry_record(facts, reading)

    yield from read_each(rows, read)


def read_markdown(texts: Iterable[tuple[str, str]], reading: Reading) -> Iterator[Record]:
    """Yield the records of Markdown files; `texts` are path and text."""

    def read(text: str) -> Record:
        key, front, body = parts_of(text)
        category, version = front.get("category"), front.get("version")
        tags = front.get("tags") or ()
        facts = Facts(
            format=FORMAT,
            value=_body(body),
            namespace=_namespace(front.get("namespace"), category),
            key=key,
            id=front.get("id"),
            tags=tags,
            metadata={"tags": tags} if tags else None,
            created_at=moment_of(_number(front.get("created"))),
            fields={"category": category, "version": _number(version)},
            version=_number(version),
            precedence=RENDERING,
        )
        return entry_record(facts, reading)

    yield from read_each(texts, read)


def parts_of(text: str) -> tuple[str, dict[str, Any], str]:
    """Return key, front matter and body of a Markdown file. Pure.

    Raises:
        RecordError: It has no title or no front matter.
    """
    text = text.replace("\r\n", "\n")
    title = _TITLE.match(text)
    front = None if title is None else _FRONT.match(text[title.end() :])
    if title is None or front is None:
        raise RecordError("invalid_record", "has no title with front matter below; leave it out")
    body = text[title.end() + front.end() :]
    return title[1].strip(), _front(front[1]), _VECTOR.sub("", body).strip("\n")


def _front(text: str) -> dict[str, Any]:
    """Return the fields of front matter: texts, and lists in brackets or as dashes."""
    fields: dict[str, Any] = {}
    name = ""
    for line in text.splitlines():
        if line.lstrip().startswith("- ") and name:
            listed = fields[name] if isinstance(fields[name], list) else []
            fields[name] = [*listed, _unquoted(line.lstrip()[2:])]
        elif ":" in line:
            name, _, value = line.partition(":")
            name = name.strip()
            fields[name] = _field(value.strip())
    return fields


def _field(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        return [_unquoted(one) for one in text[1:-1].split(",") if one.strip()]
    return _unquoted(text)


def _unquoted(text: str) -> str:
    return text.strip().strip("'\"")


def _body(text: str) -> Value:
    fence = _FENCE.match(text)
    return decoded(fence[1]) if fence else Value(text)


def _namespace(name: str | None, category: str | None) -> str:
    return f"{namespace_of(name or '')}/{segment_of(category or '')}"


def _number(text: Any) -> Any:
    return int(text) if isinstance(text, str) and text.isdigit() else text
