"""The statements that find living entries by what names them, made once.

Making a statement costs several times what running it does. Bound are `tenant`, `now_ms`, the
`embedder` whose vectors count, and what names the entries as `names`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, literal_column, or_, select, tuple_

from hiermem_core.backends.sql_rows import COLUMNS
from hiermem_core.storage.given import given_numbers, given_pairs, given_texts
from hiermem_core.storage.tables import memory_entries, vectors

if TYPE_CHECKING:
    from sqlalchemy import BindParameter, ColumnElement, Select

_E, _V = memory_entries.c, vectors.c
_TENANT: BindParameter[str] = bindparam("tenant")
_NOW_MS: BindParameter[int] = bindparam("now_ms")

_has_vector = (
    select(literal_column("1"))
    .where(_V.row == _E.number, _V.embedder == bindparam("embedder"))
    .exists()
)


def _kept(*conditions: ColumnElement[bool]) -> Select[Any]:
    """Return the query of `COLUMNS` and whether the entry has a vector."""
    is_living = or_(_E.expires_at.is_(None), _E.expires_at > _NOW_MS)
    return select(*COLUMNS, _has_vector).where(is_living, *conditions)


_is_ours = _E.tenant == _TENANT
_is_ours_by_number = _E.tenant.concat("") == _TENANT  # no index is better than the number

KEPT_BY_ID = _kept(_is_ours, _E.id.in_(given_texts("names")))
KEPT_BY_KEY = _kept(
    _is_ours, _E.key.is_not(None), tuple_(_E.namespace, _E.key).in_(given_pairs("names"))
)
KEPT_BY_NUMBER = _kept(_is_ours_by_number, _E.number.in_(given_numbers("names")))
KEPT_BY_DIGEST = (
    _kept(_is_ours, _E.digest.is_not(None), _E.digest.in_(given_texts("names")))
    .add_columns(_E.digest)
    .order_by(_E.number)
)

EXPIRED = (
    select(_E.number)
    .where(_is_ours, _E.expires_at <= _NOW_MS)
    .order_by(_E.expires_at)
    .limit(bindparam("limit"))
)
"""Numbers of entries that expired and are not purged."""
