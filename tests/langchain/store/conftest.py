"""A LangGraph store of a tenant and one of all tenants, on every backend."""

from __future__ import annotations

import pytest

from hiermem_core import HierMem
from hiermem_core.testing import FakeEmbedder
from langchain_hiermem import HierMemStore

BACKENDS = ("sqlite", "chroma", "hybrid")


@pytest.fixture(params=BACKENDS)
def hiermem(request, location, clock):
    options = {"backend": request.param, "embedder": FakeEmbedder(), "clock": clock}
    with HierMem.open(location, **options) as hiermem:
        yield hiermem


@pytest.fixture
def store(hiermem):
    return HierMemStore(hiermem.tenant("acme"))


@pytest.fixture
def shared(hiermem):
    return HierMemStore.per_tenant(hiermem)
