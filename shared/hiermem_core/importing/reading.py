"""Reading records: what every reader is told, and how a bad record stays alone."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import HierMemError, InvalidInputError, LimitExceededError, RedactionError
from hiermem_core.importing.databases import Row
from hiermem_core.importing.names import DEFAULT, derived_id, tags_of, type_of
from hiermem_core.importing.records import (
    INDEX,
    EntryRecord,
    PatternFacts,
    RecordError,
    failed,
    skipped,
)
from hiermem_core.importing.times import iso_moment
from hiermem_core.importing.values import Value, compact_json, depth_of
from hiermem_core.models.entries import EntryDraft
from hiermem_core.models.metadata import METADATA_LIMIT, checked_metadata
from hiermem_core.models.plain import load_json
from hiermem_core.models.text import TextCleaner
from hiermem_core.service.checking import checked_draft

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from hiermem_core.importing.records import Record
    from hiermem_core.importing.report import Kind, Reason, WarningCode
    from hiermem_core.models.redaction import RedactionKind

_FIELD_DEPTH = 4
_REF_LIMIT = 200
_MISSHAPEN = (TypeError, ValueError, KeyError, AttributeError, RecursionError, OverflowError)


@dataclass(frozen=True, slots=True)
class Reading:
    """What readers are told.

    Attributes:
        now: The clock's, of the whole run.
        prefix: The namespace that all entries go below; `""`: none.
        thread: Renames the thread of a source that holds one.
        stem: The file's name without its ending.
        only: Fields a record must have these values in.
        all_users: Records of all users are of this tenant.
        warn: Takes the code of what is noticed.
        cleaner: Makes what redacts and cleans the texts of an entry, or of a session or step.
    """

    now: datetime
    prefix: str = ""
    thread: str | None = None
    stem: str = ""
    only: Mapping[str, str] = field(default_factory=dict)
    all_users: bool = False
    include_expired: bool = False
    include_backups: bool = False
    metadata_limit: int = METADATA_LIMIT
    warn: Callable[[WarningCode], None] = lambda _: None
    cleaner: Callable[[RedactionKind], TextCleaner] = lambda _: TextCleaner()

    def of_file(self, path: str | os.PathLike[str]) -> Reading:
        """Return the same for one file."""
        return replace(self, stem=os.path.splitext(os.path.basename(path))[0])  # noqa: PTH119, PTH122 - Path drops what ends in a dot


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a source says of one entry.

    Attributes:
        namespace: One of ours, without the prefix.
        id: The record's own, where it has one as text.
        kept_as: What stands for its type where the source has none.
        metadata: As the source has it, whatever that is.
        about: Of `import`, beside what follows from the other facts.
        fields: What else the source says, by name.
        clock: Stands for the time of a record without one; the run's own where `None`.
    """

    format: str
    value: Value
    namespace: str = DEFAULT
    key: str | None = None
    id: str | None = None
    type: str | None = None
    kept_as: str | None = None
    tags: Any = ()
    metadata: Any = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    expires_at: datetime | None = None
    clock: datetime | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    user_id: str | None = None
    version: Any = None
    precedence: int = INDEX
    vector: tuple[float, ...] | None = None
    pattern: PatternFacts | None = None
    id_format: str | None = None

    @property
    def ref(self) -> str:
        """What a report calls the record."""
        return self.id or "/".join(filter(None, (self.namespace, self.key)))


def read_each(
    items: Iterable[tuple[str, Any]],
    read: Callable[[Any], Record],
    *,
    kind: Kind = "entry",
    named: bool = False,
) -> Iterator[Record]:
    """Yield the record of each item; never raises for what one holds.

    Args:
        items: Position and item.
        named: The position is the item's name, which `read` is given too.
    """
    for position, one in items:
        try:
            yield read((position, one) if named else one)
        except RecordError as error:
            yield failed(error, ref=ref_of(one) or position, position=position, kind=kind)
        except _MISSHAPEN:
            shapeless = RecordError("invalid_record", "is not shaped as its format says; mend it")
            yield failed(shapeless, ref=ref_of(one) or position, position=position, kind=kind)


def numbered(items: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield each item of a list with its position."""
    return ((f"[{place}]", one) for place, one in enumerate(items))


def ref_of(one: Any) -> str | None:
    """Return what a report calls a record: its id, or its key."""
    if isinstance(one, Row):
        return _ref_of_row(one)
    if not isinstance(one, dict):
        return None
    for name in ("id", "key"):
        text = one.get(name)
        if isinstance(text, str) and 0 < len(text) <= _REF_LIMIT and text.isprintable():
            return text
    return None


def _ref_of_row(row: Row) -> str | None:
    try:
        return ref_of({name: row.text(name) for name in ("id", "key")})
    except RecordError:
        return None


def entry_record(facts: Facts, reading: Reading) -> Record:
    """Return the record of an entry, or why there is none.

    Raises:
        RecordError: It cannot be stored.
    """
    ref = facts.ref
    if not facts.value.content.strip():
        return skipped(ref, "empty", kind="entry" if facts.pattern is None else "pattern")
    cleaner = reading.cleaner("entry")
    tags = tags_of(facts.tags)
    metadata, is_expired = _metadata(facts, reading)
    prefix = reading.prefix if facts.pattern is None else ""
    path = "/".join(filter(None, (prefix, facts.namespace)))
    draft = EntryDraft(
        content=facts.value.content,
        namespace=path,
        key=facts.key,
        type=type_of(facts.type or facts.kept_as),
        tags=tags,
        metadata=metadata,
        user_id=facts.user_id,
    )
    try:
        ready = checked_draft(draft, cleaner, metadata_limit=reading.metadata_limit)
    except (InvalidInputError, RedactionError) as error:
        raise record_error(error) from error
    return EntryRecord(
        ref=ref,
        id=_id(facts, reading),
        namespace=path,
        key=ready.key,
        content=ready.content,
        type=ready.type,
        tags=tuple(ready.tags),
        metadata=ready.metadata,
        created_at=facts.created_at,
        clock_at=facts.clock or reading.now,
        updated_at=facts.updated_at,
        expires_at=None if is_expired and reading.include_expired else facts.expires_at,
        is_expired=is_expired and not reading.include_expired,
        user_id=ready.user_id,
        version=_version(facts.version),
        precedence=facts.precedence,
        states_type=facts.type is not None,
        vector=None if cleaner.redacted else facts.vector,
        pattern=facts.pattern,
    )


def record_error(error: HierMemError) -> RecordError:
    """Return why a record fails that the core refuses."""
    reasons: dict[type[HierMemError], Reason] = {
        LimitExceededError: "limit_exceeded",
        RedactionError: "rejected_by_redactor",
    }
    found = (reason for kind, reason in reasons.items() if isinstance(error, kind))
    return RecordError(next(found, "invalid_input"), str(error))


def expiry(value: Any, read: Callable[[Any], datetime | None], reading: Reading) -> datetime | None:
    """Return when a record expires; one that cannot be read is none, with a warning."""
    if value is None or value == "":
        return None
    moment = read(value)
    if moment is None:
        reading.warn("invalid_expiry")
    return moment


def iso_expiry(value: Any, reading: Reading) -> datetime | None:
    """Return when a record expires, of ISO text."""
    return expiry(value, iso_moment, reading)


def needed(record: Mapping[str, Any], name: str) -> Any:
    """Return the value of a field.

    Raises:
        RecordError: There is no such field.
    """
    if name not in record:
        raise RecordError("missing_field", f"has no {name}; add it")
    return record[name]


def needed_text(record: Mapping[str, Any], name: str) -> str:
    """Return the text of a field; a number as text.

    Raises:
        RecordError: There is none.
    """
    value = record.get(name)
    if value is None or value == "":
        raise RecordError("missing_field", f"has no {name}; add it")
    text = optional_text(value)
    if text is None:
        raise RecordError("invalid_record", f"{name} is no text; mend it")
    return text


def optional_text(value: Any) -> str | None:
    """Return a text or number as text, `None` for all else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return compact_json(value)
    return value if isinstance(value, str) else None


def json_column(text: str | None) -> Any:
    """Return the value of a column of JSON text; `None` of none, the text where it is no JSON."""
    if not text:
        return None
    try:
        return load_json(text)
    except ValueError:
        return text


def _id(facts: Facts, reading: Reading) -> str:
    name = facts.id_format or facts.format
    if facts.id is not None:
        return derived_id(name, reading.prefix, "id", facts.id)
    return derived_id(name, reading.prefix, "key", facts.namespace, facts.key)


def _metadata(facts: Facts, reading: Reading) -> tuple[dict[str, Any], bool]:
    """Return the metadata of an entry, and whether it is past its expiry."""
    own, rest = _own_metadata(facts.metadata, reading)
    is_expired = facts.expires_at is not None and facts.expires_at <= reading.now
    expired_at = facts.expires_at if is_expired and reading.include_expired else None
    about: dict[str, Any] = {
        "format": facts.format,
        "id": facts.id,
        "type": facts.type,
        "value_type": facts.value.kind,
        "time_unknown": True if facts.created_at is None else None,
        "checksum": facts.about.get("checksum"),
        "expires_at": None if expired_at is None else iso_text(expired_at),
        "fields": _fields({**facts.fields, "metadata": rest}) or None,
    }
    kept = {name: value for name, value in about.items() if value is not None}
    return {**own, "import": kept}, is_expired


def iso_text(moment: datetime) -> str:
    """Return a moment in UTC as ISO text with milliseconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def _own_metadata(raw: Any, reading: Reading) -> tuple[dict[str, Any], Any]:
    """Return the source's metadata as it can stand in an entry's, and what of it cannot."""
    if not isinstance(raw, dict):
        return {}, raw
    moved = {("import_" if name == "import" else name): one for name, one in raw.items()}
    try:
        return checked_metadata(moved, TextCleaner(), limit=reading.metadata_limit), None
    except InvalidInputError:
        return {}, compact_json(raw)


def _fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: compact_json(value) if depth_of(value) > _FIELD_DEPTH else value
        for name, value in fields.items()
        if value is not None and value not in ([], {})
    }


def _version(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else 0.0
