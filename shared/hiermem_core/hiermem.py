"""The facade: opening a location, and the handles of tenants and threads."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Self, Unpack
from weakref import WeakValueDictionary

from hiermem_core.clock import SystemClock
from hiermem_core.context.assembler import ContextAssembler
from hiermem_core.errors import ConfigurationError, InvalidInputError, MissingExtraError
from hiermem_core.models.health import Health, TenantStats
from hiermem_core.models.ids import check_name
from hiermem_core.models.threads import TurnList
from hiermem_core.pool import Pool
from hiermem_core.settings import HierMemSettings, Options
from hiermem_core.storage.database import Database
from hiermem_core.storage.location import resolve
from hiermem_core.storage.migrations import SCHEMA_VERSION, prepare
from hiermem_core.threads import reading
from hiermem_core.threads.pruning import prune
from hiermem_core.threads.rows import to_milliseconds
from hiermem_core.threads.sliding_window import SlidingWindow
from hiermem_core.threads.store import ThreadStore
from hiermem_core.tokens.tiktoken_counter import default_counter

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import timedelta
    from typing import Any

    from hiermem_core.context.assembler import Current
    from hiermem_core.context.fitting import OverBudget
    from hiermem_core.models.context import Context
    from hiermem_core.models.events import Event
    from hiermem_core.models.threads import ModelInfo, Profile, PruneReport, ThreadInfo
    from hiermem_core.models.turns import Status, Turn
    from hiermem_core.protocols import Clock, Observer, ThreadMemory, TokenCounter
    from hiermem_core.threads.drafts import TurnLike

_opened: WeakValueDictionary[str, HierMem] = WeakValueDictionary()
_logger = logging.getLogger("hiermem_core")
_logger.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class Services:
    """What the handles of one HierMem share."""

    database: Database
    counter: TokenCounter
    clock: Clock
    store: ThreadStore
    assembler: ContextAssembler
    pool: Pool


class HierMem:
    """One memory at one location, for any number of tenants, threads and OS threads.

    Open it once per process with `HierMem.open` and share it. It may be used inside a running
    event loop; `AsyncHierMem` is its mirror for `await`.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        if not services.database.location.is_memory:
            _opened[self.location] = self

    @classmethod
    def open(
        cls,
        location: str | os.PathLike[str] | None = None,
        *,
        counter: TokenCounter | None = None,
        clock: Clock | None = None,
        observer: Observer | None = None,
        thread_memory: ThreadMemory | None = None,
        create: bool = True,
        settings: HierMemSettings | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Open a location, and create it unless `create` is false.

        Args:
            location: A folder, a `.db` file, or `":memory:"`; default: the setting.
            counter: Counts tokens; default: tiktoken where its ranks are at hand, else estimates.
            observer: Told of every committed change.
            thread_memory: Replaces the built-in strategy.
            settings: Read from the environment when `None`; `options` win over it.

        Raises:
            ConfigurationError: The location or an option cannot be used.
            MissingExtraError: The backend needs an extra that is not installed.
            MigrationError: The location was written by a newer version.
        """
        settings = _settings(settings, options)
        _check_backend(settings.backend)
        place = resolve(_named(location, settings))
        if not create and not place.exists:
            raise ConfigurationError("location", f"nothing is stored at {place}; create it first")
        clock = clock or SystemClock()
        counter = counter or default_counter(
            settings.encoding,
            cache_dir=settings.tiktoken_cache_dir,
            factor=settings.token_factor,
            download=settings.tiktoken_download,
        )
        database = Database(
            place, durability=settings.durability, busy_seconds=settings.busy_seconds
        )
        try:
            prepare(database, now_ms=to_milliseconds(clock.now()))
        except BaseException:
            database.close()
            raise
        memory = thread_memory or SlidingWindow(
            database, counter=counter, window_exchanges=settings.window_exchanges
        )
        tell = _teller(observer)
        return cls(
            Services(
                database=database,
                counter=counter,
                clock=clock,
                store=ThreadStore(database, clock=clock, counter=counter, tell=tell),
                assembler=ContextAssembler(database, memory, counter=counter, tell=tell),
                pool=Pool(),
            )
        )

    @classmethod
    def opened(cls, location: str | os.PathLike[str]) -> HierMem | None:
        """Return the HierMem this process already holds open at a location, if there is one."""
        found = _opened.get(str(resolve(location)))
        return None if found is None or found.is_closed else found

    @property
    def is_closed(self) -> bool:
        """Tell whether `close` was called."""
        return self._services.database.is_closed

    @property
    def location(self) -> str:
        """The resolved location; never holds a password."""
        return str(self._services.database.location)

    @property
    def pool(self) -> Pool:
        """The private threads that async callers run sync methods on."""
        return self._services.pool

    @property
    def counter(self) -> TokenCounter:
        """The counter whose figures are stored with the turns."""
        return self._services.counter

    def tenant(self, name: str) -> Tenant:
        """Return the handle of a tenant; tenants need no creation.

        Raises:
            MissingIdentityError: The name is empty.
        """
        self._services.database.check_open()
        return Tenant(self, self._services, check_name("tenant", name))

    def health(self) -> Health:
        """Write, read and delete a canary that no tenant sees, and report."""
        return self._services.database.health()

    def close(self) -> None:
        """Close the files and end the pool. Idempotent; objects given by the caller stay open."""
        self._services.pool.close()
        self._services.database.close()

    def __enter__(self) -> Self:
        """Return itself; the block's end closes it."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Close."""
        self.close()

    def __repr__(self) -> str:
        """Name the location."""
        return f"HierMem({self.location!r})"


class Tenant:
    """Everything of one tenant. Another tenant's things do not exist here."""

    def __init__(self, hiermem: HierMem, services: Services, name: str) -> None:
        self.hiermem = hiermem
        self.name = name
        self._services = services

    def thread(self, thread_id: str) -> Thread:
        """Return the handle of a thread; the first append creates it."""
        return Thread(self, self._services, check_name("thread", thread_id))

    def threads(self, *, limit: int = 1000, offset: int = 0) -> list[ThreadInfo]:
        """Return this tenant's threads in the order of their first turn."""
        _check_page(limit, offset)
        with self._services.database.read() as connection:
            heads = reading.heads_of(connection, self.name, limit=limit, offset=offset)
        return [head.info() for head in heads]

    def stats(self) -> TenantStats:
        """Return what this tenant has stored."""
        counter = self._services.counter
        with self._services.database.read() as connection:
            sums = reading.sums_of(connection, self.name, counter.id)
        return TenantStats(
            tenant_id=self.name,
            **sums,
            location=self.hiermem.location,
            schema=SCHEMA_VERSION,
            counter=counter.id,
            exact_counter=getattr(counter, "exact", True),
        )

    def __repr__(self) -> str:
        """Name tenant and location."""
        return f"Tenant({self.name!r}, {self.hiermem!r})"


class Thread:
    """One conversation of one tenant."""

    def __init__(self, tenant: Tenant, services: Services, thread_id: str) -> None:
        self.tenant = tenant
        self.id = thread_id
        self._services = services
        self._key = (tenant.name, thread_id)

    def append(
        self,
        turns: Sequence[TurnLike],
        *,
        expected_seq: int | None = None,
        removing: Sequence[str] = (),
    ) -> TurnList:
        """Store turns at the end, as one contiguous batch, and return them as stored.

        Repeating an append is harmless where turns have ids. An empty batch does nothing.

        Args:
            turns: `TurnDraft` values or `{"role": ..., "content": ...}` mappings.
            expected_seq: Store only if this is the newest seq.
            removing: Ids of active turns that are archived in the same transaction.

        Raises:
            InvalidInputError: A turn cannot be stored. Nothing was stored.
            NotFoundError: A turn to remove is not there. Nothing was stored.
            TurnConflictError: An id is stored with other content. Nothing was stored.
            VersionConflictError: `expected_seq` is not the newest seq. Nothing was stored.
        """
        return self._services.store.append(
            *self._key, turns, expected_seq=expected_seq, removing=removing
        )

    def turns(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        last: int | None = None,
        status: Status = "active",
    ) -> TurnList:
        """Return turns in ascending seq; with `last`, the newest that many.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        if last is not None:
            _check_page(last, 0)
        with self._services.database.read() as connection:
            head = reading.require_head(connection, *self._key)
            return reading.turns_between(
                connection,
                head.number,
                after=after,
                before=before,
                last=last,
                archived=status == "archived",
            )

    def info(self) -> ThreadInfo:
        """Return counts and times of the thread, without reading its turns.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        with self._services.database.read() as connection:
            return reading.require_head(connection, *self._key).info()

    def edit_turn(self, turn_id: str, content: str, *, user_id: str | None = None) -> Turn:
        """Replace a turn's content; id, seq and tool calls stay, the revision grows.

        Raises:
            NotFoundError: There is no such thread or active turn.
        """
        return self._services.store.edit_turn(*self._key, turn_id, content, user_id=user_id)

    def delete_turns(self, turn_ids: Iterable[str]) -> dict[str, bool]:
        """Delete active turns; say for each id whether there was one."""
        return self._services.store.delete_turns(*self._key, turn_ids)

    def replace(self, turns: Sequence[TurnLike] | None) -> TurnList:
        """Give the thread new turns in one transaction; the old ones are archived.

        `None` changes nothing; an empty list empties the thread. Turns that stand at the same
        place already are left as they are.
        """
        if turns is None:
            return TurnList()
        return self._services.store.replace(*self._key, turns)

    def prune(
        self,
        *,
        max_turns: int | None = None,
        max_age: timedelta | None = None,
        max_bytes: int | None = None,
        dry_run: bool = False,
    ) -> PruneReport:
        """Delete the oldest whole exchanges until the thread is within every limit given.

        The newest exchange and standing turns stay.
        """
        return prune(
            self._services.store,
            self._key,
            self.turns(),
            max_turns=max_turns,
            oldest=None if max_age is None else self._services.clock.now() - max_age,
            max_bytes=max_bytes,
            dry_run=dry_run,
        )

    def delete(self) -> bool:
        """Delete the thread with all its turns; say whether there was one."""
        return self._services.store.delete_thread(*self._key)

    def context(
        self,
        *,
        current: Current = None,
        budget_tokens: int | None = None,
        model: ModelInfo | None = None,
        system: str = "",
        tools: Sequence[Mapping[str, Any]] = (),
        prefix_tokens: int = 0,
        profile: Profile | None = None,
        output_reserve: int | None = None,
        on_over_budget: OverBudget = "truncate",
    ) -> Context:
        """Return what a model call gets of this thread, in at most the budget.

        Never writes; calls no model. See `ContextAssembler.build` for the arguments.

        Raises:
            ThreadNotFoundError: No such thread, and no `current`.
            BudgetExceededError: What must be kept does not fit.
        """
        return self._services.assembler.build(
            tenant_id=self.tenant.name,
            thread_id=self.id,
            current=current,
            budget_tokens=budget_tokens,
            model=model,
            system=system,
            tools=tools,
            prefix_tokens=prefix_tokens,
            profile=profile,
            output_reserve=output_reserve,
            on_over_budget=on_over_budget,
        )

    def __repr__(self) -> str:
        """Name thread and tenant."""
        return f"Thread({self.id!r}, {self.tenant!r})"


def _settings(settings: HierMemSettings | None, options: Options) -> HierMemSettings:
    if settings is None:
        return HierMemSettings.read(options)
    return HierMemSettings.read({**settings.model_dump(), **options}) if options else settings


def _named(
    location: str | os.PathLike[str] | None, settings: HierMemSettings
) -> str | os.PathLike[str]:
    if location is None and settings.location is None:
        raise ConfigurationError("location", "is missing; name a folder, a .db file or :memory:")
    return settings.location or "" if location is None else location


def _check_backend(backend: str) -> None:
    if backend == "chroma" and find_spec("chromadb") is None:
        raise MissingExtraError("chroma", feature='backend="chroma"')


def _check_page(limit: int, offset: int) -> None:
    for name, figure in (("limit", limit), ("offset", offset)):
        if figure < 0:
            raise InvalidInputError(name, "must be at least 0")


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
