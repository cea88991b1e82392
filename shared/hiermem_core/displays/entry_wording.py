"""How entries, hits and receipts read, to people. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.displays.printing import printable, table
from hiermem_core.displays.wording import counted, indented, moment_text
from hiermem_core.models.plain import dump_json
from hiermem_core.models.queries import Hit, TurnHit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hiermem_core.models.entries import MemoryEntry
    from hiermem_core.models.results import DoctorReport, ForgetReceipt

_FIGURES = ("missing", "stale", "orphans", "unlisted", "failed", "pending")


def entry_text(entry: MemoryEntry) -> str:
    """Return an entry for reading: a line about it, then its content, indented."""
    return f"{_heading(*_about_entry(entry))}\n{indented(entry.content)}"


def entry_lines(entry: MemoryEntry) -> Iterator[str]:
    """Yield everything about an entry, then its content, indented."""
    facts = {
        "id": entry.id,
        "namespace": entry.namespace,
        "key": entry.key,
        "type": entry.type,
        "tags": ", ".join(entry.tags),
        "metadata": dump_json(dict(entry.metadata)) if entry.metadata else "",
        "source": entry.source,
        "trust": f"{entry.trust:g}",
        "user": entry.user_id,
        "derived from": ", ".join(entry.derived_from),
        "created": moment_text(entry.created_at),
        "updated": moment_text(entry.updated_at),
        "expires": moment_text(entry.expires_at),
        "version": f"{entry.version:,}",
        "stored": f"{counted(entry.times_stored, 'time')}",
    }
    rows = [(name, fact) for name, fact in facts.items() if fact]
    yield table(rows[0], rows[1:]) + "\n"
    yield indented(entry.content)


def hit_text(hit: Hit | TurnHit) -> str:
    """Return a hit for reading: its score, what it is, why it was found if known, its content."""
    lines = [hit_line(hit)]
    if hit.explanation:
        lines.append(printable(f"why: {_why(hit.explanation)}", keep=""))
    return "\n".join([*lines, indented(hit.content)])


def hit_line(hit: Hit | TurnHit) -> str:
    """Return the line about a hit, without its content."""
    facts = _about_turn(hit) if isinstance(hit, TurnHit) else _about_entry(hit)
    return f"{hit.score:.2f}  {_heading(*facts)}"


def receipt_lines(receipt: ForgetReceipt) -> Iterator[str]:
    """Yield what a forget removed, or would remove, and whether it is done."""
    rows = [(name, f"{count:,}") for name, count in receipt.counts.items()]
    yield table(("forgotten" if not receipt.dry_run else "would be forgotten", "count"), rows)
    if receipt.dry_run:
        return
    if receipt.complete:
        yield "complete: nothing of it is left, in no file of the memory"
        return
    failed = ", ".join(f"{name} {error}" for name, error in receipt.failed)
    yield (
        "incomplete: unreadable already, but still in the files"
        + (f" ({failed})" if failed else "")
        + "; repeat the command"
    )


def doctor_lines(report: DoctorReport, *, is_repair: bool) -> Iterator[str]:
    """Yield where rows and vectors disagree, what failed, and the verdict."""
    rows = [(name, f"{getattr(report, name):,}") for name in _FIGURES]
    yield table(("found", "count"), rows) + "\n"
    for failure in report.failures:
        yield printable(f"{failure.tenant_id}: {failure.name}: {failure.error}", keep="")
    if report.unchecked is not None:
        yield f"the vector index was not compared: {report.unchecked}"
    yield _verdict(report, is_repair=is_repair)


def is_well(report: DoctorReport, *, is_repair: bool) -> bool:
    """Tell whether nothing disagrees, or not any more; with a repair, nothing waits either."""
    had_nothing = report.is_sound and not report.pending and report.unchecked is None
    return (report.repaired or had_nothing) if is_repair else report.is_sound


def named_counts(counts: Mapping[str, int], most: int = 10) -> str:
    """Return the largest counts with their names, such as `work 3, home 2`."""
    largest = sorted(counts, key=lambda name: (-counts[name], name))
    listed = [f"{name} {counts[name]:,}" for name in largest[:most]]
    more = [f"and {len(largest) - most:,} more"] if len(largest) > most else []
    return ", ".join([*listed, *more])


def _verdict(report: DoctorReport, *, is_repair: bool) -> str:
    if report.repaired:
        return "repaired: everything agrees"
    if is_well(report, is_repair=is_repair):
        return "sound: everything agrees"
    if is_repair:
        return "not repaired yet; see: hiermem health"
    return "to repair it run: hiermem doctor --repair"


def _about_entry(entry: MemoryEntry) -> Iterator[str]:
    yield entry.namespace
    yield entry.type
    yield entry.source
    yield moment_text(entry.updated_at)
    if entry.key is not None:
        yield f"key {entry.key}"
    if entry.tags:
        yield f"tags {' '.join(entry.tags)}"
    yield entry.id


def _about_turn(hit: TurnHit) -> Iterator[str]:
    yield f"thread {hit.thread_id} #{hit.seq} {hit.role}"
    if hit.author is not None:
        yield hit.author
    yield moment_text(hit.created_at)


def _heading(*facts: str) -> str:
    return printable(", ".join(facts), keep="")


def _why(explanation: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {_fact(fact)}" for name, fact in _told(explanation.items()))


def _told(facts: Iterable[tuple[str, object]]) -> Iterator[tuple[str, object]]:
    return ((name, fact) for name, fact in facts if fact is not None and fact != "")


def _fact(fact: object) -> str:
    return f"{fact:.2f}" if isinstance(fact, float) else str(fact)
