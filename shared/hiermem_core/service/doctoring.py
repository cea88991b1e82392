"""Finding where rows, keyword rows and vectors disagree, and making them agree."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hiermem_core.errors import IndexUnavailableError
from hiermem_core.models.results import DoctorReport, FailedRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hiermem_core.service.upkeep import Upkeep

_MOST_FAILURES = 1000


class Doctoring:
    """Look after one HierMem. Each repair is a transaction of a bounded number of rows."""

    def __init__(self, upkeep: Upkeep) -> None:
        self._parts = upkeep

    def run(self, *, repair: bool = False, tenant: str | None = None) -> DoctorReport:
        """Report, and with `repair` mend; see `HierMem.doctor`."""
        found = self._look(tenant)
        if not repair or (found.is_sound and not found.pending and found.unchecked is None):
            return found
        trouble = self._mend(tenant)
        after = self._look(tenant)
        is_mended = after.is_sound and after.unchecked is None and trouble is None
        return replace(found, repaired=is_mended, unchecked=trouble or after.unchecked)

    def _look(self, tenant: str | None) -> DoctorReport:
        report = DoctorReport()
        for name in self._named(tenant):
            report = self._with_rows(report, name)
            report = self._with_index(report, name)
        unlisted = report.unlisted + self._parts.listing.count(tenant)
        if tenant is None:
            unlisted += self._parts.rows.stray_keywords()
        return replace(report, unlisted=unlisted, failures=report.failures[:_MOST_FAILURES])

    def _named(self, tenant: str | None) -> Sequence[str]:
        return self._parts.tenants() if tenant is None else [tenant]

    def _with_rows(self, report: DoctorReport, tenant: str) -> DoctorReport:
        parts, rows = self._parts, self._parts.rows
        missing = report.missing
        if parts.vectoriser.awaits:
            missing += sum(keeper.lacking(tenant) for keeper in parts.keepers)
        counts = [backend.vector_counts(tenant) for backend in parts.backends]
        failures = parts.waiting.failures(tenant)
        if parts.memory is not None:
            failures = [*failures, *parts.memory.failures(tenant)]
        by_thread = sum(count for _, count in rows.unlisted_threads(tenant))
        return replace(
            report,
            missing=missing,
            stale=report.stale + rows.stale(tenant),
            orphans=report.orphans + rows.orphans(tenant),
            pending=report.pending + sum(one.waiting for one in counts),
            failed=report.failed + sum(one.failed for one in counts),
            unlisted=report.unlisted + rows.unlisted(tenant) + by_thread,
            failures=(*report.failures, *(FailedRow(tenant, *failure) for failure in failures)),
        )

    def _with_index(self, report: DoctorReport, tenant: str) -> DoctorReport:
        indexer = self._parts.indexer
        with self._parts.database.read() as connection:
            failures = indexer.failures(connection, tenant) if indexer.is_on else []
        names = self._parts.waiting.names_of([failure.number for failure in failures])
        report = replace(
            report,
            failures=(
                *report.failures,
                *(FailedRow(tenant, names.get(one.number, ""), one.error) for one in failures),
            ),
        )
        try:
            check = indexer.check(tenant)
        except IndexUnavailableError as error:
            return replace(report, unchecked=str(error))
        return replace(
            report,
            missing=report.missing + len(check.missing),
            orphans=report.orphans + len(check.orphans),
        )

    def _mend(self, tenant: str | None) -> str | None:
        """Make everything agree; return what of the vector index could not be mended."""
        trouble = None
        for name in self._named(tenant):
            self._mend_rows(name)
            try:
                self._parts.indexer.repair(name)
            except IndexUnavailableError as error:
                trouble = str(error)
        if tenant is None:
            self._parts.rows.remove_stray_keywords()
        return trouble

    def _mend_rows(self, tenant: str) -> None:
        parts, rows = self._parts, self._parts.rows
        rows.list_entries(tenant)
        for thread, _ in rows.unlisted_threads(tenant):
            with parts.database.write(tenant) as connection:
                parts.listing.relist(connection, thread, tenant)
        rows.remove_orphans(tenant)
        rows.remove_stale(tenant)
        parts.listing.list_all(tenant)
        for keeper in parts.keepers:
            if parts.vectoriser.awaits:
                keeper.await_lacking(tenant)
            keeper.retry(tenant)
        parts.catching_up.embed_all(tenant)
