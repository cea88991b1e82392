"""The composition root: what the handles of one HierMem share, and how it is put together."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hiermem_core.clock import SystemClock
from hiermem_core.context.assembler import ContextAssembler
from hiermem_core.errors import ConfigurationError, InvalidInputError, MissingExtraError
from hiermem_core.pool import Pool
from hiermem_core.protocols import TokenCounter
from hiermem_core.storage.database import Database
from hiermem_core.storage.migrations import prepare
from hiermem_core.threads.notes import NotesStore
from hiermem_core.threads.rows import to_milliseconds
from hiermem_core.threads.sliding_window import SlidingWindow
from hiermem_core.threads.store import ThreadStore
from hiermem_core.threads.strategies import Strategies
from hiermem_core.threads.summary_buffer import SummaryBuffer
from hiermem_core.tokens.counters import FunctionCounter
from hiermem_core.tokens.tiktoken_counter import default_counter

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core.models.events import Event
    from hiermem_core.protocols import Clock, Observer, ThreadMemory
    from hiermem_core.settings import HierMemSettings
    from hiermem_core.storage.location import Location

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Services:
    """What the handles of one HierMem share."""

    database: Database
    counter: TokenCounter
    clock: Clock
    notes: NotesStore
    store: ThreadStore
    assembler: ContextAssembler
    pool: Pool


def build(
    location: Location,
    settings: HierMemSettings,
    *,
    counter: TokenCounter | None,
    clock: Clock | None,
    observer: Observer | None,
    thread_memory: ThreadMemory | None,
) -> Services:
    """Open a location and put its services together; nothing stays open when this raises.

    Raises:
        MissingExtraError: The backend needs an extra that is not installed.
        MigrationError: The location was written by a newer version.
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
    tell = _teller(observer)
    notes = NotesStore(database, tell=tell)
    memory = thread_memory or _built_in_memory(database, notes, counter, settings)
    return Services(
        database=database,
        counter=counter,
        clock=clock,
        notes=notes,
        store=ThreadStore(database, clock=clock, counter=counter, tell=tell),
        assembler=ContextAssembler(
            database,
            memory,
            counter=counter,
            window_exchanges=settings.window_exchanges,
            is_host_memory=thread_memory is not None,
            tell=tell,
        ),
        pool=Pool(),
    )


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
    if backend not in {"hybrid", "sqlite"}:
        reason = f"{backend!r} holds entries, which this version has none of; leave it out"
        raise ConfigurationError("backend", reason)


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
