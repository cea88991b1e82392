"""What adapters hold: a tenant's live handle, which copies share and dumps only name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from hiermem_core import HierMem, MissingIdentityError, Tenant

if TYPE_CHECKING:
    from collections.abc import Mapping

MEMORY = ":memory:"
PRIVATE_TENANT = "llamaindex"
"""The tenant of what lives in one process."""


class Live:
    """A pydantic object whose copies share its live handles; it pickles by its dump."""

    def __copy__(self) -> Self:
        """Return an object on the same live handles."""
        raise NotImplementedError

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return an object on the same live handles."""
        return self.__copy__()

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return an object on the same live handles, with some fields replaced."""
        del deep
        twin = self.__copy__()
        for name, value in (update or {}).items():
            setattr(twin, name, value)
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by `to_dict`."""
        made: Any = self
        return type(made).from_dict, (made.to_dict(),)


def tenant_of(
    tenant: Tenant | None, location: str | None = None, tenant_id: str | None = None
) -> Tenant:
    """Return the handle that an adapter is given: itself, by its place, or one in this process.

    Raises:
        MissingIdentityError: A place without the name of a tenant.
    """
    if tenant is not None:
        return tenant
    if location is None:
        return HierMem.open(MEMORY).tenant(tenant_id or PRIVATE_TENANT)
    if not tenant_id:
        raise MissingIdentityError("tenant_id")
    return (HierMem.opened(location) or HierMem.open(location)).tenant(tenant_id)


def dumped_tenant(data: Mapping[str, Any]) -> Tenant:
    """Return the handle that a dump names.

    Raises:
        ConfigurationError: Nothing is stored at the dump's location.
    """
    return hiermem_of(data.get("location"))[0].tenant(data.get("tenant") or PRIVATE_TENANT)


def place_of(tenant: Tenant) -> dict[str, Any]:
    """Return what a dump says of a tenant; no location for one in this process."""
    location = None if tenant.location == MEMORY else tenant.location
    return {"location": location, "tenant": tenant.name}


def hiermem_of(location: str | None) -> tuple[HierMem, HierMem | None]:
    """Return the HierMem of a dump, and the same again if it lives for the caller alone.

    Raises:
        ConfigurationError: Nothing is stored at the location.
    """
    if location is None:
        hiermem = HierMem.open(MEMORY)
        return hiermem, hiermem
    return HierMem.opened(location) or HierMem.open(location, create=False), None
