"""Callers of a working memory, and a memory service behind it."""

from __future__ import annotations

import pytest
from core.working.gated import Callers
from core.working.services import opened

from hiermem_core.testing import FakeClock

BACKENDS = ["in_memory", "sqlite", "hybrid"]


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture
def location(tmp_path):
    return tmp_path / "memory"


@pytest.fixture
def events():
    return []


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def hiermem(location, backend, events, clock):
    with opened(location, backend=backend, observer=events.append, clock=clock) as hiermem:
        yield hiermem


@pytest.fixture
def service(hiermem):
    service = hiermem.tenant("acme").memory
    service.bulk_insert(
        {"id": f"e{n}", "content": f"plum tea {n}", "metadata": {"n": [n]}} for n in range(5)
    )
    return service


@pytest.fixture
def callers():
    made = Callers()
    yield made
    made.ends()
