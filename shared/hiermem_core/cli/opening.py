"""Opening what a command works on."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import hiermem_core as core

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def opened(location: str | None, *, create: bool = False) -> Iterator[core.HierMem]:
    """Open the memory at a location for a block.

    Args:
        location: As given on the line; `None`: the setting, else the user's data folder.

    Raises:
        ConfigurationError: Nothing is stored there and `create` is false.
    """
    from hiermem_core.storage.location import resolve  # noqa: PLC0415 - imports SQLAlchemy

    settings = core.HierMemSettings.read()
    place = location if location is not None else settings.location or _data_folder()
    if not create and not resolve(place).exists:
        reason = f"nothing is stored at {resolve(place)}; run: hiermem init"
        raise core.ConfigurationError("location", reason)
    with core.HierMem.open(place, settings=settings, create=create) as hiermem:
        yield hiermem


@contextmanager
def opened_tenant(
    location: str | None, tenant: str | None, *, create: bool = False
) -> Iterator[core.Tenant]:
    """Open the memory of a tenant for a block.

    Args:
        tenant: As given on the line; `None`: the setting.

    Raises:
        InvalidInputError: No tenant is named.
        ConfigurationError: Nothing is stored there and `create` is false.
    """
    name = tenant if tenant is not None else core.HierMemSettings.read().tenant
    if not name:
        reason = "none is named and there is no default; add --tenant NAME or set HIERMEM_TENANT"
        raise core.InvalidInputError("tenant", reason)
    with opened(location, create=create) as hiermem:
        yield hiermem.tenant(name)


def _data_folder() -> str:
    import platformdirs  # noqa: PLC0415 - not needed for --help

    return str(platformdirs.user_data_path("hiermem"))
