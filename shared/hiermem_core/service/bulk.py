"""Operations on many entries: each item fails alone, and what fails all leaves the rest undone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from hiermem_core.errors import HierMemError, InvalidInputError
from hiermem_core.models.ids import check_name
from hiermem_core.models.namespaces import format_namespace
from hiermem_core.models.results import BulkInsertResult, BulkResult, Failure
from hiermem_core.service.checking import checked_items, checked_key
from hiermem_core.service.writing import id_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hiermem_core.models.entries import MemoryEntry
    from hiermem_core.models.text import TextCleaner
    from hiermem_core.service.writing import EntryWriting


class Change(NamedTuple):
    """The fields of an entry that are to change, if it still has the version expected."""

    entry_id: str
    fields: Mapping[str, Any]
    expected_version: int | None


def insert_all(writing: EntryWriting, items: Sequence[Any], *, batch_size: int) -> BulkInsertResult:
    """Store items, a transaction a batch.

    What fails a batch is the failure of each of its items and of all that come after it.
    """
    ids: list[str | None] = [None] * len(items)
    failed: list[Failure] = []
    pending: dict[str, None] = {}
    for start in range(0, len(items), batch_size):
        drafts, refused, cleaned = writing.check(items[start : start + batch_size])
        failed += _placed(refused, start)
        if not drafts:
            continue
        try:
            stored, lost, waiting = writing.store(drafts, cleaned=cleaned)
        except HierMemError as error:
            end = start + batch_size
            places = [*(start + place for place in drafts), *range(end, len(items))]
            failed += [Failure(place, id_of(items[place]), error) for place in places]
            break
        failed += _placed(lost, start)
        pending |= dict.fromkeys(waiting)
        for place, entry in stored.items():
            ids[start + place] = entry.id
    failed.sort(key=lambda one: one.index)
    return BulkInsertResult(tuple(ids), tuple(failed), tuple(pending))


def update_all(writing: EntryWriting, updates: Any) -> BulkResult[MemoryEntry | None]:
    """Change entries, given as `(id, changes)` or `{"id": ..., "update": {...}}`."""
    answers: dict[str, MemoryEntry | None] = {}
    changes: dict[int, Change] = {}
    failed: list[Failure] = []
    for place, update in enumerate(checked_items(updates)):
        entry_id = None
        try:
            entry_id, *rest = _parts_of(update)
            changes[place] = change_of(entry_id, *rest)
        except HierMemError as error:
            entry_id = entry_id if isinstance(entry_id, str) else None
            failed.append(Failure(place, entry_id, error))
        if isinstance(entry_id, str):
            answers.setdefault(entry_id)
    if changes:
        changed, refused = writing.change(list(changes.values()))
        answers |= changed
        places = list(changes)
        failed += [replace(one, index=places[one.index]) for one in refused]
    failed.sort(key=lambda one: one.index)
    return BulkResult(answers, tuple(failed))


def delete_all(writing: EntryWriting, ids: Any) -> BulkResult[bool]:
    """Delete entries; say for each id whether there was one."""
    answers: dict[str, bool] = {}
    failed: list[Failure] = []
    wanted: dict[str, None] = {}
    for place, entry_id in enumerate(checked_items(ids)):
        try:
            wanted[check_name("id", entry_id)] = None
        except HierMemError as error:
            named = entry_id if isinstance(entry_id, str) else None
            failed.append(Failure(place, named, error))
        if isinstance(entry_id, str):
            answers.setdefault(entry_id, False)
    if wanted:
        answers |= writing.remove(list(wanted))
    return BulkResult(answers, tuple(failed))


def distinct_ids(ids: Iterable[str]) -> list[str]:
    """Return the ids, each once.

    Raises:
        InvalidInputError: One of them is no id.
    """
    return list(dict.fromkeys(check_name("id", entry_id) for entry_id in checked_items(ids)))


def places_of(names: Any, cleaner: TextCleaner) -> list[tuple[str, str]]:
    """Return the namespace and key of each name.

    Raises:
        InvalidInputError: One is no pair of these.
    """
    return [_place_of(name, cleaner) for name in checked_items(names)]


def change_of(entry_id: Any, fields: Any, expected_version: Any = None) -> Change:
    """Return a change of an entry.

    Raises:
        InvalidInputError: The id is none, the fields are no mapping, the version is no number.
    """
    if not isinstance(fields, Mapping):
        raise InvalidInputError("changes", "must be a mapping of fields to their new values")
    is_number = isinstance(expected_version, int) and not isinstance(expected_version, bool)
    if expected_version is not None and not is_number:
        raise InvalidInputError("expected_version", "must be a whole number")
    return Change(check_name("id", entry_id), fields, expected_version)


def one_name(
    entry_id: str | None,
    namespace: str | Sequence[str] | None,
    key: str | None,
    cleaner: TextCleaner,
) -> tuple[str | None, tuple[str, str]]:
    """Return what names an entry: an id, or else a namespace and key.

    Raises:
        InvalidInputError: Neither is given, or both.
    """
    if (entry_id is None) == (key is None):
        raise InvalidInputError("id", "give either an id, or a key with its namespace")
    if entry_id is not None:
        return check_name("id", entry_id), ("", "")
    path = "default" if namespace is None else format_namespace(namespace)
    return None, (path, str(checked_key(key, cleaner)))


def _place_of(name: Any, cleaner: TextCleaner) -> tuple[str, str]:
    match name:
        case (namespace, str(key)):
            return format_namespace(namespace), str(checked_key(key, cleaner))
    raise InvalidInputError("names", "must be pairs of a namespace and a key")


def _parts_of(update: Any) -> tuple[Any, ...]:
    match update:
        case {"id": entry_id, "update": fields}:
            return entry_id, fields, update.get("expected_version")
        case (entry_id, fields):
            return entry_id, fields
    raise InvalidInputError("updates", "must be (id, changes) pairs")


def _placed(failed: Iterable[Failure], start: int) -> list[Failure]:
    """Return failures of a batch by their places among all items."""
    return [replace(one, index=start + one.index) for one in failed]
