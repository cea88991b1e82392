"""Memory services whose searches are counted."""

from __future__ import annotations

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.models.events import SearchServed
from hiermem_core.testing import FakeClock, FakeEmbedder


def opened(location, **options):
    given = {"counter": ApproximateCounter(), "embedder": FakeEmbedder(), "clock": FakeClock()}
    return HierMem.open(location, **given | options)


def loads(events):
    """Count the searches that reached the service."""
    return sum(isinstance(event, SearchServed) for event in events)
