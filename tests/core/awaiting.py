"""What the tests of the async mirror share: an open location, and work that must end."""

from __future__ import annotations

import threading

from hiermem_core import HierMem
from hiermem_core.testing import FakeClock, FakeEmbedder
from hiermem_core.tokens.counters import ApproximateCounter

WATCHDOG_SECONDS = 60


def opened(location, **options):
    given = {"counter": ApproximateCounter(), "clock": FakeClock(), "embedder": FakeEmbedder()}
    options = given | options
    return HierMem.open(location, **options)


def within_watch(work):
    """Run `work` in a thread and return what it returned; fail if it does not end."""
    outcome = []

    def run():
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - handed to the test's own thread
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(WATCHDOG_SECONDS)
    assert not thread.is_alive(), "a deadlock"
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]
