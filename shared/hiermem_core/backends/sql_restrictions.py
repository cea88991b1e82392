"""Restrictions and scopes as SQL conditions. Pure.

Scopes that restrict the same things to other values share their statements: making one costs
several times what running it does. What is bound to a shared statement is in `facts_of`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, and_, bindparam, false, func, or_, select, true

from hiermem_core.backends.sql_filters import sql_filter
from hiermem_core.backends.sql_rows import COLUMNS
from hiermem_core.models.moments import to_milliseconds
from hiermem_core.models.namespaces import subtree_bounds
from hiermem_core.storage.given import as_given, given_numbers
from hiermem_core.storage.tables import entry_tags, memory_entries, searchable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from sqlalchemy import ColumnElement

    from hiermem_core.backends.restrictions import Restrictions, Scope
    from hiermem_core.backends.sql_filters import Fields
    from hiermem_core.models.filters import Filter

    Condition = ColumnElement[bool]
    ValueOf = Callable[[str], Any]

_E = memory_entries.c
_S = searchable.c
_T = entry_tags.c

_EQUAL = {"type": _E.type, "key": _E.key, "source": _E.source, "user_id": _E.user_id}
_FROM = {
    "min_trust": _E.trust,
    "created_after": _E.created_at,
    "updated_after": _E.updated_at,
}
_BEFORE = {"created_before": _E.created_at, "updated_before": _E.updated_at}

_LEADING = frozenset({"namespace", "key", "key_prefix", "user_id"})
"""Restrictions whose index is begun with, rather than with that of a tag."""

MOST_STATEMENTS = 256


@dataclass(frozen=True, slots=True)
class Shape:
    """What a scope restricts, without the values.

    Attributes:
        entries: Restricted fields of entries; `None`: no entry is in scope.
        tags: How many.
        turns: What turns are restricted by; `None`: no turn is in scope.
    """

    entries: frozenset[str] | None
    tags: int
    turns: frozenset[str] | None


def shape_of(scope: Scope) -> Shape:
    """Return the shape of a scope."""
    turns = {"threads": scope.threads, "unseen": scope.unseen_before}
    return Shape(
        entries=None if scope.entries is None else _restricted(scope.entries),
        tags=0 if scope.entries is None else len(scope.entries.tags),
        turns=frozenset(n for n, v in turns.items() if v is not None) if scope.has_turns else None,
    )


def facts_of(scope: Scope) -> dict[str, Any]:
    """Return what is bound to a statement of the scope's shape."""
    facts = {"tenant": scope.tenant, "now_ms": to_milliseconds(scope.now)}
    if scope.entries is not None:
        facts |= _values(scope.entries)
    if scope.threads:
        facts["threads"] = as_given(scope.threads)
    if scope.unseen_before is not None:
        facts["unseen_thread"], facts["unseen_seq"] = scope.unseen_before
    return facts


def living(now: datetime) -> Condition:
    """Return the condition that an entry has not expired."""
    return or_(_E.expires_at.is_(None), _E.expires_at > to_milliseconds(now))


def within(restrictions: Restrictions, tenant: str, *, fields: Fields) -> Condition:
    """Return the condition that an entry of `tenant` is within the restrictions.

    Args:
        fields: The metadata fields of the database.
    """
    facts = _values(restrictions) | {"tenant": tenant}
    names, tags = _restricted(restrictions), len(restrictions.tags)
    condition = and_(true(), *_conditions(names, tags, facts.__getitem__))
    return (
        condition if restrictions.filter is None else and_(condition, _filter(restrictions, fields))
    )


def in_namespace(namespace: str, *, subtree: bool) -> Condition:
    """Return the condition that an entry is in a namespace, or with `subtree` below it."""
    exact, low, high = subtree_bounds(namespace)
    return _subtree(exact, low, high) if subtree else _E.namespace == exact


def listing(restrictions: Restrictions, *, fields: Fields) -> Select[Any]:
    """Return the query of a page of the living entries within, newest change first, then by id.

    Bound are the facts of a scope, `limit` and `offset`.
    """
    query = _listing(_restricted(restrictions), len(restrictions.tags))
    return query if restrictions.filter is None else query.where(_filter(restrictions, fields))


@lru_cache(MOST_STATEMENTS)
def _listing(names: frozenset[str], tags: int) -> Select[Any]:
    is_living = or_(_E.expires_at.is_(None), _E.expires_at > bindparam("now_ms"))
    ours = (_E.tenant == bindparam("tenant"), is_living)
    query = select(*COLUMNS).where(*ours, *_conditions(names, tags, bindparam))
    page = query.order_by(_E.updated_at.desc(), _E.id)
    return page.limit(bindparam("limit")).offset(bindparam("offset"))


def entry_numbers(scope: Scope, *, fields: Fields) -> Select[tuple[int]]:
    """Return the query of the row numbers of entries within the restrictions of a scope.

    Expired ones are among them: an index has the answer then, and whoever uses a row looks.
    """
    restrictions = scope.entries
    if restrictions is None:
        return select(_E.number).where(false())
    names, tags = _restricted(restrictions), len(restrictions.tags)
    is_by_tag = tags > 0 and not names & _LEADING
    query = (_tagged_numbers if is_by_tag else _entry_numbers)(names, tags)
    return query if restrictions.filter is None else query.where(_filter(restrictions, fields))


@lru_cache(MOST_STATEMENTS)
def _entry_numbers(names: frozenset[str], tags: int) -> Select[tuple[int]]:
    ours = _E.tenant == bindparam("tenant")
    return select(_E.number).where(ours, *_conditions(names, tags, bindparam))


@lru_cache(MOST_STATEMENTS)
def _tagged_numbers(names: frozenset[str], tags: int) -> Select[tuple[int]]:
    """Begin with the entries that bear the first tag, one after another as they are asked for."""
    bears_first = and_(_T.tenant == bindparam("tenant"), _T.tag == bindparam("tag_0"))
    others = _conditions(names, tags, bindparam, first_tag=1)
    return (
        select(_E.number)
        .select_from(entry_tags)
        .join(memory_entries, _E.number == _T.entry)
        .where(bears_first, *map(_unindexed, others))
    )


def turn_numbers(scope: Scope) -> Select[tuple[int]]:
    """Return the query of the row numbers of the turns in a scope."""
    return _turn_numbers(shape_of(scope).turns or frozenset())


@lru_cache(MOST_STATEMENTS)
def _turn_numbers(names: frozenset[str]) -> Select[tuple[int]]:
    return select(_S.number).where(_S.tenant == bindparam("tenant"), _turn_condition(names))


def filter_of(scope: Scope, *, fields: Fields) -> Condition | None:
    """Return the condition of a scope's filter on entries, which has no shape."""
    if scope.entries is None or scope.entries.filter is None:
        return None
    condition = _filter(scope.entries, fields)
    return or_(_E.number.is_(None), condition) if scope.has_turns else condition


def in_scope(shape: Shape) -> Condition:
    """Return the condition that a row is in a scope of this shape, but for its filter.

    It is on `memory_entries`, outer-joined with `searchable` where turns are in scope. For rows
    that are looked up by number: no index is used for it.
    """
    either: list[Condition] = []
    if shape.entries is not None:
        is_living = or_(_E.expires_at.is_(None), _E.expires_at > bindparam("now_ms"))
        conditions = _conditions(shape.entries, shape.tags, bindparam)
        restricted = map(_unindexed, conditions)
        ours = _unindexed(_E.tenant == bindparam("tenant"))
        either.append(and_(ours, is_living, ~_E.is_stale, *restricted))
    if shape.turns is not None:
        ours = _unindexed(_S.tenant == bindparam("tenant"))
        either.append(and_(ours, _turn_condition(shape.turns)))
    return or_(false(), *either)


def _unindexed(condition: Condition) -> Condition:
    """Return a condition in a form that keeps a query planner from choosing an index for it."""
    return func.coalesce(condition, false())


def _restricted(restrictions: Restrictions) -> frozenset[str]:
    names = (*_EQUAL, *_FROM, *_BEFORE, "namespace", "key_prefix")
    given_names = {name for name in names if getattr(restrictions, name) is not None}
    if restrictions.namespace is not None and restrictions.subtree:
        given_names.add("subtree")
    return frozenset(given_names)


def _values(restrictions: Restrictions) -> dict[str, Any]:
    """Return what is bound for the restrictions, the filter apart."""
    names = _restricted(restrictions) - {"subtree"}
    values = {name: getattr(restrictions, name) for name in names}
    for name in values.keys() & {*_BEFORE, "created_after", "updated_after"}:
        values[name] = to_milliseconds(values[name])
    if restrictions.namespace is not None:
        values["namespace"], values["below"], values["beyond"] = subtree_bounds(
            restrictions.namespace
        )
    if restrictions.key_prefix is not None:
        values["prefix_length"] = len(restrictions.key_prefix)
    return values | {f"tag_{place}": tag for place, tag in enumerate(restrictions.tags)}


def _conditions(
    names: frozenset[str], tags: int, value_of: ValueOf, *, first_tag: int = 0
) -> Iterator[Condition]:
    if "namespace" in names:
        exact = value_of("namespace")
        if "subtree" in names:
            yield _subtree(exact, value_of("below"), value_of("beyond"))
        else:
            yield _E.namespace == exact
    yield from (column == value_of(name) for name, column in _EQUAL.items() if name in names)
    yield from (column >= value_of(name) for name, column in _FROM.items() if name in names)
    yield from (column < value_of(name) for name, column in _BEFORE.items() if name in names)
    if "key_prefix" in names:
        yield _E.key >= value_of("key_prefix")
        yield func.substr(_E.key, 1, value_of("prefix_length")) == value_of("key_prefix")
    for place in range(first_tag, tags):
        one = entry_tags.alias().c
        bears = and_(one.tenant == value_of("tenant"), one.tag == value_of(f"tag_{place}"))
        yield select(one.entry).where(bears, one.entry == _E.number).exists()


def _subtree(exact: Any, low: Any, high: Any) -> Condition:
    """Return the condition of a subtree, as one range of an index that holds little else."""
    inside = or_(_E.namespace == exact, _E.namespace >= low)
    return and_(_E.namespace >= exact, _E.namespace < high, inside)


def _filter(restrictions: Restrictions, fields: Fields) -> Condition:
    if restrictions.filter is None:
        return true()
    return _made(_Written(restrictions.filter), fields)


class _Written:
    """A filter, equal to another that is written alike; operands may be lists."""

    __slots__ = ("filter", "text")

    def __init__(self, asked: Filter) -> None:
        self.filter = asked
        self.text = repr(asked)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Written) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


@lru_cache(MOST_STATEMENTS)
def _made(written: _Written, fields: Fields) -> Condition:
    return sql_filter(written.filter, _E.metadata, fields=fields)


def _turn_condition(names: frozenset[str]) -> Condition:
    conditions: list[Condition] = [_S.thread.is_not(None)]
    if "threads" in names:
        conditions.append(_S.thread.in_(given_numbers("threads")))
    if "unseen" in names:
        is_elsewhere = _S.thread != bindparam("unseen_thread")
        conditions.append(or_(is_elsewhere, _S.seq < bindparam("unseen_seq")))
    return and_(*conditions)
