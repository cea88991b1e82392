"""Restrictions and scopes as SQL conditions. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Select, and_, false, func, or_, select, true

from hiermem_core.backends.sql_filters import sql_filter
from hiermem_core.models.moments import to_milliseconds
from hiermem_core.models.namespaces import subtree_bounds
from hiermem_core.storage.tables import entry_tags, memory_entries, searchable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from sqlalchemy import ColumnElement

    from hiermem_core.backends.restrictions import Restrictions, Scope

    Condition = ColumnElement[bool]

_E = memory_entries.c
_S = searchable.c


def living(now: datetime) -> Condition:
    """Return the condition that an entry has not expired."""
    return or_(_E.expires_at.is_(None), _E.expires_at > to_milliseconds(now))


def within(restrictions: Restrictions, tenant: str, *, fields: frozenset[str]) -> Condition:
    """Return the condition that an entry of `tenant` is within the restrictions.

    Args:
        fields: Metadata fields that have an index.
    """
    return and_(true(), *_conditions(restrictions, tenant, fields))


def _conditions(
    restrictions: Restrictions, tenant: str, fields: frozenset[str]
) -> Iterator[Condition]:
    if restrictions.namespace is not None:
        yield in_namespace(restrictions.namespace, subtree=restrictions.subtree)
    equal = {
        _E.type: restrictions.type,
        _E.key: restrictions.key,
        _E.source: restrictions.source,
        _E.user_id: restrictions.user_id,
    }
    yield from (column == value for column, value in equal.items() if value is not None)
    if restrictions.key_prefix is not None:
        prefix = restrictions.key_prefix
        yield _E.key >= prefix
        yield func.substr(_E.key, 1, len(prefix)) == prefix
    for tag in restrictions.tags:
        bears = select(entry_tags.c.entry).where(
            entry_tags.c.tenant == tenant, entry_tags.c.tag == tag
        )
        yield _E.number.in_(bears)
    if restrictions.min_trust is not None:
        yield _E.trust >= restrictions.min_trust
    yield from _times(restrictions)
    if restrictions.filter is not None:
        yield sql_filter(restrictions.filter, _E.metadata, indexed=fields)


def _times(restrictions: Restrictions) -> Iterator[Condition]:
    if restrictions.created_after is not None:
        yield _E.created_at >= to_milliseconds(restrictions.created_after)
    if restrictions.created_before is not None:
        yield _E.created_at < to_milliseconds(restrictions.created_before)
    if restrictions.updated_after is not None:
        yield _E.updated_at >= to_milliseconds(restrictions.updated_after)
    if restrictions.updated_before is not None:
        yield _E.updated_at < to_milliseconds(restrictions.updated_before)


def in_namespace(namespace: str, *, subtree: bool) -> Condition:
    """Return the condition that an entry is in a namespace, or with `subtree` below it."""
    exact, low, high = subtree_bounds(namespace)
    itself = _E.namespace == exact
    below = and_(_E.namespace >= low, _E.namespace < high)
    return or_(itself, below) if subtree else itself


def entry_numbers(scope: Scope, *, fields: frozenset[str]) -> Select[tuple[int]]:
    """Return the query of the row numbers of the entries in a scope."""
    if scope.entries is None:
        return select(_E.number).where(false())
    return select(_E.number).where(
        _E.tenant == scope.tenant,
        living(scope.now),
        within(scope.entries, scope.tenant, fields=fields),
    )


def turn_numbers(scope: Scope) -> Select[tuple[int]]:
    """Return the query of the row numbers of the turns in a scope."""
    return select(_S.number).where(_S.tenant == scope.tenant, _turn_condition(scope))


def in_scope(scope: Scope, *, fields: frozenset[str]) -> Condition:
    """Return the condition on `searchable`, outer-joined with `memory_entries`.

    For rows that are looked up by number: no index is used for it.
    """
    either: list[Condition] = []
    if scope.entries is not None:
        restricted = within(scope.entries, scope.tenant, fields=fields)
        either.append(and_(_E.number.is_not(None), living(scope.now), restricted))
    if scope.has_turns:
        either.append(_turn_condition(scope))
    return and_(_unindexed(_S.tenant) == scope.tenant, or_(false(), *either))


def _unindexed(column: ColumnElement[str]) -> ColumnElement[str]:
    """Return a text column in a form that keeps a query planner from choosing its index."""
    return column.concat("")


def _turn_condition(scope: Scope) -> Condition:
    conditions: list[Condition] = [_S.thread.is_not(None)]
    if scope.threads is not None:
        conditions.append(_S.thread.in_(scope.threads))
    if scope.unseen_before is not None:
        thread, seq = scope.unseen_before
        conditions.append(or_(_S.thread != thread, _S.seq < seq))
    return and_(*conditions)
