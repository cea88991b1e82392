"""The composition root: what the handles of one HierMem share, and how it is put together."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hiermem_core.backends.embedders import RecordedEmbedder
from hiermem_core.backends.in_memory import InMemoryBackend
from hiermem_core.backends.in_memory_mending import InMemoryMending
from hiermem_core.backends.matrices import Matrices
from hiermem_core.backends.mending import Mending
from hiermem_core.backends.planner import Planner
from hiermem_core.backends.sql import SqlBackend
from hiermem_core.backends.sql_filters import metadata_index_ddl
from hiermem_core.backends.staging import StagedVectors
from hiermem_core.backends.turn_rows import TurnRows
from hiermem_core.backends.vector_rows import VectorRows
from hiermem_core.backends.vector_search import VectorSearch
from hiermem_core.backends.waiting import WaitingRows
from hiermem_core.clock import SystemClock
from hiermem_core.context.assembler import ContextAssembler
from hiermem_core.embedding.adapters import as_embedder
from hiermem_core.embedding.minilm import default_embedder
from hiermem_core.errors import InvalidInputError, MissingExtraError
from hiermem_core.forgetting.cleaning import Cleaner
from hiermem_core.forgetting.forgetting import Forgetting
from hiermem_core.models import events
from hiermem_core.models.moments import to_milliseconds
from hiermem_core.pool import Pool
from hiermem_core.protocols import TokenCounter
from hiermem_core.recall.recaller import Recaller
from hiermem_core.service.background import Background
from hiermem_core.service.catching_up import CatchingUp
from hiermem_core.service.collaborators import Collaborators
from hiermem_core.service.doctoring import Doctoring
from hiermem_core.service.entry_cache import EntryCache
from hiermem_core.service.health import HealthCheck
from hiermem_core.service.reindexing import Reindexing
from hiermem_core.service.upkeep import Upkeep
from hiermem_core.service.vectorising import Vectoriser
from hiermem_core.storage.database import Database
from hiermem_core.storage.migrations import prepare
from hiermem_core.threads.listing import TurnListing
from hiermem_core.threads.notes import NotesStore
from hiermem_core.threads.sliding_window import SlidingWindow
from hiermem_core.threads.store import ThreadStore
from hiermem_core.threads.strategies import Strategies
from hiermem_core.threads.summary_buffer import SummaryBuffer
from hiermem_core.tokens.counters import FunctionCounter
from hiermem_core.tokens.tiktoken_counter import default_counter
from hiermem_core.vector_index.applying import IndexTeller
from hiermem_core.vector_index.indexer import Indexer

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core.models.events import Event
    from hiermem_core.protocols import Backend, Clock, Embedder, Observer, ThreadMemory
    from hiermem_core.service.vectorising import OnEmbedderChange
    from hiermem_core.settings import HierMemSettings
    from hiermem_core.storage.location import Location

_logger = logging.getLogger(__name__)

_MODES: dict[str, frozenset[str]] = {
    "sqlite": frozenset({"keyword"}),
    "chroma": frozenset({"semantic"}),
    "hybrid": frozenset({"keyword", "semantic", "hybrid"}),
    "in_memory": frozenset({"keyword", "semantic", "hybrid"}),
}
"""The modes each backend has an index for."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Services:
    """What the handles of one HierMem share."""

    database: Database
    counter: TokenCounter
    clock: Clock
    notes: NotesStore
    store: ThreadStore
    assembler: ContextAssembler
    memories: Collaborators
    turns: SqlBackend
    recaller: Recaller
    forgetting: Forgetting
    health: HealthCheck
    doctoring: Doctoring
    reindexing: Reindexing
    pool: Pool

    def close(self, timeout: float | None) -> None:
        """End what runs and close the files."""
        self.pool.close(wait=timeout is None)
        self.memories.background.close(timeout)
        self.memories.indexer.close(timeout)
        self.database.close(timeout)


def build(
    location: Location,
    settings: HierMemSettings,
    *,
    counter: TokenCounter | None,
    clock: Clock | None,
    observer: Observer | None,
    thread_memory: ThreadMemory | None,
    embedder: Any = None,
    on_embedder_change: OnEmbedderChange = "raise",
) -> Services:
    """Open a location and put its services together; nothing stays open when this raises.

    Raises:
        MissingExtraError: The backend needs an extra that is not installed.
        MigrationError: The location was written by a newer version.
        EmbedderMismatchError: The location's vectors are by another embedder.
    """
    _check_backend(settings.backend)
    clock = clock or SystemClock()
    counter = _as_counter(counter) or default_counter(
        settings.encoding,
        cache_dir=settings.tiktoken_cache_dir,
        factor=settings.token_factor,
        download=settings.tiktoken_download,
    )
    database = _prepared(location, settings, clock)
    try:
        return _built(
            database,
            settings,
            counter=counter,
            clock=clock,
            tell=_teller(observer),
            thread_memory=thread_memory,
            embedder=_embedder_for(settings, embedder),
            on_embedder_change=on_embedder_change,
        )
    except BaseException:
        database.close()
        raise


def _built(
    database: Database,
    settings: HierMemSettings,
    *,
    counter: TokenCounter,
    clock: Clock,
    tell: Callable[[Event], None],
    thread_memory: ThreadMemory | None,
    embedder: Embedder | None,
    on_embedder_change: OnEmbedderChange,
) -> Services:
    recorded = RecordedEmbedder(database)
    indexer = _indexer(database, settings, clock, tell)
    vectoriser = Vectoriser(
        embedder,
        recorded,
        is_indexing=settings.indexing,
        on_change=on_embedder_change,
        clock=clock,
        named=indexer.set_embedder,
    )
    vectors = VectorRows(indexer, recorded.name)
    turns = _sql_backend(database, settings, indexer, vectors, recorded)
    backend: Backend = InMemoryBackend() if settings.backend == "in_memory" else turns
    backends = (turns,) if backend is turns else (backend, turns)
    catching_up = CatchingUp(backends, vectoriser, clock=clock, tell=tell)
    rows = TurnRows(
        vectors,
        part_gap=timedelta(hours=settings.part_gap_hours),
        is_on=settings.index_turns,
        awaits=lambda: vectoriser.awaits,
    )
    upkeep = Upkeep(
        database=database,
        backends=backends,
        memory=InMemoryMending(backend) if isinstance(backend, InMemoryBackend) else None,
        rows=Mending(database, vectors, recorded.name),
        waiting=WaitingRows(database, vectors),
        staged=StagedVectors(database, indexer),
        listing=TurnListing(database, rows),
        vectoriser=vectoriser,
        catching_up=catching_up,
        indexer=indexer,
        clock=clock,
    )
    if upkeep.listing.is_due():
        upkeep.listing.list_all()
    health = HealthCheck(upkeep)
    memories = Collaborators(
        backend=backend,
        cache=EntryCache(settings.cache_size),
        vectoriser=vectoriser,
        catching_up=catching_up,
        indexer=indexer,
        background=Background(catching_up),
        clock=clock,
        merges=settings.dedup == "content",
        tell=tell,
        location=str(database.location),
        check_open=database.check_open,
        health=health.run,
    )
    recaller = Recaller(memories, turns, database)
    notes = NotesStore(database, tell=tell)
    store = ThreadStore(
        database,
        clock=clock,
        counter=counter,
        rows=rows,
        tell=tell,
        after_write=memories.after_write,
    )
    forgetting = Forgetting(
        database,
        turns,
        backend,
        store=store,
        cleaner=Cleaner(database, indexer, clock=clock),
        clock=clock,
        drop=(memories.cache.forget, turns.forget),
        tell=tell,
        after_write=memories.after_write,
    )
    forgetting.resume()
    memory = thread_memory or _built_in_memory(database, notes, counter, settings)
    return Services(
        database=database,
        counter=counter,
        clock=clock,
        notes=notes,
        store=store,
        assembler=ContextAssembler(
            database,
            memory,
            counter=counter,
            window_exchanges=settings.window_exchanges,
            is_host_memory=thread_memory is not None,
            tell=tell,
            recaller=recaller,
            recall_share=settings.recall_share,
        ),
        recaller=recaller,
        forgetting=forgetting,
        health=health,
        doctoring=Doctoring(upkeep),
        reindexing=Reindexing(upkeep),
        memories=memories,
        turns=turns,
        pool=Pool(),
    )


def _sql_backend(
    database: Database,
    settings: HierMemSettings,
    indexer: Indexer,
    vectors: VectorRows,
    recorded: RecordedEmbedder,
) -> SqlBackend:
    fields = frozenset(settings.indexed_metadata)
    if fields:
        with database.write() as connection:
            for field in sorted(fields):
                connection.exec_driver_sql(metadata_index_ddl(field))
    search = VectorSearch(
        database,
        indexer,
        matrices=Matrices(),
        planner=Planner(exact_limit=settings.exact_limit),
        fields=fields,
        embedder=recorded.name,
    )
    return SqlBackend(
        settings.backend,
        _MODES[settings.backend],
        database,
        vectors=vectors,
        search=search,
        waiting=WaitingRows(database, vectors),
        indexer=indexer,
        embedder=recorded.name,
        fields=fields,
    )


def _indexer(
    database: Database, settings: HierMemSettings, clock: Clock, tell: Callable[[Event], None]
) -> Indexer:
    has_index = settings.backend in {"chroma", "hybrid"} and find_spec("chromadb") is not None
    threshold = settings.index_threshold
    if threshold is None:
        threshold = 0 if settings.backend == "chroma" else 16_000
    return Indexer(
        database,
        database.location.index_folder if has_index else None,
        threshold=threshold,
        clock=clock,
        tell=IndexTeller(
            caught_up=lambda tenant: tell(events.IndexCaughtUp(tenant)),
            failed=lambda tenant, count: tell(events.IndexFailed(tenant, count)),
        ),
    )


def _embedder_for(settings: HierMemSettings, embedder: Any) -> Embedder | None:
    """Return the embedder given, else the local one where it is installed and vectors are used."""
    if embedder is not None:
        return as_embedder(embedder)
    is_wanted = settings.local_embedder and "semantic" in _MODES[settings.backend]
    return default_embedder() if is_wanted else None


def _as_counter(counter: Any) -> TokenCounter | None:
    """Return a counter as given; a plain function counts under its name."""
    if counter is None or isinstance(counter, TokenCounter):
        return counter
    if not callable(counter):
        raise InvalidInputError("counter", "must be a TokenCounter or a function of a text")
    return FunctionCounter(counter, id=getattr(counter, "__qualname__", type(counter).__name__))


def _prepared(location: Location, settings: HierMemSettings, clock: Clock) -> Database:
    database = Database(
        location, durability=settings.durability, busy_seconds=settings.busy_seconds
    )
    try:
        prepare(database, now_ms=to_milliseconds(clock.now()))
    except BaseException:
        database.close()
        raise
    return database


def _built_in_memory(
    database: Database, notes: NotesStore, counter: TokenCounter, settings: HierMemSettings
) -> ThreadMemory:
    window = SlidingWindow(database, counter=counter, window_exchanges=settings.window_exchanges)
    buffer = SummaryBuffer(window, notes, counter=counter)
    return Strategies(
        {"sliding_window": window, "summary_buffer": buffer}, default="sliding_window"
    )


def _check_backend(backend: str) -> None:
    if backend == "chroma" and find_spec("chromadb") is None:
        raise MissingExtraError("chroma", feature='backend="chroma"')


def _teller(observer: Observer | None) -> Callable[[Event], None]:
    def tell(event: Event) -> None:
        if observer is None:
            return
        try:
            observer(event)
        except Exception as error:  # noqa: BLE001 - an observer that raises affects nothing
            kind = type(event).__name__
            _logger.warning("observer failed on %s: %s", kind, type(error).__name__)

    return tell
