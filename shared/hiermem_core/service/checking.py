"""From what callers store and ask to values that hold every rule. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import lru_cache, partial
from typing import Any, get_args

from hiermem_core.backends.restrictions import Restrictions
from hiermem_core.errors import (
    InvalidInputError,
    LimitExceededError,
)
from hiermem_core.models.entries import ENTRY_SOURCES, MEMORY_TYPES, EntryDraft, MemoryEntry
from hiermem_core.models.filters import parse_filter
from hiermem_core.models.ids import check_name
from hiermem_core.models.metadata import METADATA_LIMIT, checked_metadata
from hiermem_core.models.moments import aware
from hiermem_core.models.namespaces import format_namespace
from hiermem_core.models.queries import EVERYWHERE, Fusion, MemoryQuery, Mode
from hiermem_core.models.text import TextCleaner, is_clean
from hiermem_core.service.checking_vectors import checked_embedding

CONTENT_LIMIT = 1024 * 1024
"""Characters of an entry's content."""

KEY_LIMIT = 1024
TAG_LIMIT = 256
TAGS_LIMIT = 64
PASSAGES_LIMIT = 1000
SOURCES_LIMIT = 1000
"""Ids an entry may be derived from."""

TEXT_LIMIT = 32_768
"""Characters of a query's text."""

LIMIT_LIMIT = 1000
"""Hits of one search."""

OFFSET_LIMIT = 1_000_000
"""Hits that one search passes over."""

BULK_LIMIT = 10_000
"""Items of one bulk operation."""

_MOST = 2**62
_LONGEST_WAIT = 1e9
_LONGEST_TTL = 100 * 366 * 86_400.0
_DRAFT_FIELDS = frozenset(field.name for field in fields(EntryDraft))
_QUERY_FIELDS = frozenset(field.name for field in fields(MemoryQuery))
_MODES: tuple[str, ...] = get_args(Mode)
_FUSIONS: tuple[str, ...] = get_args(Fusion)


def as_entry_draft(value: Any, given: Mapping[str, Any]) -> EntryDraft:
    """Return the draft of what a caller stores: a text, a draft, a mapping or a stored entry.

    Raises:
        InvalidInputError: It is none of these, or a field is unknown.
    """
    _check_names(given)
    if isinstance(value, str):
        return EntryDraft(**{"content": value, **given})
    if isinstance(value, EntryDraft):
        return replace(value, **given) if given else value
    if isinstance(value, MemoryEntry):
        return replace(value.draft(), **given)
    if isinstance(value, Mapping) and "content" in value:
        _check_names(value)
        return EntryDraft(**{**value, **given})
    raise InvalidInputError("entry", "must be a text, an EntryDraft or a mapping with content")


def _check_names(given: Mapping[Any, Any]) -> None:
    for name in given:
        if not isinstance(name, str):
            raise InvalidInputError("entry", "has a field whose name is no text; leave it out")
        if name not in _DRAFT_FIELDS:
            raise InvalidInputError(name, "is no field of an entry; put it into the metadata")


def checked_draft(
    draft: EntryDraft, cleaner: TextCleaner, *, metadata_limit: int = METADATA_LIMIT
) -> EntryDraft:
    """Return a copy of a draft that holds every rule; nothing in it is shared with the caller.

    Raises:
        InvalidInputError: A field cannot be stored.
        LimitExceededError: A field is larger than its limit.
    """
    return EntryDraft(
        content=_content(draft.content, cleaner),
        id=None if draft.id is None else check_name("id", draft.id),
        namespace=_namespace(draft.namespace),
        type=_type(draft.type, cleaner),  # type: ignore[arg-type]  # checked
        key=checked_key(draft.key, cleaner),
        tags=_tags(draft.tags, cleaner),
        metadata=checked_metadata(draft.metadata, cleaner, limit=metadata_limit),
        passages=_passages(draft.passages, cleaner),
        embedding=checked_embedding(draft.embedding, cleaner),  # type: ignore[arg-type]  # checked
        created_at=aware("created_at", draft.created_at),
        ttl=_ttl(draft.ttl, cleaner),
        source=_one_of("source", draft.source, ENTRY_SOURCES),
        trust=_trust(draft.trust),
        derived_from=_derived_from(draft.derived_from, cleaner),
        user_id=_user_id(draft.user_id),
    )


def checked_fields(
    changes: Mapping[str, Any], cleaner: TextCleaner, *, metadata_limit: int = METADATA_LIMIT
) -> dict[str, Any]:
    """Return copies of an entry's fields that hold every rule.

    Raises:
        InvalidInputError: A field cannot be changed or stored.
        LimitExceededError: A field is larger than its limit.
    """
    for name in changes:
        if not isinstance(name, str):
            raise InvalidInputError("changes", "name a field by no text; leave it out")
        if name not in _CHECKS:
            reason = "cannot be changed" if name in _DRAFT_FIELDS else "is no field of an entry"
            raise InvalidInputError(name, f"{reason}; leave it out")
    checks = _CHECKS | {"metadata": partial(checked_metadata, limit=metadata_limit)}
    return {name: checks[name](value, cleaner) for name, value in changes.items()}


def _namespace(value: Any) -> str:
    return _known_namespace(value) if isinstance(value, str) else format_namespace(value)


_known_namespace = lru_cache(1024)(format_namespace)


def _content(value: Any, cleaner: TextCleaner) -> str:
    text = cleaner.text(_text("content", value))
    if not text or text.isspace():
        raise InvalidInputError("content", "is blank; say something")
    _check_size("content", len(text), CONTENT_LIMIT)
    return text


def checked_key(value: Any, cleaner: TextCleaner, *, name: str = "key") -> str | None:
    """Return a key that an entry may bear.

    Raises:
        InvalidInputError: It is no text, empty, or holds what no store can hold.
        LimitExceededError: It is longer than 1,024 characters.
    """
    return None if value is None else _name(name, value, KEY_LIMIT, cleaner)


def _tags(value: Any, cleaner: TextCleaner) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInputError("tags", "must be a list of texts")
    tags = tuple(dict.fromkeys(_name("tag", tag, TAG_LIMIT, cleaner) for tag in value))
    _check_size("tags", len(tags), TAGS_LIMIT)
    return tags


def _passages(value: Any, cleaner: TextCleaner) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInputError("passages", "must be a list of texts")
    passages = tuple(cleaner.text(_text("passage", text)) for text in value)
    _check_size("passages", len(passages), PASSAGES_LIMIT)
    for text in passages:
        if not text.strip():
            raise InvalidInputError("passage", "is blank; leave it out")
        _check_size("passage", len(text), CONTENT_LIMIT)
    return passages


def _ttl(value: Any, _: TextCleaner) -> float | None:
    if value is None:
        return None
    seconds = checked_number("ttl", value)
    if not 0 < seconds <= _LONGEST_TTL:
        raise InvalidInputError("ttl", "must be more than 0 seconds and at most 100 years")
    return seconds


def _trust(value: Any, _: TextCleaner | None = None) -> float | None:
    return None if value is None else checked_share("trust", value)


def checked_share(name: str, value: Any) -> float:
    """Return a number from 0 to 1.

    Raises:
        InvalidInputError: It is none.
    """
    share = checked_number(name, value)
    if not 0 <= share <= 1:
        raise InvalidInputError(name, "must be between 0 and 1")
    return share


def _derived_from(value: Any, _: TextCleaner) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInputError("derived_from", "must be a list of ids")
    sources = tuple(dict.fromkeys(check_name("derived_from", source) for source in value))
    _check_size("derived_from", len(sources), SOURCES_LIMIT)
    return sources


def _user_id(value: Any, _: TextCleaner | None = None) -> str | None:
    return None if value is None else check_name("user_id", value)


def _type(value: Any, _: TextCleaner) -> str:
    return str(_one_of("type", value, MEMORY_TYPES))


_CHECKS: dict[str, Any] = {
    "content": _content,
    "type": _type,
    "key": checked_key,
    "tags": _tags,
    "metadata": checked_metadata,
    "passages": _passages,
    "embedding": checked_embedding,
    "ttl": _ttl,
    "trust": _trust,
    "derived_from": _derived_from,
    "user_id": _user_id,
}


def as_query(
    value: Any, given: Mapping[str, Any], cleaner: TextCleaner | None = None
) -> MemoryQuery:
    """Return the checked query of what a caller asks.

    Raises:
        InvalidInputError: A field is unknown or out of range.
        LimitExceededError: The text or the limit is too large.
    """
    unknown = sorted(set(given) - _QUERY_FIELDS)
    if unknown:
        raise InvalidInputError(unknown[0], "is no field of a query; put it into the filter")
    if value is None or isinstance(value, str):
        query = MemoryQuery(**({} if value is None else {"text": value}) | dict(given))
    elif isinstance(value, MemoryQuery):
        query = replace(value, **given)
    else:
        raise InvalidInputError("query", "must be a text or a MemoryQuery")
    _check_query(query)
    if query.text is None or (is_clean(query.text) and not (cleaner and cleaner.redacts)):
        return query
    if query.mode in EVERYWHERE and not is_clean(query.text):
        raise InvalidInputError("text", "holds a lone surrogate or NUL; remove it")
    return replace(query, text=(cleaner or TextCleaner()).text(query.text))


def _check_query(query: MemoryQuery) -> None:
    _check_size("limit", checked_count("limit", query.limit), LIMIT_LIMIT)
    _check_size("offset", checked_count("offset", query.offset), OFFSET_LIMIT)
    if query.text is not None:
        _check_size("text", len(_text("text", query.text)), TEXT_LIMIT)
    if query.mode is not None:
        _one_of("mode", query.mode, _MODES)
    _one_of("fusion", query.fusion, _FUSIONS)
    if query.threshold is not None:
        checked_number("threshold", query.threshold)


def restrictions_of(query: MemoryQuery, cleaner: TextCleaner | None = None) -> Restrictions:
    """Return what a query is restricted to, beside its text.

    Raises:
        InvalidInputError: A restriction cannot be understood.
    """
    cleaner = cleaner or TextCleaner()
    return Restrictions(
        namespace=None if query.namespace is None else format_namespace(query.namespace),
        subtree=query.subtree,
        filter=parse_filter(query.filter),
        type=None if query.type is None else _one_of("type", query.type, MEMORY_TYPES),
        tags=_tags(query.tags, cleaner),
        key=checked_key(query.key, cleaner),
        source=None if query.source is None else _one_of("source", query.source, ENTRY_SOURCES),
        min_trust=_trust(query.min_trust),
        user_id=_user_id(query.user_id),
        created_after=aware("created_after", query.created_after),
        created_before=aware("created_before", query.created_before),
        updated_after=aware("updated_after", query.updated_after),
        updated_before=aware("updated_before", query.updated_before),
    )


def checked_items(items: Any) -> Sequence[Any]:
    """Return the items of a bulk operation as a list.

    Raises:
        InvalidInputError: They are no list.
        LimitExceededError: They are more than 10,000.
    """
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise InvalidInputError("items", "must be a list")
    listed = list(items.items() if isinstance(items, Mapping) else items)
    _check_size("items", len(listed), BULK_LIMIT)
    return listed


def _name(name: str, value: Any, limit: int, cleaner: TextCleaner) -> str:
    text = cleaner.name(_text(name, value))
    if not text:
        raise InvalidInputError(name, "is empty; leave it out or name it")
    if not is_clean(text):
        raise InvalidInputError(name, "holds a lone surrogate or NUL; remove it")
    _check_size(name, len(text), limit)
    return text


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInputError(name, f"must be text, not {type(value).__name__}")
    return value


def checked_count(name: str, value: Any, *, least: int = 0) -> int:
    """Return a whole number of at least `least`, cut to what a store can count to.

    Raises:
        InvalidInputError: It is none.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidInputError(name, f"must be a whole number, at least {least}")
    return min(value, _MOST)


def checked_timeout(value: Any) -> float | None:
    """Return seconds to wait at most, cut to what a thread can wait; `None`: without an end.

    Raises:
        InvalidInputError: It is no finite number.
    """
    if value is None:
        return None
    return min(max(0.0, checked_number("timeout", value)), _LONGEST_WAIT)


def checked_number(name: str, value: Any) -> float:
    """Return a finite number.

    Raises:
        InvalidInputError: It is none.
    """
    if not isinstance(value, bool) and isinstance(value, int | float):
        with suppress(OverflowError):
            number = float(value)
            if math.isfinite(number):
                return number
    raise InvalidInputError(name, "must be a finite number")


def _one_of(name: str, value: Any, allowed: Sequence[str]) -> Any:
    if not isinstance(value, str) or value not in allowed:
        raise InvalidInputError(name, f"is unknown; use one of {', '.join(allowed)}")
    return value


def _check_size(name: str, actual: int, limit: int) -> None:
    if actual > limit:
        raise LimitExceededError(name, limit=limit, actual=actual)
