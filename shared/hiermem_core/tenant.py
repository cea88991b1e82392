"""The handle of one tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core.exporting.taking import Wish
from hiermem_core.models.health import TenantStats
from hiermem_core.models.ids import check_name
from hiermem_core.operations import watched
from hiermem_core.recall.recaller import asked_of
from hiermem_core.service.checking import checked_count
from hiermem_core.service.memory_service import MemoryService
from hiermem_core.service.patterns import Patterns
from hiermem_core.session import SessionLog
from hiermem_core.sessions.checking import checked_status
from hiermem_core.sessions.rows import counts_of
from hiermem_core.storage.audit_log import records_of
from hiermem_core.storage.migrations import SCHEMA_VERSION
from hiermem_core.thread import Thread, check_page
from hiermem_core.threads import reading

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import BinaryIO

    from hiermem_core.exporting.entries import OnConflict
    from hiermem_core.exporting.report import ExportReport, ReadReport
    from hiermem_core.models.audit import AuditRecord
    from hiermem_core.models.entries import EntryDraft, MemoryEntry
    from hiermem_core.models.queries import RecallResult, RecallThreads
    from hiermem_core.models.results import ForgetReceipt
    from hiermem_core.models.sessions import Session, SessionStatus
    from hiermem_core.models.threads import ThreadInfo
    from hiermem_core.pool import Pool
    from hiermem_core.protocols import TokenCounter
    from hiermem_core.services import Services


@watched(writes="import_export", reads="recall export")
class Tenant:
    """Everything of one tenant. Another tenant's things do not exist here.

    Attributes:
        actor: Who acts, for the audit log.
    """

    def __init__(self, services: Services, name: str, *, actor: str | None = None) -> None:
        self.name = name
        self.actor = actor
        self._services = services
        self._watch = (services.memories.operations, name, None, actor)
        self._memory = MemoryService(
            services.memories, name, actor, forget=services.forgetting.forget
        )

    @property
    def location(self) -> str:
        """The resolved location; never holds a password."""
        return str(self._services.database.location)

    @property
    def counter(self) -> TokenCounter:
        """The counter whose figures are stored with the turns."""
        return self._services.counter

    @property
    def pool(self) -> Pool:
        """The private threads that async callers run sync methods on."""
        return self._services.pool

    @property
    def memory(self) -> MemoryService:
        """The long-term entries."""
        return self._memory

    @property
    def patterns(self) -> Patterns:
        """The ways of doing things that were learnt."""
        return Patterns(self._services.memories, self._memory, self.actor)

    def remember(
        self, entry: EntryDraft | MemoryEntry | str | Mapping[str, Any], /, **fields: Any
    ) -> str:
        """Store an entry and return its id; see `MemoryService.store`."""
        return self._memory.store(entry, **fields)

    def recall(
        self,
        question: str,
        /,
        *,
        threads: RecallThreads | None = "all",
        limit: int = 10,
        explain: bool = False,
        **restrictions: Any,
    ) -> RecallResult:
        """Return the entries and turns that answer a question, best first.

        Args:
            threads: `"all"`: turns of every thread too; `None`: entries only.
            restrictions: On entries, as in `MemoryQuery`: `namespace`, `filter`, `type`, ...

        Raises:
            InvalidInputError: A restriction cannot be understood.
            EmbedderMismatchError: The location's vectors are by another embedder.
        """
        self._services.database.check_open()
        asked = asked_of(
            self.name,
            question,
            threads=threads,
            limit=limit,
            explain=explain,
            restrictions=restrictions,
            cleaner=self._services.memories.redaction.cleaner("query", self.name),
        )
        return self._services.recaller.recall(asked)

    def forget(
        self,
        *,
        ids: Iterable[str] | None = None,
        namespace: str | Sequence[str] | None = None,
        thread_id: str | None = None,
        user_id: str | None = None,
        everything: bool = False,
        dry_run: bool = False,
    ) -> ForgetReceipt:
        """Erase entries and threads for good, from the files too; see `MemoryService.forget`.

        Raises:
            InvalidInputError: No selector is given, or several.
            BackendError: The database cannot be written. Nothing was forgotten.
        """
        return self._memory.forget(
            ids=ids,
            namespace=namespace,
            thread_id=thread_id,
            user_id=user_id,
            everything=everything,
            dry_run=dry_run,
        )

    def thread(self, thread_id: str) -> Thread:
        """Return the handle of a thread; the first append creates it."""
        self._services.database.check_open()
        name = check_name("thread", thread_id)
        return Thread(self._services, self.name, name, actor=self.actor)

    def session(self, session_id: str) -> SessionLog:
        """Return the handle of a session; `start` or the first step creates it."""
        self._services.database.check_open()
        name = check_name("session", session_id)
        return SessionLog(self._services, self.name, name, actor=self.actor)

    def sessions(self, status: SessionStatus | None = None, limit: int = 100) -> list[Session]:
        """Return the sessions, of one status or all, those started last first.

        Raises:
            InvalidInputError: It is no status, or `limit` no whole number.
        """
        self._services.database.check_open()
        wanted = None if status is None else checked_status(status)
        most = checked_count("limit", limit)
        return self._services.sessions.listed(self.name, wanted, limit=most)

    def generation(self) -> tuple[int, int]:
        """Return figures that change with everything that can change what is recalled.

        Those of the entries, and of the turns that are searched; in every process at once.
        """
        return self._services.generation(self.name)

    def threads(self, *, limit: int = 1000, offset: int = 0) -> list[ThreadInfo]:
        """Return this tenant's threads in the order of their first turn."""
        check_page(limit, offset)
        with self._services.database.read() as connection:
            heads = reading.heads_of(connection, self.name, limit=limit, offset=offset)
        return [head.info() for head in heads]

    def export(
        self,
        target: str | os.PathLike[str] | BinaryIO,
        *,
        vectors: bool = False,
        replace: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> ExportReport:
        """Write all that this tenant has to a file, as JSONL that `import_export` takes back.

        Entries with their ids, times, versions and time to live, threads with every turn, archived
        ones too, the frameworks' dumps and the notes; not what has expired. One snapshot, in
        constant memory; never calls a model. The file comes whole or not at all, and is readable
        by its owner alone.

        Args:
            target: A path, or a file open for bytes.
            vectors: Add the stored vectors, which spare an importer with the same embedder theirs.
            replace: Where the path is taken, keep what is there under another name, which the
                report says.
            progress: Told after each record how many were written.

        Raises:
            ConfigurationError: The path is taken, or its folder is not there.
            BackendError: It cannot be written. Nothing of it is left.
        """
        return self._services.exports.writer.write(
            self.name, target, with_vectors=vectors, replace=replace, progress=progress
        )

    def import_export(
        self,
        source: str | os.PathLike[str],
        *,
        on_conflict: OnConflict = "skip",
        namespace: str | None = None,
        thread: str | None = None,
        dry_run: bool = False,
        batch_size: int = 500,
        progress: Callable[[int, int], None] | None = None,
    ) -> ReadReport:
        """Store what `export` wrote, exactly as it was, whoever's it was.

        The whole file is checked before anything is stored. Repeating it stores nothing twice, and
        goes on where a killed one ended. What expired since is left out. Vectors are taken over
        where they are by this location's embedder, else made anew later. Never calls a chat model.

        Args:
            on_conflict: Of a record that is stored with another content: `"skip"` leaves it,
                `"overwrite"` replaces it, `"fail"` stores nothing at all.
            namespace: Goes before the namespace of every entry but those of patterns.
            thread: Renames the thread of an export with one.
            dry_run: Report the same, and change nothing.
            batch_size: Records of one transaction at most.
            progress: Told after each batch how many bytes of how many were read.

        Raises:
            InvalidInputError: The file cannot be read, was changed or cut, at the line named.
            ConflictError: `on_conflict` is `"fail"` and there is a conflict.
            BackendUnavailableError: The storage is full, locked or away. Whole batches are stored.
        """
        self._services.database.check_open()
        wish = Wish(
            on_conflict=on_conflict,
            namespace=namespace,
            thread=thread,
            dry_run=dry_run,
            batch_size=batch_size,
        )
        return self._services.exports.taking.take(self.name, source, wish, progress=progress)

    def audit(self, *, after: int = 0, limit: int = 1000) -> list[AuditRecord]:
        """Return what the audit log says of this tenant, oldest first; see `audit` of `open`.

        Args:
            after: Only records of a higher number.
        """
        check_page(limit, after)
        return records_of(self._services.database, self.name, after=after, limit=limit)

    def stats(self) -> TenantStats:
        """Return what this tenant has stored."""
        counter = self.counter
        with self._services.database.read() as connection:
            sums = reading.sums_of(connection, self.name, counter.id)
            sums |= counts_of(connection, self.name)
        return TenantStats(
            tenant_id=self.name,
            **sums,
            location=self.location,
            schema=SCHEMA_VERSION,
            counter=counter.id,
            exact_counter=getattr(counter, "exact", True),
        )

    def __repr__(self) -> str:
        """Name tenant and location."""
        return f"Tenant({self.name!r}, {self.location!r})"
