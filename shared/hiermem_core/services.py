"""The composition root: what the handles of one HierMem share, and opening it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hiermem_core.backends.modes import MODES
from hiermem_core.backends.tenants import turn_generation_of
from hiermem_core.clock import SystemClock
from hiermem_core.embedding.adapters import as_embedder
from hiermem_core.embedding.minilm import default_embedder
from hiermem_core.encryption import codec_in_use
from hiermem_core.errors import InvalidInputError, MissingExtraError
from hiermem_core.learning.chat_models import as_chat_model
from hiermem_core.models.moments import to_milliseconds
from hiermem_core.models.quotas import Quota
from hiermem_core.models.redaction import Redaction
from hiermem_core.named_objects import object_at
from hiermem_core.pool import Pool
from hiermem_core.protocols import ThreadMemory, TokenCounter
from hiermem_core.service.doctoring import Doctoring
from hiermem_core.service.reindexing import Reindexing
from hiermem_core.storage.database import Database
from hiermem_core.storage.migrations import prepare
from hiermem_core.telemetry import telemetry_in_use
from hiermem_core.tokens.counters import FunctionCounter
from hiermem_core.tokens.tiktoken_counter import default_counter
from hiermem_core.wiring import Wiring

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core.backends.sql import SqlBackend
    from hiermem_core.context.assembler import ContextAssembler
    from hiermem_core.exporting.exporting import Exports
    from hiermem_core.forgetting.forgetting import Forgetting
    from hiermem_core.given import Given
    from hiermem_core.learning.strategies import Strategies
    from hiermem_core.learning.updates import UpdateQueue
    from hiermem_core.models.events import Event
    from hiermem_core.protocols import ChatModel, Clock, Codec, Embedder, Observer
    from hiermem_core.recall.recaller import Recaller
    from hiermem_core.service.collaborators import Collaborators
    from hiermem_core.service.health import HealthCheck
    from hiermem_core.sessions.store import SessionStore
    from hiermem_core.settings import HierMemSettings
    from hiermem_core.storage.location import Location
    from hiermem_core.telemetry import Telemetry
    from hiermem_core.threads.archive import ArchivingStore
    from hiermem_core.threads.newest import NewestTurns

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Services:
    """What the handles of one HierMem share."""

    database: Database
    counter: TokenCounter
    clock: Clock
    store: ArchivingStore
    assembler: ContextAssembler
    thread_memory: ThreadMemory
    newest_turns: NewestTurns
    strategies: Strategies
    updates: UpdateQueue
    memories: Collaborators
    turns: SqlBackend
    recaller: Recaller
    forgetting: Forgetting
    exports: Exports
    sessions: SessionStore
    health: HealthCheck
    doctoring: Doctoring
    reindexing: Reindexing
    pool: Pool

    def generation(self, tenant_id: str) -> tuple[int, int]:
        """Return how often the entries and the searched turns of a tenant were changed."""
        self.database.check_open()
        entries = self.memories.backend.generation(tenant_id)
        return entries, turn_generation_of(self.database, tenant_id)

    def close(self, timeout: float | None) -> None:
        """End what runs and close the files."""
        self.updates.close(timeout)
        self.pool.close(wait=timeout is None)
        self.memories.background.close(timeout)
        self.memories.indexer.close(timeout)
        self.database.close(timeout)


def build(location: Location, settings: HierMemSettings, given: Given) -> Services:
    """Open a location and put its services together; nothing stays open when this raises.

    What an earlier process left undone is done first: turns of an older schema are made
    searchable, and what was forgotten is erased.

    Raises:
        MissingExtraError: The backend needs an extra that is not installed.
        MigrationError: The location was written by a newer version.
        EmbedderMismatchError: The location's vectors are by another embedder.
    """
    _check_backend(settings.backend)
    _checked_memory(given.thread_memory)
    clock = given.clock or SystemClock()
    counter = _as_counter(given.counter) or default_counter(
        settings.encoding,
        cache_dir=settings.tiktoken_cache_dir,
        factor=settings.token_factor,
        download=settings.tiktoken_download,
    )
    given = _with_defaults(given, settings)
    telemetry = telemetry_in_use(
        str(location),
        tracer_provider=given.tracer_provider,
        meter_provider=given.meter_provider,
        redaction=Redaction(given.redactor),
        with_content=settings.trace_content,
    )
    is_new = not location.exists
    database = _prepared(location, settings, clock, given.codec)
    try:
        wiring = Wiring(
            database,
            settings,
            given,
            counter=counter,
            clock=clock,
            tell=_teller(given.observer, telemetry),
            embedder=_embedder_for(settings, given.embedder),
            chat_model=_chat_model_for(settings, given.chat_model),
            telemetry=telemetry,
        )
        services = _services(wiring)
        if wiring.upkeep.listing.is_due():
            wiring.upkeep.listing.list_all()
        wiring.forgetting.resume()
        if telemetry is not None:
            telemetry.observe(services)
            if is_new:
                telemetry.created()
    except BaseException:  # no database stays open, whatever it is
        database.close()
        raise
    return services


def _services(wiring: Wiring) -> Services:
    return Services(
        database=wiring.database,
        counter=wiring.counter,
        clock=wiring.clock,
        store=wiring.store,
        assembler=wiring.assembler,
        thread_memory=wiring.thread_memory,
        newest_turns=wiring.newest_turns,
        strategies=wiring.strategies,
        updates=wiring.updates,
        memories=wiring.memories,
        turns=wiring.rows,
        recaller=wiring.recaller,
        forgetting=wiring.forgetting,
        exports=wiring.exports,
        sessions=wiring.sessions,
        health=wiring.health,
        doctoring=Doctoring(wiring.upkeep),
        reindexing=Reindexing(wiring.upkeep),
        pool=Pool(),
    )


def _embedder_for(settings: HierMemSettings, embedder: Any) -> Embedder | None:
    """Return the embedder given, else the local one where it is installed and vectors are used."""
    if embedder is not None:
        return as_embedder(embedder)
    is_wanted = settings.local_embedder and "semantic" in MODES[settings.backend]
    return default_embedder() if is_wanted else None


def _with_defaults(given: Given, settings: HierMemSettings) -> Given:
    """Return what was given, and what the settings say where it was not."""
    redactor, quota = given.redactor, given.quota
    if redactor is None and settings.redactor is not None:
        redactor = object_at(settings.redactor, setting="redactor")
    if redactor is not None and not callable(redactor):
        raise InvalidInputError("redactor", "must be a function of a text and its context")
    limits = (settings.quota_entries, settings.quota_bytes, settings.quota_writes_per_minute)
    if quota is None and any(limit is not None for limit in limits):
        quota = Quota(*limits)
    codec = codec_in_use(given.codec, settings)
    return replace(given, redactor=redactor, quota=quota, codec=codec)


def _chat_model_for(settings: HierMemSettings, chat_model: Any) -> ChatModel | None:
    """Return the chat model given, else the one the settings name."""
    named = settings.chat_model if chat_model is None else chat_model
    return None if named is None else as_chat_model(named)


def _checked_memory(memory: ThreadMemory | None) -> None:
    if memory is not None and not isinstance(memory, ThreadMemory):
        reason = "must have the methods load, save_context, get_state and reset"
        raise InvalidInputError("thread_memory", reason)


def _as_counter(counter: Any) -> TokenCounter | None:
    """Return a counter as given; a plain function counts under its name."""
    if counter is None or isinstance(counter, TokenCounter):
        return counter
    if not callable(counter):
        raise InvalidInputError("counter", "must be a TokenCounter or a function of a text")
    return FunctionCounter(counter, id=getattr(counter, "__qualname__", type(counter).__name__))


def _prepared(
    location: Location, settings: HierMemSettings, clock: Clock, codec: Codec | None
) -> Database:
    database = Database(
        location,
        durability=settings.durability,
        busy_seconds=settings.busy_seconds,
        check_seconds=settings.generation_check_seconds,
        pool_size=settings.pool_size,
    )
    try:
        prepare(database, now_ms=to_milliseconds(clock.now()), codec=codec)
    except BaseException:  # no database stays open, whatever it is
        database.close()
        raise
    return database


def _check_backend(backend: str) -> None:
    if backend == "chroma" and find_spec("chromadb") is None:
        raise MissingExtraError("chroma", feature='backend="chroma"')


def _teller(observer: Observer | None, telemetry: Telemetry | None) -> Callable[[Event], None]:
    def tell(event: Event) -> None:
        if telemetry is not None:
            telemetry.tell(event)
        if observer is None:
            return
        try:
            observer(event)
        except Exception as error:  # noqa: BLE001 - an observer that raises affects nothing
            kind = type(event).__name__
            _logger.warning("observer failed on %s: %s", kind, type(error).__name__)

    return tell
