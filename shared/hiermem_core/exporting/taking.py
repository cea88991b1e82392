"""Importing an export: checked whole, then stored in batches, exactly as it was."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from hiermem_core.embedding.identity import EmbedderIdentity, agrees
from hiermem_core.errors import (
    BackendError,
    ConflictError,
    EmbedderMismatchError,
    InvalidInputError,
    LimitExceededError,
    QuotaExceededError,
    RedactionError,
)
from hiermem_core.exporting.batches import batches_of
from hiermem_core.exporting.forms import read_entry, read_thread, read_turn
from hiermem_core.exporting.reader import check_export, lines_of
from hiermem_core.exporting.report import QUOTA, ReadItem, Tally
from hiermem_core.exporting.run_forms import read_session, read_step
from hiermem_core.exporting.threads import Stretch
from hiermem_core.models.ids import check_name
from hiermem_core.models.moments import to_milliseconds
from hiermem_core.models.namespaces import format_namespace
from hiermem_core.models.plain import dump_json

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from hiermem_core.backends.vector_rows import VectorRows
    from hiermem_core.exporting.batches import Batch
    from hiermem_core.exporting.entries import EntryTaking, OnConflict
    from hiermem_core.exporting.forms import ReadEntry, ReadThread
    from hiermem_core.exporting.reader import Line
    from hiermem_core.exporting.report import Outcome, ReadReport
    from hiermem_core.exporting.sessions import SessionTaking
    from hiermem_core.exporting.threads import ReadTurn, ThreadTaking
    from hiermem_core.models.redaction import Redaction
    from hiermem_core.models.sessions import Session, Step
    from hiermem_core.protocols import Clock
    from hiermem_core.service.vectorising import Vectoriser
    from hiermem_core.vector_index.indexer import Indexer


@dataclass(frozen=True, slots=True)
class Wish:
    """How an export is to be imported.

    Attributes:
        namespace: Goes before every entry's own.
        thread: Renames the thread of an export that holds one.
    """

    on_conflict: OnConflict = "skip"
    namespace: str | None = None
    thread: str | None = None
    dry_run: bool = False
    batch_size: int = 500


@dataclass(frozen=True, slots=True)
class _Opened:
    """An export that is as it was written, open, and whose it is."""

    file: BinaryIO
    path: Path
    tenant: str


class ExportTaking:
    """Import exports into tenants.

    Args:
        after_write: Told of the tenant after each batch.
    """

    def __init__(
        self,
        entries: EntryTaking,
        threads: ThreadTaking,
        sessions: SessionTaking,
        vectors: VectorRows,
        *,
        vectoriser: Vectoriser,
        indexer: Indexer,
        clock: Clock,
        metadata_limit: int,
        redaction: Redaction,
        after_write: Callable[[str], None],
    ) -> None:
        self._entries = entries
        self._threads = threads
        self.sessions = sessions
        self._vectors = vectors
        self._vectoriser = vectoriser
        self._indexer = indexer
        self._clock = clock
        self._metadata_limit = metadata_limit
        self.redaction = redaction
        self._after_write = after_write

    def take(
        self,
        tenant: str,
        source: str | os.PathLike[str],
        wish: Wish,
        *,
        progress: Callable[[int, int], None] | None,
    ) -> ReadReport:
        """Import an export; see `Tenant.import_export`."""
        path = Path(source)
        _check(wish)
        try:
            with path.open("rb") as file:
                header, end = check_export(file, path.name)
                if wish.thread is not None and end.form.get("threads") != 1:
                    reason = "can be given for an export of one thread only; leave it out"
                    raise InvalidInputError("thread", reason)
                opened = _Opened(file, path, header.form["tenant"])
                if wish.on_conflict == "fail":
                    _check_conflicts(self._run(tenant, opened, replace(wish, dry_run=True)))
                report = self._run(tenant, opened, wish, progress)
        except OSError as error:
            reason = f"{path} cannot be read ({error.strerror}); name a file that can"
            raise InvalidInputError("source", reason) from error
        if not wish.dry_run:
            self._after_write(tenant)
        return report

    def _run(
        self,
        tenant: str,
        source: _Opened,
        wish: Wish,
        progress: Callable[[int, int], None] | None = None,
    ) -> ReadReport:
        total = source.path.stat().st_size
        source.file.seek(0)
        tally = Tally()
        run = _Run(self, tenant, wish, tally)
        for batch in batches_of(lines_of(source.file, source.path.name), size=wish.batch_size):
            run.store(batch)
            if progress is not None:
                progress(source.file.tell(), total)
        return tally.report(str(source.path), source.tenant, dry_run=wish.dry_run)

    def name_for(self, form: dict[str, Any], *, dry_run: bool) -> str | None:
        """Return the name under which an export's vectors are stored; `None`: they do not fit."""
        try:
            identity = EmbedderIdentity.from_json(dump_json(form))
        except BackendError:
            return None
        recorded, vectoriser = self._vectoriser.recorded, self._vectoriser
        try:
            if recorded.name() == "" and vectoriser.embedder is not None and not dry_run:
                vectoriser.check_length(np.ones(identity.dimensions, np.float32))
            elif recorded.name() == "" and not dry_run:
                recorded.record(identity, now_ms=to_milliseconds(self._clock.now()))
                self._indexer.set_embedder(recorded.name())
        except (BackendError, InvalidInputError, EmbedderMismatchError):
            return None
        stored = recorded.identity(recorded.name())
        if stored is None or str(stored) != str(identity):
            return None
        return recorded.name() if agrees(stored, identity.probes) else None

    @property
    def parts(self) -> tuple[EntryTaking, ThreadTaking, VectorRows, int]:
        """What a run works with."""
        return self._entries, self._threads, self._vectors, self._metadata_limit


class _Run:
    """One way through an export."""

    def __init__(self, taking: ExportTaking, tenant: str, wish: Wish, tally: Tally) -> None:
        self._taking = taking
        self._entries, self._threads, self._vectors, self._metadata_limit = taking.parts
        self._sessions = taking.sessions
        self._cleaner = taking.redaction.cleaner
        self._tenant = tenant
        self._wish = wish
        self._tally = tally
        self._vectors_by: str | None = None
        self._thread: ReadThread | None = None
        self._last_seq = 0
        self._is_apart = False
        self._session: str | None = None

    def store(self, batch: Batch) -> None:
        """Store a batch of lines of one kind."""
        kind = batch.lines[0].kind
        if kind == "embedder":
            self._vectors_by = self._taking.name_for(
                batch.lines[0].form, dry_run=self._wish.dry_run
            )
        elif kind == "entry":
            self._store_entries(batch.lines)
        elif kind == "thread":
            self._begin_thread(batch.lines[0], is_last=batch.is_last)
        elif kind == "turn":
            self._store_turns(batch.lines, is_last=batch.is_last)
        elif kind == "session":
            self._store_sessions(batch.lines)
        elif kind == "step":
            self._store_steps(batch.lines)

    def _store_entries(self, lines: Sequence[Line]) -> None:
        entries: list[ReadEntry] = []
        for line in lines:
            try:
                cleaner = self._cleaner("entry", self._tenant)
                read = read_entry(line.form, cleaner, metadata_limit=self._metadata_limit)
                entries.append(self._renamed(read))
            except (InvalidInputError, RedactionError) as error:
                self._tally.add("entry", _failed("entry", line, error))
        outcomes = self._entries.take(
            self._tenant,
            entries,
            on_conflict=self._wish.on_conflict,
            vectors_by=self._vectors_by,
            dry_run=self._wish.dry_run,
        )
        for read, outcome in zip(entries, outcomes, strict=True):
            self._tally.add("entry" if read.pattern is None else "pattern", outcome)

    def _renamed(self, read: ReadEntry) -> ReadEntry:
        if self._wish.namespace is None or read.pattern is not None:
            return read
        path = format_namespace(f"{self._wish.namespace}/{read.entry.namespace}")
        return replace(read, entry=replace(read.entry, namespace=path))

    def _begin_thread(self, line: Line, *, is_last: bool) -> None:
        self._last_seq, self._is_apart = 0, False
        try:
            read = read_thread(line.form, self._cleaner("notes", self._tenant))
            self._thread = replace(
                read, thread_id=check_name("thread", self._wish.thread or read.thread_id)
            )
        except (InvalidInputError, RedactionError) as error:
            self._thread = None
            self._tally.add("thread", _failed("thread", line, error))
            return
        if is_last:
            self._take(())
        else:
            self._tally.threads[self._thread.thread_id] = None

    def _store_turns(self, lines: Sequence[Line], *, is_last: bool) -> None:
        turns: list[ReadTurn] = []
        for line in lines:
            try:
                turns.append(self._read_turn(line))
            except (InvalidInputError, RedactionError) as error:
                self._tally.add("turn", _failed("turn", line, error))
        if self._thread is not None and (turns or is_last):
            self._take(turns, is_last=is_last)

    def _read_turn(self, line: Line) -> ReadTurn:
        if self._thread is None:
            raise InvalidInputError("thread", "the line of its thread cannot be read")
        cleaner = self._cleaner("turn", self._tenant, self._thread.thread_id)
        turn, vectors = read_turn(line.form, cleaner)
        if turn.seq <= self._last_seq:
            raise InvalidInputError("seq", "is not above the one before; mend it")
        self._last_seq = turn.seq
        return turn, vectors

    def _take(self, turns: Sequence[ReadTurn], *, is_last: bool = True) -> None:
        thread = self._thread
        if thread is None:
            return
        try:
            taken = self._threads.take(
                self._tenant,
                Stretch(thread, turns, is_last=is_last, is_apart=self._is_apart),
                self._vectors,
                on_conflict=self._wish.on_conflict,
                vectors_by=self._vectors_by,
                dry_run=self._wish.dry_run,
            )
        except QuotaExceededError as error:
            for turn, _ in turns:
                item = ReadItem("turn", str(turn.id), "failed", QUOTA, str(error))
                self._tally.add("turn", item)
            return
        self._is_apart = self._is_apart or taken.is_apart
        self._tally.threads[thread.thread_id] = None
        for outcome in taken.outcomes:
            self._tally.add("turn", outcome)

    def _store_sessions(self, lines: Sequence[Line]) -> None:
        sessions: list[Session] = []
        self._session, self._last_seq, self._is_apart = None, 0, False
        for line in lines:
            try:
                sessions.append(read_session(line.form, self._cleaner("session", self._tenant)))
                self._session = sessions[-1].id
            except (InvalidInputError, RedactionError) as error:
                self._session = None
                self._tally.add("session", _failed("session", line, error))
        outcomes = self._sessions.take_sessions(
            self._tenant,
            sessions,
            on_conflict=self._wish.on_conflict,
            dry_run=self._wish.dry_run,
        )
        for outcome in outcomes:
            self._is_apart = _is_conflict(outcome)
            self._tally.add("session", outcome)

    def _store_steps(self, lines: Sequence[Line]) -> None:
        steps: list[Step] = []
        for line in lines:
            try:
                steps.append(self._read_step(line, steps))
            except (InvalidInputError, RedactionError) as error:
                self._tally.add("step", _failed("step", line, error))
        if not steps:
            return
        outcomes = self._sessions.take_steps(
            self._tenant,
            steps,
            is_apart=self._is_apart,
            on_conflict=self._wish.on_conflict,
            dry_run=self._wish.dry_run,
        )
        self._last_seq = steps[-1].step
        for outcome in outcomes:
            self._is_apart = self._is_apart or _is_conflict(outcome)
            self._tally.add("step", outcome)

    def _read_step(self, line: Line, before: Sequence[Step]) -> Step:
        if self._session is None:
            raise InvalidInputError("session", "the line of its session cannot be read")
        step = read_step(line.form, self._session, self._cleaner("session", self._tenant))
        if step.step <= (before[-1].step if before else self._last_seq):
            raise InvalidInputError("step", "is not above the one before; mend it")
        return step


def _check_conflicts(report: ReadReport) -> None:
    conflicts = report.reasons.get("conflict", 0)
    if conflicts:
        text = (
            f"{conflicts} records meet another content; nothing was stored, skip or overwrite them"
        )
        raise ConflictError(text)


def _check(wish: Wish) -> None:
    if wish.on_conflict not in {"skip", "overwrite", "fail"}:
        raise InvalidInputError("on_conflict", "is unknown; use skip, overwrite or fail")
    if not 1 <= wish.batch_size <= 10_000:  # noqa: PLR2004 - said in the text
        raise InvalidInputError("batch_size", "must be between 1 and 10,000")


def _is_conflict(outcome: Outcome | ReadItem) -> bool:
    return isinstance(outcome, ReadItem) and outcome.reason == "conflict"


def _failed(kind: Any, line: Line, error: InvalidInputError | RedactionError) -> ReadItem:
    reason = "limit_exceeded" if isinstance(error, LimitExceededError) else "invalid_record"
    reason = "rejected_by_redactor" if isinstance(error, RedactionError) else reason
    ref = line.form.get("id")
    name = ref if isinstance(ref, str) else f"line {line.number}"
    return ReadItem(kind, name, "failed", reason, f"line {line.number}: {error}")
