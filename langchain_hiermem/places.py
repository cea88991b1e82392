"""Where the namespaces of a LangGraph store lie: in one tenant, or in one for each first label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from hiermem_core import MissingIdentityError
from langchain_hiermem.labels import encoded, labels_of

if TYPE_CHECKING:
    from hiermem_core import Embedder, HierMem, MemoryService, Tenant
    from hiermem_core.pool import Pool
    from langchain_hiermem.labels import Labels


class Place(NamedTuple):
    """A namespace of a tenant.

    Attributes:
        outside: The labels by which the tenant's namespaces begin in the store.
        inside: How many labels of its namespaces the store does not show.
    """

    memory: MemoryService
    tenant: str
    labels: Labels
    outside: Labels
    inside: int

    @property
    def name(self) -> str:
        """The namespace of what lies in it."""
        return encoded(self.labels)

    @property
    def below(self) -> str | None:
        """The namespace of what lies in it and below; `None`: everything."""
        return encoded(self.labels) if self.labels else None

    def shown(self, namespace: str) -> Labels:
        """Return one of the tenant's namespaces as the store shows it."""
        return self.outside + labels_of(namespace)[self.inside :]


class Places(Protocol):
    """Find the tenant and namespace of labels."""

    @property
    def pool(self) -> Pool:
        """The threads that async callers run on."""

    @property
    def embedder(self) -> Embedder | None:
        """What makes vectors, if anything does."""

    def of(self, labels: Labels) -> Place:
        """Return where labels lie.

        Raises:
            MissingIdentityError: They name no tenant.
        """


@dataclass(frozen=True, slots=True)
class OneTenant:
    """Everything lies in one tenant, below a root that is not shown."""

    tenant: Tenant
    root: Labels = ()

    @property
    def pool(self) -> Pool:
        """The threads that async callers run on."""
        return self.tenant.pool

    @property
    def embedder(self) -> Embedder | None:
        """What makes vectors, if anything does."""
        return self.tenant.memory.embedder

    def of(self, labels: Labels) -> Place:
        """Return where labels lie."""
        tenant = self.tenant
        return Place(tenant.memory, tenant.name, (*self.root, *labels), (), len(self.root))


@dataclass(frozen=True, slots=True)
class TenantByLabel:
    """The first label of every namespace is the tenant."""

    hiermem: HierMem

    @property
    def pool(self) -> Pool:
        """The threads that async callers run on."""
        return self.hiermem.pool

    @property
    def embedder(self) -> Embedder | None:
        """What makes vectors, if anything does; it is one for all tenants."""
        return self.hiermem.tenant("any").memory.embedder

    def of(self, labels: Labels) -> Place:
        """Return where labels lie.

        Raises:
            MissingIdentityError: There is no label.
        """
        if not labels:
            raise MissingIdentityError("tenant")
        tenant = self.hiermem.tenant(labels[0])
        return Place(tenant.memory, tenant.name, tuple(labels[1:]), (tenant.name,), 0)
