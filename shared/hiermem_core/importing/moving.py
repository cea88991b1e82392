"""Moving memories from one location to another, between engines too."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from io import RawIOBase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from sqlalchemy import select, union

from hiermem_core.errors import BackendError, ConfigurationError, ConflictError
from hiermem_core.exporting.report import AT_HAND, told
from hiermem_core.hiermem import HierMem
from hiermem_core.models.ids import check_name
from hiermem_core.models.plain import dump_json, load_json
from hiermem_core.storage import tables
from hiermem_core.storage.location import resolve

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from hiermem_core.exporting.report import ExportReport
    from hiermem_core.protocols import Codec
    from hiermem_core.tenant import Tenant

_ATTEMPTS = 2
"""An entry may expire on the way; then both ends are looked at once more."""

_OF_ITS_PLACE = ("sum", "tokens")
"""What a line of an export has that two ends need not share."""


@dataclass(frozen=True, slots=True)
class MovedTenant:
    """A tenant whose things are the same at both ends.

    Attributes:
        checksum: SHA-256 of them, computed at both ends.
        was_there: Nothing had to be moved any more.
        unreadable: Turns that stay behind, as their stored form is damaged: thread and seq.
    """

    tenant: str
    entries: int
    threads: int
    turns: int
    vectors: int
    checksum: str
    was_there: bool
    unreadable: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        """Say it in one line, after one for each turn that stays behind."""
        lost = [f"  {thread}: turn {seq} is damaged; left out" for thread, seq in self.unreadable]
        names = ("entries", "threads", "turns", "vectors")
        counts = told({name: getattr(self, name) for name in names})
        how = "was there already, verified" if self.was_there else "moved, verified"
        return "\n".join([*lost, f"tenant {self.tenant}: {counts}; {how}"])


@dataclass(frozen=True, slots=True)
class MoveReport:
    """What was moved. The source is as it was."""

    source: str
    target: str
    tenants: tuple[MovedTenant, ...]

    @property
    def exit_code(self) -> int:
        """0, or 1 where turns stay behind, or 3 where there was nothing to move."""
        if not self.tenants:
            return 3
        return 1 if any(one.unreadable for one in self.tenants) else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Say it, a line a tenant."""
        ends = f"{self.source} -> {self.target}"
        return "\n".join([*map(str, self.tenants), f"{ends}: {len(self.tenants)} tenants"])


def move_memories(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    tenant: str | None = None,
    source_codec: Codec | None = None,
    target_codec: Codec | None = None,
    progress: Callable[[float], None] | None = None,
) -> MoveReport:
    """Bring all that a location holds to another one, and verify that it is the same at both.

    Entries, threads with archived turns, notes, vectors: whatever an export holds. Never calls an
    embedder or a chat model. The source stays as it is; write to neither end meanwhile. Cut off at
    any moment, it goes on where it was when it is repeated.

    Args:
        tenant: Only this one; default: all.
        source_codec: What the source was made with; default: as the settings say.
        target_codec: Encodes what the target holds, from its creation on; default: as the settings
            say.
        progress: Told what share is done, from 0 to 1.

    Raises:
        ConfigurationError: Nothing is stored at the source, or both are one.
        ConflictError: The target holds other things of a tenant. They are as they were.
        BackendError: A storage fails, or what arrived is not what was sent.
    """
    if resolve(source) == resolve(target):
        raise ConfigurationError("target", "is the source; name another location")
    with (
        HierMem.open(source, create=False, codec=source_codec, local_embedder=False) as here,
        HierMem.open(target, codec=target_codec, local_embedder=False) as there,
    ):
        names = _tenants_of(here) if tenant is None else [check_name("tenant", tenant)]
        moved = []
        for place, name in enumerate(names):

            def step(done: int, total: int, *, place: int = place) -> None:
                if progress is not None:
                    progress((place + done / max(total, 1)) / len(names))

            one = _move(here.tenant(name), there.tenant(name), step)
            moved += [] if one is None else [one]
        if progress is not None:
            progress(1.0)
        return MoveReport(here.location, there.location, tuple(moved))


def _tenants_of(hiermem: HierMem) -> list[str]:
    """Return the tenants that any table speaks of, in order."""
    columns = [table.c.tenant for table in tables.schema.sorted_tables if "tenant" in table.c]
    with hiermem._services.database.read() as connection:  # noqa: SLF001 - of this package
        return sorted(connection.execute(union(*map(select, columns))).scalars())


def _move(here: Tenant, there: Tenant, step: Callable[[int, int], None]) -> MovedTenant | None:
    """Bring a tenant's things over; `None`: there are none."""
    for _ in range(_ATTEMPTS):
        with TemporaryDirectory(prefix="hiermem-move-") as folder:
            file = Path(folder) / "export.jsonl"
            sent = here.export(file, vectors=True)
            if not sent.entries + sent.threads:
                return None
            with file.open("rb") as written:
                expected = _Fingerprint.of(written)
            arrived, found = _looked_at(there)
            if found == expected:
                return _moved(sent, expected, was_there=True)
            _check_free(there, file, arrived)
            there.import_export(file, progress=step)
        arrived, found = _looked_at(there)
        if found == expected:
            return _moved(sent, expected, was_there=False)
    reason = (
        f"what arrived of tenant {here.name} differs from what was sent"
        f" ({arrived} there, {sent} here); the source is as it was. Have nobody write meanwhile,"
        " use a target whose vectors are by the same embedder, and repeat it"
    )
    raise BackendError("moving", reason)


def _check_free(there: Tenant, file: Path, held: ExportReport) -> None:
    """Raise where a target has of a tenant what is not in an export.

    Raises:
        ConflictError: It has.
    """
    report = there.import_export(file, dry_run=True)
    at_hand = report.reasons.get(AT_HAND, 0)
    if report.reasons.get("conflict", 0) or at_hand < held.entries + held.turns:
        text = (
            f"tenant {there.name} has other things at {there.location}; nothing of it was moved,"
            " forget them there or move to another location"
        )
        raise ConflictError(text)


def _looked_at(tenant: Tenant) -> tuple[ExportReport, str]:
    """Return what a tenant has, and its checksum."""
    fingerprint = _Fingerprint()
    report = tenant.export(cast("BinaryIO", fingerprint), vectors=True)
    return report, fingerprint.checksum


def _moved(sent: ExportReport, checksum: str, *, was_there: bool) -> MovedTenant:
    return MovedTenant(
        tenant=sent.tenant,
        entries=sent.entries,
        threads=sent.threads,
        turns=sent.turns,
        vectors=sent.vectors,
        checksum=checksum,
        was_there=was_there,
        unreadable=sent.unreadable,
    )


@dataclass
class _Fingerprint(RawIOBase):
    """The digest of an export that is written to it, a line at a time.

    Its first line and its last, what seals it, and token counts, which each end adds its own to,
    are left out.
    """

    _digest: Any = field(default_factory=hashlib.sha256)

    @classmethod
    def of(cls, lines: BinaryIO) -> str:
        """Return the checksum of an export."""
        fingerprint = cls()
        for line in lines:
            fingerprint.write(line)
        return fingerprint.checksum

    @property
    def checksum(self) -> str:
        """SHA-256, in hexadecimal."""
        return str(self._digest.hexdigest())

    def write(self, line: Any, /) -> int:
        """Take a line."""
        form = load_json(bytes(line).decode())
        if form["kind"] not in {"header", "end"}:
            kept = {name: value for name, value in form.items() if name not in _OF_ITS_PLACE}
            self._digest.update(dump_json(kept).encode() + b"\n")
        return len(line)
