"""Looking after the vectors of entries in memory: which are missing, and which count."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hiermem_core.backends.records import embedded_text
from hiermem_core.vector_index.retrying import Retry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager

    from hiermem_core.backends.in_memory import InMemoryBackend
    from hiermem_core.backends.records import MadeVector, Text


class InMemoryMending:
    """Count and mend what is not as it should be in an `InMemoryBackend`."""

    def __init__(self, backend: InMemoryBackend) -> None:
        self._backend = backend

    def alone(self) -> AbstractContextManager[object]:
        """Keep everybody else from what is kept, for as long as the block runs."""
        return self._backend.locked()

    def tenants(self) -> list[str]:
        """Return every tenant that has rows."""
        with self._backend.locked() as stores:
            return sorted(tenant for tenant, store in stores.items() if store.rows)

    def lacking(self, tenant: str) -> int:
        """Return how many rows have no vector and do not wait for one."""
        with self._backend.locked() as stores:
            return sum(map(_is_lacking, stores[tenant].rows.values())) if tenant in stores else 0

    def await_lacking(self, tenant: str) -> None:
        """Have every row without a vector wait for one."""
        self._change(tenant, _is_lacking)

    def retry(self, tenant: str) -> None:
        """Have rows that failed wait as if they had not."""
        self._change(tenant, lambda row: row.retry is not None)

    def failures(self, tenant: str) -> list[tuple[str, str]]:
        """Return the ids of rows that failed for good, with their error's type."""
        with self._backend.locked() as stores:
            rows = stores[tenant].rows.values() if tenant in stores else ()
            return [(row.entry.id, row.error) for row in rows if _has_failed(row)]

    def waiting(self, tenants: Iterable[str]) -> tuple[int, int, int]:
        """Return how many rows wait, how many of them have failed, and how many failed for good."""
        with self._backend.locked() as stores:
            known = [stores[tenant] for tenant in tenants if tenant in stores]
            retries = [row.retry for store in known for row in store.rows.values() if row.retry]
        failed = sum(retry.is_failed for retry in retries)
        failing = sum(retry.attempts > 0 and not retry.is_failed for retry in retries)
        return len(retries) - failed, failing, failed

    def texts(self) -> dict[int, Text]:
        """Return what is embedded of every row of which anything is."""
        with self._backend.locked() as stores:
            return {
                number: text
                for store in stores.values()
                for number, row in store.rows.items()
                if (text := embedded_text(row.entry))
            }

    def counts(self) -> tuple[int, int]:
        """Return how many rows have a vector, and how many rows there are."""
        with self._backend.locked() as stores:
            every = [row for store in stores.values() for row in store.rows.values()]
            rows = [row for row in every if embedded_text(row.entry)]
        return sum(row.vector is not None for row in rows), len(rows)

    def take_over(self, name: str, made: Mapping[int, tuple[Text, MadeVector]]) -> None:
        """Have vectors of another name count: a row whose text is another by now waits for its own.

        Args:
            made: The text and its vector, by row.
        """
        with self._backend.locked(counting=name) as stores:
            for store in stores.values():
                for number, row in store.rows.items():
                    text, vector = made.get(number, ("", None))
                    is_made = vector is not None and text == embedded_text(row.entry)
                    is_done = is_made or not embedded_text(row.entry)
                    store.rows[number] = replace(
                        row,
                        vector=vector if is_made else None,
                        retry=None if is_done else Retry(0, 0),
                    )
                store.generation += 1

    def _change(self, tenant: str, concerns: Callable[[Any], bool]) -> None:
        with self._backend.locked() as stores:
            rows = stores[tenant].rows if tenant in stores else {}
            rows.update(
                {n: replace(row, retry=Retry(0, 0)) for n, row in rows.items() if concerns(row)}
            )


def _is_lacking(row: Any) -> bool:
    return row.vector is None and row.retry is None and bool(embedded_text(row.entry))


def _has_failed(row: Any) -> bool:
    return row.retry is not None and row.retry.is_failed
