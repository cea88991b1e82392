"""Patterns of the formats that have them.

A pattern comes with the procedural entry that search finds: namespace `patterns`, its name as the
key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core.errors import InvalidInputError, RedactionError
from hiermem_core.importing.names import namespace_of
from hiermem_core.importing.reading import (
    Facts,
    entry_record,
    json_column,
    optional_text,
    read_each,
    record_error,
)
from hiermem_core.importing.records import SQLITE, PatternFacts
from hiermem_core.importing.times import moment_of, sql_or_seconds
from hiermem_core.importing.values import Value, compact_json, value_of
from hiermem_core.models.patterns import FIRST_CONFIDENCE, PATTERNS
from hiermem_core.sessions.checking import checked_data

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hiermem_core.importing.databases import Row
    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

BANK = "claude-flow/reasoning-bank"
MODEL = "claude-flow/reasoning-bank-model"
LATER = "claude-flow/v3"
HIVE = "claude-flow/collective"

_SURE = 1.0
_MOST = 2**62


def read_bank(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the records of `reasoning-bank`: memories that it holds, and patterns."""
    yield from read_each(rows, lambda row: _of_bank(row, reading))


def read_model(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the patterns of `reasoning-bank-model`."""

    def read(row: Row) -> Record:
        number, domain = row.needed("id"), row.text("domain") or "default"
        facts = {name: row.get(name) for name in ("rationale", "success_rate", "domain")}
        problem, solution = row.given("problem"), row.given("solution")
        return _pattern(
            MODEL,
            f"{domain}/{number}",
            None,
            reading,
            text=f"{problem}\n\n{solution}",
            data={"problem": problem, "solution": solution} | facts,
            confidence=row.get("confidence"),
            tags=json_column(row.text("tags")),
            created_at=row.get("created_at"),
        )

    yield from read_each(rows, read, kind="pattern")


def read_later_patterns(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the patterns of `v3`."""

    def read(row: Row) -> Record:
        names = ("pattern_type", "condition", "action", "description")
        counts = [row.get(name) or 0 for name in ("success_count", "failure_count")]
        return _pattern(
            LATER,
            row.needed("name"),
            row.text("id"),
            reading,
            data={name: row.get(name) for name in names},
            confidence=row.get("confidence"),
            uses=sum(counts),
            tags=json_column(row.text("tags")),
            metadata=json_column(row.text("metadata")),
            created_at=row.get("created_at"),
            updated_at=row.get("updated_at"),
        )

    yield from read_each(rows, read, kind="pattern")


def read_neural(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the patterns that a hive has learnt."""

    def read(row: Row) -> Record:
        raw = json_column(row.text("pattern_data"))
        data = raw if isinstance(raw, dict) else {"pattern_data": raw}
        name = row.text("pattern_type") or "pattern"
        return _pattern(
            HIVE,
            f"{name}/{row.needed('id')}",
            row.text("id"),
            reading,
            data=data,
            confidence=row.get("confidence"),
            uses=row.get("usage_count"),
            created_at=row.get("created_at"),
        )

    yield from read_each(rows, read, kind="pattern")


def _of_bank(row: Row, reading: Reading) -> Record:
    source_id, raw = row.needed("id"), json_column(row.text("pattern_data"))
    data = raw if isinstance(raw, dict) else {"content": raw}
    if "original_key" not in data:
        title = optional_text(data.get("title")) or source_id
        return _pattern(
            BANK,
            title,
            source_id,
            reading,
            data=data,
            confidence=row.get("confidence"),
            uses=row.get("usage_count"),
            created_at=row.get("created_at"),
        )
    facts = Facts(
        format=BANK,
        value=value_of(data.get("original_value", data.get("content"))),
        namespace=namespace_of(optional_text(data.get("namespace")) or ""),
        key=optional_text(data["original_key"]),
        id=source_id,
        type=row.text("type"),
        created_at=moment(row.get("created_at")),
        fields={
            "confidence": row.get("confidence"),
            **{name: data.get(name) for name in ("title", "domain", "agent", "task_type")},
        },
        precedence=SQLITE,
    )
    return entry_record(facts, reading)


def _pattern(
    name: str,
    title: str,
    source_id: str | None,
    reading: Reading,
    *,
    data: Mapping[str, Any],
    confidence: Any,
    uses: Any = None,
    text: str | None = None,
    tags: Any = None,
    metadata: Any = None,
    created_at: Any = None,
    updated_at: Any = None,
) -> Record:
    known = {key: value for key, value in data.items() if value is not None}
    facts = Facts(
        format=name,
        value=Value(text or f"{title}\n\n{compact_json(known)}"),
        namespace=PATTERNS,
        key=title,
        id=source_id or title,
        type="pattern",
        tags=tags or (),
        metadata=metadata,
        created_at=moment(created_at),
        updated_at=moment(updated_at),
        precedence=SQLITE,
        pattern=_facts(known, _clamped(confidence, reading), uses, reading),
    )
    return entry_record(facts, reading)


def _facts(data: dict[str, Any], confidence: float, uses: Any, reading: Reading) -> PatternFacts:
    try:
        kept = checked_data(data, reading.cleaner("entry")) or {}
    except (InvalidInputError, RedactionError) as error:
        raise record_error(error) from error
    counted = uses if isinstance(uses, int) and not isinstance(uses, bool) else 0
    return PatternFacts(kept, confidence, min(max(0, counted), _MOST))


def _clamped(confidence: Any, reading: Reading) -> float:
    if isinstance(confidence, bool) or not isinstance(confidence, int | float):
        return FIRST_CONFIDENCE
    if not 0 <= confidence <= _SURE:
        reading.warn("confidence_clamped")
    return float(min(_SURE, max(0.0, confidence)))


def moment(value: Any) -> Any:
    """Return a time of SQL text, or of a number in whatever unit; `None` of none."""
    return sql_or_seconds(value) if isinstance(value, str) else moment_of(value)
