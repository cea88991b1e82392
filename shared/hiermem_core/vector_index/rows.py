"""The outbox of the vector index, and the vectors it is fed from: one statement a function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from sqlalchemy import (
    ColumnElement,
    Delete,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal,
    select,
    update,
)

from hiermem_core.storage.database import slices
from hiermem_core.storage.tables import outbox, tenants, vectors
from hiermem_core.vector_index.retrying import MOST_ATTEMPTS, Retry

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray
    from sqlalchemy import Connection

    from hiermem_core.storage.database import Database

Change = Literal["add", "remove"]

CHANGES: tuple[Change, Change] = ("add", "remove")

_O, _V, _T = outbox.c, vectors.c, tenants.c
_OURS = _O.change.in_(CHANGES)

_EVER = 2**62
_of_change = _O.change == bindparam("change")
_of_tenant = _O.tenant == bindparam("of")
_is_open = and_(_of_change, _O.attempts < MOST_ATTEMPTS, _O.due_at <= bindparam("now_ms"))
_WHOSE = select(_O.tenant).where(_is_open).limit(1)
_WHETHER = select(_O.tenant).where(_is_open, _of_tenant).limit(1)
_BATCH = (
    select(_O.number, _O.attempts)
    .where(_is_open, _of_tenant)
    .order_by(_O.number)
    .limit(bindparam("limit"))
)
_PENDING = select(_O.number).where(_of_tenant, _of_change).limit(bindparam("limit"))
_HAS_ANY = (
    "SELECT EXISTS (SELECT 1 FROM outbox)"
    " OR EXISTS (SELECT 1 FROM tenants WHERE tenant = ? AND is_indexed)"
)
_IS_INDEXED = select(_T.is_indexed).where(_T.tenant == bindparam("of"))


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes of one kind in one tenant's collection; `attempts` are the failed ones so far."""

    tenant: str
    change: Change
    numbers: tuple[int, ...]
    attempts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A change that is not tried again by itself.

    Attributes:
        number: Of the vector.
        error: The name of the error's type.
    """

    change: Change
    number: int
    attempts: int
    error: str


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vectors of one length, and the numbers of those whose length is another."""

    numbers: NDArray[np.int64]
    matrix: NDArray[np.float32]
    misfits: tuple[int, ...] = ()


def is_idle(database: Database, tenant: str) -> bool:
    """Tell, at the cost of microseconds, whether no change waits and no index is the tenant's."""
    return not database.fact(_HAS_ANY, (tenant,))


def is_indexed(connection: Connection, tenant: str) -> bool:
    """Tell whether a tenant's vectors are kept in the index."""
    return bool(connection.execute(_IS_INDEXED, {"of": tenant}).scalar())


def indexed_tenants(connection: Connection) -> list[str]:
    """Return the tenants whose vectors are kept in the index."""
    query = select(_T.tenant).where(_T.is_indexed).order_by(_T.number)
    return list(connection.execute(query).scalars())


def unmark(connection: Connection, tenant: str) -> None:
    """Keep a tenant's vectors out of the index, and forget its changes."""
    connection.execute(update(tenants).where(_T.tenant == tenant).values(is_indexed=False))
    connection.execute(delete(outbox).where(_O.tenant == tenant, _OURS))


def mark(connection: Connection, tenant: str, embedder: str) -> bool:
    """Have a tenant's vectors kept in the index from now on; queue them all.

    Returns:
        Whether the tenant is known, so that this has an effect.
    """
    marked = connection.execute(update(tenants).where(_T.tenant == tenant).values(is_indexed=True))
    if not marked.rowcount:
        return False
    is_queued = and_(_O.change == "add", _O.number == _V.number)
    every = select(literal("add"), _V.number, _V.tenant).where(
        _V.tenant == tenant, _V.embedder == embedder, ~select(_O.number).where(is_queued).exists()
    )
    connection.execute(insert(outbox).from_select(["change", "number", "tenant"], every))
    return True


def queue_anew(connection: Connection, embedder: str) -> None:
    """Queue the vectors of an embedder, for every tenant in the index, in place of all changes."""
    connection.execute(delete(outbox).where(_OURS))
    is_kept = _V.tenant.in_(select(_T.tenant).where(_T.is_indexed))
    every = select(literal("add"), _V.number, _V.tenant).where(_V.embedder == embedder, is_kept)
    connection.execute(insert(outbox).from_select(["change", "number", "tenant"], every))


def count_vectors(
    connection: Connection, tenant: str, embedder: str, *, limit: int | None = None
) -> int:
    """Return how many vectors a tenant has; counts no further than `limit`."""
    some = select(_V.number).where(_V.tenant == tenant, _V.embedder == embedder).limit(limit)
    query = select(func.count()).select_from(some.subquery())
    return connection.execute(query).scalar_one()


def queue(connection: Connection, tenant: str, change: Change, numbers: Iterable[int]) -> None:
    """Queue changes that are not queued yet; those that failed are tried anew."""
    for some in slices(list(numbers)):
        connection.execute(_of(change, some))
        rows = [{"change": change, "number": number, "tenant": tenant} for number in some]
        connection.execute(insert(outbox), rows)


def settle(connection: Connection, change: Change, numbers: Iterable[int]) -> None:
    """Forget changes that were made."""
    for some in slices(list(numbers)):
        connection.execute(_of(change, some))


def postpone(connection: Connection, change: Change, number: int, retry: Retry, error: str) -> None:
    """Keep a failed change until its next attempt."""
    values = {"attempts": retry.attempts, "due_at": retry.due_at, "error": error}
    connection.execute(update(outbox).where(_of_one(change, number)).values(values))


def fail(connection: Connection, tenant: str, number: int, error: str) -> None:
    """Record that a vector cannot be added."""
    queue(connection, tenant, "add", [number])
    postpone(connection, "add", number, Retry(MOST_ATTEMPTS, 0), error)


def retry_failed(connection: Connection, tenant: str) -> None:
    """Have a tenant's failed changes tried anew."""
    values = {"attempts": 0, "due_at": 0, "error": None}
    ours = (_O.tenant == tenant, _OURS, _O.attempts > 0)
    connection.execute(update(outbox).where(*ours).values(values))


def next_batch(
    connection: Connection, *, tenant: str | None, now_ms: int | None, limit: int
) -> Batch | None:
    """Return changes to make now, of one tenant and kind, oldest vector first.

    Args:
        tenant: Only its changes.
        now_ms: Only those that are due by then; `None`: those of later, too.
    """
    facts = {"now_ms": _EVER if now_ms is None else now_ms, "of": tenant}
    for change in CHANGES:
        facts["change"] = change
        query = _WHOSE if tenant is None else _WHETHER
        whose = connection.execute(query, facts).scalar()
        if whose is None:
            continue
        rows = connection.execute(_BATCH, facts | {"of": whose, "limit": limit}).all()
        numbers, attempts = zip(*rows, strict=True)
        return Batch(whose, change, numbers, attempts)
    return None


def has_work(connection: Connection, *, now_ms: int | None, tenant: str | None = None) -> bool:
    """Tell whether there is a change to make now."""
    return next_batch(connection, tenant=tenant, now_ms=now_ms, limit=1) is not None


def counts(connection: Connection, tenant: str | None = None) -> tuple[int, int]:
    """Return how many changes wait, and how many failed."""
    ours = [_OURS] if tenant is None else [_OURS, _O.tenant == tenant]
    is_failed = _O.attempts >= MOST_ATTEMPTS
    query = select(is_failed, func.count()).where(*ours).group_by(is_failed)
    found = {bool(failed): count for failed, count in connection.execute(query)}
    return found.get(False, 0), found.get(True, 0)


def waits(connection: Connection, tenant: str) -> bool:
    """Tell whether a change of a tenant is to be made, now or later."""
    return has_work(connection, now_ms=None, tenant=tenant)


def pending(
    connection: Connection, tenant: str, change: Change, *, limit: int | None = None
) -> NDArray[np.int64]:
    """Return the numbers whose change is not made yet, failed ones among them."""
    facts = {"of": tenant, "change": change, "limit": _EVER if limit is None else limit}
    return _array(connection.execute(_PENDING, facts).scalars())


def count_pending(connection: Connection, tenant: str, change: Change) -> int:
    """Return how many changes of a kind are not made yet, failed ones among them."""
    query = select(func.count()).where(_O.tenant == tenant, _O.change == change)
    return connection.execute(query).scalar_one()


def failures(connection: Connection, tenant: str) -> list[Failure]:
    """Return a tenant's failed changes."""
    query = select(_O.change, _O.number, _O.attempts, _O.error).where(
        _O.tenant == tenant, _OURS, _O.attempts >= MOST_ATTEMPTS
    )
    rows = connection.execute(query.order_by(_O.number)).all()
    return [Failure(change, number, tries, error or "") for change, number, tries, error in rows]


def living(connection: Connection, tenant: str, embedder: str) -> NDArray[np.int64]:
    """Return the numbers of a tenant's vectors, ascending."""
    query = select(_V.number).where(_V.tenant == tenant, _V.embedder == embedder)
    return _array(connection.execute(query.order_by(_V.number)).scalars())


def vectors_of(connection: Connection, embedder: str, numbers: Sequence[int]) -> Vectors:
    """Return those of these vectors that are there and by this embedder."""
    rows: list[tuple[int, bytes]] = []
    for some in slices(list(numbers)):
        query = select(_V.number, _V.embedding).where(_V.number.in_(some), _V.embedder == embedder)
        rows += ((number, blob) for number, blob in connection.execute(query))
    return _vectors(rows)


def vectors_after(
    connection: Connection, tenant: str, embedder: str, number: int, limit: int
) -> Vectors:
    """Return a page of a tenant's vectors, those after a number."""
    query = (
        select(_V.number, _V.embedding)
        .where(_V.tenant == tenant, _V.embedder == embedder, _V.number > number)
        .order_by(_V.number)
        .limit(limit)
    )
    return _vectors([(number, blob) for number, blob in connection.execute(query)])


def still_there(connection: Connection, numbers: Sequence[int]) -> list[int]:
    """Return those of these vectors that are not removed."""
    found: list[int] = []
    for some in slices(numbers):
        found += connection.execute(select(_V.number).where(_V.number.in_(some))).scalars()
    return found


def samples(
    connection: Connection, embedder: str, numbers: Sequence[int]
) -> list[tuple[int, bytes]]:
    """Return those of these vectors that have a direction, as they are stored."""
    query = select(_V.number, _V.embedding).where(
        _V.number.in_(numbers), _V.embedder == embedder, _V.norm > 0
    )
    return [(number, blob) for number, blob in connection.execute(query)]


def _vectors(rows: list[tuple[int, bytes]]) -> Vectors:
    if not rows:
        return Vectors(np.empty(0, np.int64), np.empty((0, 0), np.float32))
    length = len(rows[0][1])
    fitting = [row for row in rows if len(row[1]) == length]
    matrix = np.frombuffer(b"".join(blob for _, blob in fitting), dtype="<f4")
    return Vectors(
        _array(number for number, _ in fitting),
        matrix.reshape(len(fitting), -1).astype(np.float32, copy=False),
        tuple(number for number, blob in rows if len(blob) != length),
    )


def _array(numbers: Iterable[int]) -> NDArray[np.int64]:
    return np.fromiter(numbers, dtype=np.int64)


def _of(change: Change, numbers: Sequence[int]) -> Delete:
    return delete(outbox).where(_O.change == change, _O.number.in_(numbers))


def _of_one(change: Change, number: int) -> ColumnElement[bool]:
    return and_(_O.change == change, _O.number == number)
