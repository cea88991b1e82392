"""Opening what a command works on."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Unpack

import hiermem_core as core

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hiermem_core.protocols import Observer
    from hiermem_core.service.vectorising import OnEmbedderChange
    from hiermem_core.settings import Options
    from hiermem_core.storage.location import Location


def find_place(location: str | None) -> Location:
    """Return where the memory is: as named on the line, else the setting, else the data folder.

    Raises:
        ConfigurationError: That is no place for one.
    """
    from hiermem_core.storage.location import resolve  # noqa: PLC0415 - not needed for --help

    return resolve(_named(location))


def is_stored(location: str | None) -> bool:
    """Tell whether there is a memory.

    Raises:
        ConfigurationError: That is no place for one.
        BackendUnavailableError: The server cannot be reached.
    """
    from hiermem_core.storage.migrations import holds_memory  # noqa: PLC0415 - not for --help

    return holds_memory(find_place(location))


@contextmanager
def opened(
    location: str | None,
    *,
    create: bool = False,
    on_embedder_change: OnEmbedderChange = "degrade",
    chat_model: str | None = None,
    observer: Observer | None = None,
    **options: Unpack[Options],
) -> Iterator[core.HierMem]:
    """Open the memory at a location for a block.

    One whose vectors are by an embedder of somebody's program is searched by keywords. The chat
    model of the settings is not used: a command that learns nothing must not import it.

    Raises:
        ConfigurationError: Nothing is stored there and `create` is false.
        EmbedderMismatchError: The vectors are by another embedder, and that is to raise.
    """
    settings = core.HierMemSettings.read(options).model_copy(update={"chat_model": None})
    with core.HierMem.open(
        _named(location),
        create=create,
        on_embedder_change=on_embedder_change,
        chat_model=chat_model,
        observer=observer,
        settings=settings,
    ) as hiermem:
        yield hiermem


def named_tenant(tenant: str | None) -> str:
    """Return the tenant: as named on the line, else the setting.

    Raises:
        InvalidInputError: None is named.
    """
    name = core.HierMemSettings.read().tenant if tenant is None else tenant
    if not name:
        reason = "none is named and there is no default; add --tenant NAME or set HIERMEM_TENANT"
        raise core.InvalidInputError("tenant", reason)
    return name


@contextmanager
def opened_tenant(
    location: str | None, tenant: str | None, *, create: bool = False, **options: Unpack[Options]
) -> Iterator[core.Tenant]:
    """Open the memory of a tenant for a block.

    Raises:
        InvalidInputError: No tenant is named.
        ConfigurationError: Nothing is stored there and `create` is false.
    """
    name = named_tenant(tenant)
    with opened(location, create=create, **options) as hiermem:
        yield hiermem.tenant(name)


def lacks_embedder() -> bool:
    """Tell whether search by meaning is wanted, and its extra is all that is missing."""
    from hiermem_core.embedding.minilm import default_embedder  # noqa: PLC0415 - not for --help

    settings = core.HierMemSettings.read()
    is_wanted = settings.local_embedder and settings.indexing and settings.backend != "sqlite"
    return is_wanted and default_embedder() is None


def require_embedder() -> None:
    """Raise where this command has no embedder to make vectors with.

    Raises:
        MissingExtraError: Its extra is not installed.
        ConfigurationError: It is switched off.
    """
    if lacks_embedder():
        raise core.MissingExtraError("embed", feature="making vectors")
    settings = core.HierMemSettings.read()
    if not settings.local_embedder or settings.backend == "sqlite":
        names = "HIERMEM_LOCAL_EMBEDDER or HIERMEM_BACKEND"
        raise core.ConfigurationError("embedder", f"is switched off; look at {names}")


def require_lasting() -> None:
    """Raise where an entry would be gone when the command ends.

    Raises:
        ConfigurationError: The backend keeps entries in memory.
    """
    if core.HierMemSettings.read().backend == "in_memory":
        reason = "in_memory keeps entries only while a program runs; unset HIERMEM_BACKEND"
        raise core.ConfigurationError("backend", reason)


def _named(location: str | None) -> str:
    """Return the location as it was named, with the password that it may hold."""
    named = core.HierMemSettings.read().location if location is None else location
    return _data_folder() if named is None else named


def _data_folder() -> str:
    import platformdirs  # noqa: PLC0415 - not needed for --help

    return str(platformdirs.user_data_path("hiermem"))
