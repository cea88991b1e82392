"""Writing an export: a header, then entries, then threads with their turns, each line sealed."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from hiermem_core.exporting.files import new_file
from hiermem_core.exporting.forms import entry_form, moment_text, thread_form, turn_form
from hiermem_core.exporting.report import ExportReport
from hiermem_core.exporting.rows import entries_of, heads_of, turns_of
from hiermem_core.exporting.sealing import FORMAT, VERSION, Seal
from hiermem_core.models.plain import load_json
from hiermem_core.threads.notes import notes_of
from hiermem_core.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sqlalchemy import Connection

    from hiermem_core.backends.embedders import RecordedEmbedder
    from hiermem_core.backends.in_memory_rows import InMemoryReader
    from hiermem_core.backends.sql_reader import SqlReader
    from hiermem_core.exporting.rows import Exported
    from hiermem_core.protocols import Backend, Clock
    from hiermem_core.storage.database import Database


@dataclass(slots=True)
class _Written:
    entries: int = 0
    threads: int = 0
    turns: int = 0
    archived_turns: int = 0
    vectors: int = 0
    unreadable: list[tuple[str, int]] = field(default_factory=list)

    @property
    def records(self) -> int:
        return self.entries + self.threads + self.turns


class ExportWriter:
    """Write what a tenant has, on one snapshot, in constant memory. Never calls a model."""

    def __init__(
        self, database: Database, backend: Backend, recorded: RecordedEmbedder, *, clock: Clock
    ) -> None:
        self._database = database
        self._backend = backend
        self._recorded = recorded
        self._clock = clock

    def write(
        self,
        tenant: str,
        target: str | os.PathLike[str] | BinaryIO,
        *,
        with_vectors: bool,
        replace: bool,
        progress: Callable[[int], None] | None,
    ) -> ExportReport:
        """Write an export to a file, whole or not at all, or into an open one."""
        self._database.check_open()
        if not isinstance(target, str | os.PathLike):
            return self._write(tenant, target, with_vectors=with_vectors, progress=progress)
        with new_file(Path(target), replace=replace) as (file, kept):
            report = self._write(tenant, file, with_vectors=with_vectors, progress=progress)
        facts = {name: getattr(report, name) for name in report.__dataclass_fields__}
        return ExportReport(**facts | {"kept": kept[0] if kept else None})

    def _write(
        self,
        tenant: str,
        file: BinaryIO,
        *,
        with_vectors: bool,
        progress: Callable[[int], None] | None,
    ) -> ExportReport:
        written, seal, size = _Written(), Seal(), 0
        now = self._clock.now()
        header = {
            "kind": "header",
            "format": FORMAT,
            "version": VERSION,
            "tenant": tenant,
            "written_at": moment_text(now),
            "written_by": f"hiermem-core {__version__}",
        }
        size += file.write(Seal().line_of(header))
        with self._database.read() as connection, self._backend.read(tenant, now) as reader:
            embedder = self._recorded.name(connection) or None if with_vectors else None
            read = cast("SqlReader | InMemoryReader", reader)
            if embedder is not None:
                size += file.write(seal.line_of(self._embedder_form(embedder)))
            for form in chain(
                _entry_forms(entries_of(read, now, embedder), written),
                _thread_forms(connection, tenant, embedder, written),
            ):
                size += file.write(seal.line_of(form))
                if progress is not None:
                    progress(written.records)
        checksum = seal.checksum
        counts = {name: getattr(written, name) for name in ("entries", "threads", "turns")}
        size += file.write(seal.line_of({"kind": "end", **counts, "checksum": checksum}))
        return ExportReport(
            tenant=tenant,
            **counts,
            archived_turns=written.archived_turns,
            vectors=written.vectors,
            unreadable=tuple(written.unreadable),
            checksum=checksum,
            bytes=size,
        )

    def _embedder_form(self, name: str) -> dict[str, Any]:
        identity = self._recorded.identity(name)
        facts = {} if identity is None else load_json(identity.to_json())
        return {"kind": "embedder", **facts}


def _entry_forms(entries: Iterable[Exported], written: _Written) -> Iterator[dict[str, Any]]:
    for entry, merges, vectors in entries:
        written.entries += 1
        written.vectors += vectors is not None
        yield entry_form(entry, vectors, merges=merges)


def _thread_forms(
    connection: Connection, tenant: str, embedder: str | None, written: _Written
) -> Iterator[dict[str, Any]]:
    for head in heads_of(connection, tenant):
        written.threads += 1
        yield thread_form(head, notes_of(connection, head.number))
        for turn, vectors in turns_of(connection, head.number, embedder):
            if turn.unreadable is not None:
                written.unreadable.append((head.thread_id, turn.seq))
                continue
            written.turns += 1
            written.archived_turns += turn.status == "archived"
            written.vectors += vectors is not None
            yield turn_form(turn, vectors)
