"""Words that stand in many rows of a tenant: looking them up costs much and tells little."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import bindparam, func, select

from hiermem_core.backends.keywords import rows_with
from hiermem_core.storage.tables import searchable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

_S = searchable.c
_is_ours = _S.tenant == bindparam("tenant")
_LAST = select(func.max(_S.number)).where(_is_ours)
_LAST_OF_ALL = select(func.max(_S.number))
_COUNT = select(func.count()).select_from(searchable).where(_is_ours)

LEAST_ROWS = 20_000
"""With fewer rows every word is looked up: that takes a few milliseconds at most."""

SHARE = 0.05
_STILL = 0.75
_MOST_KNOWN = 10_000


class CommonWords:
    """Leave the words out of a keyword search that stand in more than a share of the rows.

    At 1,000,000 rows a search for them took 0.7 to 1 second, and without them 32 milliseconds.
    What was counted is kept until the rows are a third more or fewer.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], tuple[int, bool]] = {}
        self._rows: dict[str, tuple[int, int]] = {}

    def without(
        self, connection: Connection, tenant: str, number: int, words: Sequence[str]
    ) -> Sequence[str]:
        """Return the words that tell rows apart; all of them where none does, or rows are few.

        Args:
            number: Of the tenant.
        """
        if len(words) < 2:  # noqa: PLR2004 - one word is all there is to look up
            return words
        rows = self.rows(connection, tenant)
        if rows < LEAST_ROWS:
            return words
        telling = [word for word in words if not self._is_common(connection, number, word, rows)]
        return telling or words

    def rows(self, connection: Connection, tenant: str) -> int:
        """Return about how many rows a tenant has; counted anew when it has grown by an eighth."""
        last = connection.execute(_LAST, {"tenant": tenant}).scalar() or 0
        rows, at = self._rows.get(tenant, (0, 0))
        if not at or not 0 <= last - at <= rows // 8:
            rows = connection.execute(_COUNT, {"tenant": tenant}).scalar_one()
            if len(self._rows) >= _MOST_KNOWN:
                self._rows.clear()
            self._rows[tenant] = (rows, last)
        return rows

    def is_most(self, connection: Connection, tenant: str) -> bool:
        """Tell whether most of the location's rows are the tenant's."""
        last = connection.execute(_LAST_OF_ALL).scalar() or 0
        return 2 * self.rows(connection, tenant) > last

    def _is_common(self, connection: Connection, number: int, word: str, rows: int) -> bool:
        known = self._known.get((number, word))
        if known is not None and _STILL * rows <= known[0] <= rows / _STILL:
            return known[1]
        most = round(SHARE * rows)
        is_common = rows_with(connection, number, word, limit=most + 1) > most
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[number, word] = (rows, is_common)
        return is_common
