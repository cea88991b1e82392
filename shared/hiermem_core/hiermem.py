"""The facade: opening a location."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack
from weakref import WeakSet

from hiermem_core.errors import ConfigurationError
from hiermem_core.exporting.backups import back_up
from hiermem_core.given import Given
from hiermem_core.models.ids import check_name
from hiermem_core.services import Services, build
from hiermem_core.storage.location import resolve
from hiermem_core.storage.migrations import holds_memory
from hiermem_core.tenant import Tenant

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from hiermem_core.exporting.backups import BackupReport
    from hiermem_core.models.health import Health
    from hiermem_core.models.quotas import Quota
    from hiermem_core.models.redaction import Redactor
    from hiermem_core.models.results import DoctorReport, ReindexReport
    from hiermem_core.pool import Pool
    from hiermem_core.protocols import (
        Clock,
        Codec,
        Observer,
        ThreadMemory,
        TokenCounter,
        UsageGuard,
    )
    from hiermem_core.service.vectorising import OnEmbedderChange
    from hiermem_core.settings import HierMemSettings, Options
    from hiermem_core.storage.location import Location

_opened: WeakSet[Services] = WeakSet()

logging.getLogger("hiermem_core").addHandler(logging.NullHandler())


class HierMem:
    """One memory at one location, for any number of tenants, threads and OS threads.

    Open it once per process with `HierMem.open` and share it. It may be used inside a running
    event loop; `AsyncHierMem` is its mirror for `await`.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        _opened.add(services)

    @classmethod
    def open(
        cls,
        location: str | os.PathLike[str] | None = None,
        *,
        counter: TokenCounter | None = None,
        clock: Clock | None = None,
        observer: Observer | None = None,
        thread_memory: ThreadMemory | None = None,
        chat_model: Any = None,
        usage_guard: UsageGuard | None = None,
        embedder: Any = None,
        redactor: Redactor | None = None,
        codec: Codec | None = None,
        quota: Quota | None = None,
        tracer_provider: Any = None,
        meter_provider: Any = None,
        on_embedder_change: OnEmbedderChange = "raise",
        create: bool = True,
        settings: HierMemSettings | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Open a location, and create it unless `create` is false.

        Args:
            location: A folder, a `.db` file, a `postgresql+psycopg://` URL, or `":memory:"`;
                default: the setting, which also has the password of the server that it names where
                a URL leaves it out, as those in dumps do.
            counter: Counts tokens; default: tiktoken where its ranks are at hand, else estimates.
            observer: Told of every committed change.
            thread_memory: Replaces the built-in strategy.
            chat_model: Learns the notes of threads, in the background: a `ChatModel`, one of
                LangChain or LlamaIndex, or a function from messages to a text.
            usage_guard: Asked before each call of the chat model, and told after it.
            embedder: An `Embedder`, or one of LangChain, LlamaIndex or Chroma, or a function from
                texts to vectors; default: the local one, where the extra `embed` is installed.
            redactor: Sees every text before it is kept, embedded, sent to a chat model, logged or
                traced, and returns what stands in its place, or a `Reject`.
            codec: Encodes what a location holds from its creation on, such as a `FernetCodec`;
                nothing is searched by keywords then.
            quota: What each tenant may keep and write.
            tracer_provider: Of OpenTelemetry; default: the global one, where the application has
                set one before.
            meter_provider: As `tracer_provider`.
            on_embedder_change: `"degrade"` opens a location with another embedder than its
                vectors are by: it is searched by keywords until `reindex`.
            settings: Read from the environment when `None`; `options` win over it.

        Raises:
            ConfigurationError: The location or an option cannot be used, or the location was made
                with another codec, or with none.
            MissingExtraError: The backend needs an extra that is not installed.
            MigrationError: The location was written by a newer version.
            BackendUnavailableError: The server cannot be reached.
            EmbedderMismatchError: The location's vectors are by another embedder.
        """
        settings = _settings(settings, options)
        place = _place(location, settings)
        if not create and not holds_memory(place):
            reason = f"nothing is stored at {place}; create it first, or run: hiermem init"
            raise ConfigurationError("location", reason)
        given = Given(
            counter=counter,
            clock=clock,
            observer=observer,
            thread_memory=thread_memory,
            chat_model=chat_model,
            usage_guard=usage_guard,
            embedder=embedder,
            redactor=redactor,
            codec=codec,
            quota=quota,
            tracer_provider=tracer_provider,
            meter_provider=meter_provider,
            on_embedder_change=on_embedder_change,
        )
        return cls(build(place, settings, given))

    @classmethod
    def opened(cls, location: str | os.PathLike[str]) -> HierMem | None:
        """Return the HierMem this process already holds open at a location, if there is one.

        Args:
            location: As for `open`; the password of a server's may be left out, as `location`
                leaves it out.
        """
        place = resolve(location)
        found = (
            services
            for services in list(_opened)
            if services.database.location.is_named_by(place) and not services.database.is_closed
        )
        services = None if place.is_memory else next(found, None)
        return None if services is None else cls(services)

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

    def tenant(self, name: str, *, actor: str | None = None) -> Tenant:
        """Return the handle of a tenant; tenants need no creation.

        Args:
            actor: Who acts, for the audit log.

        Raises:
            MissingIdentityError: The name is empty.
        """
        self._services.database.check_open()
        who = None if actor is None else check_name("actor", actor)
        return Tenant(self._services, check_name("tenant", name), actor=who)

    def health(self) -> Health:
        """Write, read, find and delete a canary in each store, that no tenant sees, and report.

        Raises:
            ClosedError: It was closed; nothing else is raised.
        """
        return self._services.health.run()

    def doctor(self, *, repair: bool = False, tenant: str | None = None) -> DoctorReport:
        """Compare rows, keyword rows, vectors and the vector index, and report.

        Args:
            repair: Make them agree, embed what waits, and try anew what has failed.
            tenant: Only of this one; default: of all.

        Raises:
            BackendError: The database fails.
            EmbedderMismatchError: The location's vectors are by another embedder.
        """
        name = None if tenant is None else check_name("tenant", tenant)
        self._services.database.check_open()
        return self._services.doctoring.run(repair=repair, tenant=name)

    def reindex(
        self, embedder: Any = None, *, progress: Callable[[int, int], None] | None = None
    ) -> ReindexReport:
        """Make the vectors of all tenants by an embedder, from the stored text.

        By another embedder than before they are made beside the old ones, which answer until all
        are there and count in one step; from then on this HierMem uses the new one. By the same
        embedder those are made that are missing. Vectors that were given with entries are replaced
        too, if the embedder is another. Cut off, it goes on where it was when it is called again;
        what is written or deleted meanwhile is in.

        Args:
            embedder: As in `open`; default: the one that was given there.
            progress: Called after each batch with the rows done and all rows; may raise to end
                the work for now.

        Raises:
            ConfigurationError: There is no embedder.
            ConflictError: Another reindex runs.
            BackendError: The embedder fails at everything, or the database does.
            DimensionMismatchError: The embedder's vectors are not of the length it declares.
        """
        self._services.database.check_open()
        return self._services.reindexing.run(embedder, progress)

    def backup(self, target: str | os.PathLike[str], *, replace: bool = False) -> BackupReport:
        """Write a backup of the whole location, all tenants, as of one moment.

        Others may read and write meanwhile. It is a folder, which comes whole or not at all, with
        a checksum that `restore_backup` verifies. The vector index is left out, as it is built anew
        from the vectors, which are in.

        Args:
            target: The folder to be made.
            replace: Where the name is taken, keep what is there under another, which the report
                says.

        Raises:
            ConfigurationError: The name is taken, entries are kept in memory only, or the location
                is on a server, which has its own way.
            ConflictError: Another backup to the same folder runs.
            BackendError: It cannot be written. What bore the name is there.
        """
        self._services.database.check_open()
        if self._services.memories.backend is not self._services.turns:
            reason = "in_memory keeps entries out of the files; use Tenant.export"
            raise ConfigurationError("backend", reason)
        return back_up(self._services.database, Path(target), replace=replace)

    @property
    def updates(self) -> Updates:
        """The updates of notes, which `resume` finds again after a crash."""
        return Updates(self._services)

    def when_idle(self, timeout: float | None = None) -> bool:
        """Wait until this process has no answer left to learn from.

        Returns:
            Whether that is so: false after `timeout` seconds, or in an update at once.

        Raises:
            ClosedError: It was closed.
        """
        return self._services.updates.when_idle(timeout)

    def close(self, timeout: float | None = None) -> None:
        """End the pool and close the files. Idempotent; objects given by the caller stay open.

        Nothing is lost that was not learned: it is due at the next open.

        Args:
            timeout: Seconds to wait for what is running; `None`: until it ends, but for a chat
                model's answer, which is waited for five seconds at most.
        """
        self._services.close(timeout)

    def __enter__(self) -> Self:
        """Return itself; the block's end closes it."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Close."""
        self.close()

    def __repr__(self) -> str:
        """Name the location."""
        return f"HierMem({self.location!r})"


class Updates:
    """The updates of notes of one HierMem."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def resume(self, tenant: str | None = None) -> int:
        """Have every thread learned that is due, of one tenant or all; return how many those are.

        For after a crash, and for scheduled jobs; a running application learns by `save_context`.
        With `inline_updates` they are learned when this returns, else `HierMem.when_idle` waits
        for that.

        Raises:
            ConfigurationError: There is no chat model, or a thread memory of the caller's own.
        """
        name = None if tenant is None else check_name("tenant", tenant)
        return self._services.updates.resume(name)


def _settings(settings: HierMemSettings | None, options: Options) -> HierMemSettings:
    from hiermem_core.settings import HierMemSettings  # noqa: PLC0415 - paid for at the open only

    if settings is None:
        return HierMemSettings.read(options)
    return HierMemSettings.read({**settings.model_dump(), **options}) if options else settings


def _place(location: str | os.PathLike[str] | None, settings: HierMemSettings) -> Location:
    place = resolve(_named(location, settings))
    if settings.location is None or place.server is None:
        return place
    configured = resolve(settings.location)
    return configured if configured.is_named_by(place) else place


def _named(
    location: str | os.PathLike[str] | None, settings: HierMemSettings
) -> str | os.PathLike[str]:
    if location is None and settings.location is None:
        raise ConfigurationError("location", "is missing; name a folder, a .db file or :memory:")
    return settings.location or "" if location is None else location
