"""How the parts of one HierMem hang together: one property a part, each made once, when needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar

from hiermem_core.backends.embedders import RecordedEmbedder
from hiermem_core.backends.in_memory import InMemoryBackend
from hiermem_core.backends.in_memory_mending import InMemoryMending
from hiermem_core.backends.matrices import Matrices
from hiermem_core.backends.mending import Mending
from hiermem_core.backends.modes import BY_WORDS, INDEX_THRESHOLDS, MODES
from hiermem_core.backends.planner import Planner
from hiermem_core.backends.quotas import Quotas
from hiermem_core.backends.sql import SqlBackend
from hiermem_core.backends.sql_filters import Fields, metadata_index_ddl
from hiermem_core.backends.staging import StagedVectors
from hiermem_core.backends.turn_rows import TurnRows, roles_in
from hiermem_core.backends.vector_rows import VectorRows
from hiermem_core.backends.vector_search import VectorSearch
from hiermem_core.backends.waiting import WaitingRows
from hiermem_core.context.assembler import ContextAssembler
from hiermem_core.exporting.entries import EntryTaking
from hiermem_core.exporting.exporting import Exports
from hiermem_core.exporting.sessions import SessionTaking
from hiermem_core.exporting.taking import ExportTaking
from hiermem_core.exporting.threads import ThreadTaking
from hiermem_core.exporting.writer import ExportWriter
from hiermem_core.forgetting.cleaning import Cleaner
from hiermem_core.forgetting.forgetting import Forgetting
from hiermem_core.learning.asking import Asking
from hiermem_core.learning.learner import Learner
from hiermem_core.learning.strategies import Strategies
from hiermem_core.learning.summary_buffer import SummaryBuffer
from hiermem_core.learning.updates import UpdateQueue
from hiermem_core.models import events
from hiermem_core.models.redaction import Redaction
from hiermem_core.recall.recaller import Recaller
from hiermem_core.service.background import Background
from hiermem_core.service.catching_up import CatchingUp
from hiermem_core.service.collaborators import Collaborators
from hiermem_core.service.entry_cache import EntryCache
from hiermem_core.service.health import HealthCheck
from hiermem_core.service.upkeep import Upkeep
from hiermem_core.service.vectorising import Vectoriser
from hiermem_core.sessions.store import SessionStore
from hiermem_core.threads.archive import ArchivingStore
from hiermem_core.threads.listing import TurnListing
from hiermem_core.threads.newest import NewestTurns
from hiermem_core.threads.notes import NotesStore
from hiermem_core.threads.preparing import Preparing
from hiermem_core.threads.sliding_window import SlidingWindow
from hiermem_core.threads.turn_table import TurnTable
from hiermem_core.vector_index.applying import IndexTeller
from hiermem_core.vector_index.connecting import ChromaServer
from hiermem_core.vector_index.indexer import Indexer
from hiermem_core.watchers import operations_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core.given import Given
    from hiermem_core.models.events import Event
    from hiermem_core.models.threads import Strategy
    from hiermem_core.protocols import (
        Backend,
        ChatModel,
        Clock,
        Embedder,
        ThreadMemory,
        TokenCounter,
    )
    from hiermem_core.settings import HierMemSettings
    from hiermem_core.storage.database import Database
    from hiermem_core.telemetry import Telemetry

_Store = TypeVar("_Store", bound=ArchivingStore)


@dataclass(frozen=True)
class Wiring:
    """The parts of one HierMem, made from what was opened and given.

    Attributes:
        tell: Takes events, after their commit.
        telemetry: Watches operations; `None`: OpenTelemetry is not in use.
    """

    database: Database
    settings: HierMemSettings
    given: Given
    counter: TokenCounter
    clock: Clock
    tell: Callable[[Event], None]
    embedder: Embedder | None
    chat_model: ChatModel | None
    telemetry: Telemetry | None
    newest_turns: NewestTurns = field(default_factory=NewestTurns)

    @cached_property
    def indexer(self) -> Indexer:
        """Keeps vectors in the vector index, where the backend has one."""
        backend = self.settings.backend
        is_there = backend in INDEX_THRESHOLDS and find_spec("chromadb") is not None
        server = None if self.settings.chroma is None else ChromaServer(self.settings.chroma)
        threshold = self.settings.index_threshold
        return Indexer(
            self.database,
            server or self.database.location.index_folder if is_there else None,
            threshold=INDEX_THRESHOLDS.get(backend, 0) if threshold is None else threshold,
            clock=self.clock,
            tell=IndexTeller(
                caught_up=lambda tenant: self.tell(events.IndexCaughtUp(tenant)),
                failed=lambda tenant, count: self.tell(events.IndexFailed(tenant, count)),
            ),
        )

    @cached_property
    def recorded(self) -> RecordedEmbedder:
        """Knows whose vectors count."""
        return RecordedEmbedder(self.database)

    @cached_property
    def vectoriser(self) -> Vectoriser:
        """Calls the embedder."""
        return Vectoriser(
            self.embedder,
            self.recorded,
            is_indexing=self.settings.indexing,
            on_change=self.given.on_embedder_change,
            clock=self.clock,
            named=self.indexer.set_embedder,
        )

    @cached_property
    def vectors(self) -> VectorRows:
        """Writes vectors with their rows."""
        return VectorRows(self.indexer, self.recorded.name)

    @cached_property
    def waiting(self) -> WaitingRows:
        """Knows the rows that wait for a vector."""
        return WaitingRows(self.database, self.vectors)

    @cached_property
    def quotas(self) -> Quotas:
        """Lets writes pass, or refuses them."""
        return Quotas(self.given.quota, self.tell)

    @cached_property
    def redaction(self) -> Redaction:
        """Lets text in."""
        return Redaction(self.given.redactor)

    @cached_property
    def rows(self) -> SqlBackend:
        """Searches the rows of the database: turns, and entries unless they are in memory."""
        settings = self.settings
        dialect = self.database.dialect_name
        fields = Fields(frozenset(settings.indexed_metadata), dialect)
        self._index_metadata(fields)
        search = VectorSearch(
            self.database,
            self.indexer,
            matrices=Matrices(),
            planner=Planner(exact_limit=settings.exact_limit),
            fields=fields,
            embedder=self.recorded.name,
        )
        return SqlBackend(
            settings.backend,
            MODES[settings.backend] - (BY_WORDS if self.database.is_sealed else frozenset()),
            self.database,
            vectors=self.vectors,
            search=search,
            waiting=self.waiting,
            indexer=self.indexer,
            embedder=self.recorded.name,
            quotas=self.quotas,
            fields=fields,
        )

    def _index_metadata(self, fields: Fields) -> None:
        if fields.indexed:
            with self.database.write() as connection:
                for field in sorted(fields.indexed):
                    connection.exec_driver_sql(metadata_index_ddl(field, fields.dialect))

    @cached_property
    def backend(self) -> Backend:
        """Keeps the entries."""
        if self.settings.backend != "in_memory":
            return self.rows
        return InMemoryBackend(self.quotas, partial(roles_in, self.database))

    @cached_property
    def backends(self) -> tuple[Backend, ...]:
        """All that have rows which wait for vectors."""
        return (self.rows,) if self.backend is self.rows else (self.backend, self.rows)

    @cached_property
    def catching_up(self) -> CatchingUp:
        """Makes the vectors that rows wait for."""
        return CatchingUp(self.backends, self.vectoriser, clock=self.clock, tell=self.tell)

    @cached_property
    def turn_rows(self) -> TurnRows:
        """Makes turns searchable."""
        return TurnRows(
            self.vectors,
            part_gap=timedelta(hours=self.settings.part_gap_hours),
            is_on=self.settings.index_turns,
            awaits=lambda: self.vectoriser.awaits,
        )

    @cached_property
    def upkeep(self) -> Upkeep:
        """What doctor, reindex and health work with."""
        backend = self.backend
        return Upkeep(
            database=self.database,
            backends=self.backends,
            memory=InMemoryMending(backend) if isinstance(backend, InMemoryBackend) else None,
            rows=Mending(self.database, self.vectors, self.recorded.name),
            waiting=self.waiting,
            staged=StagedVectors(self.database, self.indexer),
            listing=TurnListing(self.database, self.turn_rows),
            vectoriser=self.vectoriser,
            catching_up=self.catching_up,
            indexer=self.indexer,
            clock=self.clock,
        )

    @cached_property
    def health(self) -> HealthCheck:
        """Asks every part whether it works."""
        return HealthCheck(self.upkeep, self.updates.count)

    @cached_property
    def memories(self) -> Collaborators:
        """What the memory services of all tenants share."""
        return Collaborators(
            backend=self.backend,
            cache=EntryCache(self.settings.cache_size),
            vectoriser=self.vectoriser,
            catching_up=self.catching_up,
            indexer=self.indexer,
            background=Background(self.catching_up),
            clock=self.clock,
            merges=self.settings.dedup == "content",
            metadata_limit=self.settings.metadata_limit,
            redaction=self.redaction,
            tell=self.tell,
            location=str(self.database.location),
            check_open=self.database.check_open,
            health=self.health.run,
            operations=operations_of(self.settings, self.database, self.clock, self.telemetry),
        )

    @cached_property
    def store(self) -> ArchivingStore:
        """Writes threads."""
        return self._turns_by(ArchivingStore)

    def _turns_by(self, kind: type[_Store]) -> _Store:
        return kind(
            self.database,
            clock=self.clock,
            preparing=Preparing(self.counter, self.redaction),
            rows=self.turn_rows,
            tell=self.tell,
            after_write=self.memories.after_write,
            table=TurnTable(self.database, self.quotas, clock=self.clock),
        )

    @cached_property
    def notes(self) -> NotesStore:
        """Keeps what is remembered about threads."""
        return NotesStore(self.database, tell=self.tell)

    @cached_property
    def learner(self) -> Learner:
        """Makes notes of threads."""
        return Learner(
            self.database,
            self.notes,
            Asking(
                self.chat_model,
                self.given.usage_guard,
                counter=self.counter,
                redaction=self.redaction,
            ),
            counter=self.counter,
            redaction=self.redaction,
            tell=self.tell,
        )

    @cached_property
    def strategies(self) -> Strategies:
        """The built-in memory of threads."""
        settings, counter, cap = self.settings, self.counter, self.settings.window_exchanges
        every = settings.update_every_turns
        window = SlidingWindow(
            self.database, self.newest_turns, counter=counter, window_exchanges=cap
        )
        buffer = SummaryBuffer(
            window, self.notes, self.learner, counter=counter, update_every_turns=every
        )
        default: Strategy = "sliding_window" if self.chat_model is None else "summary_buffer"
        return Strategies(window, buffer, default=settings.strategy or default)

    @cached_property
    def thread_memory(self) -> ThreadMemory:
        """Loads the history part of contexts, and learns from answers."""
        return self.given.thread_memory or self.strategies

    @cached_property
    def updates(self) -> UpdateQueue:
        """Has answers learned from in the background."""
        settings = self.settings
        return UpdateQueue(
            self.database,
            self.thread_memory,
            self.learner,
            learns=None if self.given.thread_memory else self.strategies.learns,
            can_learn=self.chat_model is not None,
            every=settings.update_every_turns,
            cheap_model_id=settings.cheap_model_id,
            is_inline=settings.inline_updates,
            clock=self.clock,
            tell=self.tell,
        )

    @cached_property
    def recaller(self) -> Recaller:
        """Recalls entries and turns."""
        return Recaller(self.memories, self.rows, self.database)

    @cached_property
    def assembler(self) -> ContextAssembler:
        """Builds contexts."""
        return ContextAssembler(
            self.database,
            self.thread_memory,
            counter=self.counter,
            window_exchanges=self.settings.window_exchanges,
            is_host_memory=self.given.thread_memory is not None,
            tell=self.tell,
            recaller=self.recaller,
            recall_share=self.settings.recall_share,
            redaction=self.redaction,
        )

    @cached_property
    def forgetting(self) -> Forgetting:
        """Forgets for good."""
        return Forgetting(
            self.database,
            self.rows,
            self.backend,
            store=self.store,
            cleaner=Cleaner(self.database, self.indexer, clock=self.clock),
            clock=self.clock,
            drop=(self.memories.cache.forget, self.rows.forget),
            tell=self.tell,
            after_write=self.memories.after_write,
        )

    @cached_property
    def sessions(self) -> SessionStore:
        """Keeps the sessions of agents."""
        return SessionStore(self.database, clock=self.clock, tell=self.tell)

    @cached_property
    def exports(self) -> Exports:
        """Writes exports, and imports them."""
        entries = EntryTaking(self.backend, self.vectoriser, clock=self.clock, tell=self.tell)
        threads = self._turns_by(ThreadTaking)
        taking = ExportTaking(
            entries,
            threads,
            SessionTaking(self.database, tell=self.tell),
            self.vectors,
            vectoriser=self.vectoriser,
            indexer=self.indexer,
            clock=self.clock,
            metadata_limit=self.settings.metadata_limit,
            redaction=self.redaction,
            after_write=self.memories.after_write,
        )
        writer = ExportWriter(self.database, self.backend, self.recorded, clock=self.clock)
        return Exports(writer, taking)
