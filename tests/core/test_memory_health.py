"""Health, statistics and events, on each backend."""

from __future__ import annotations

import pytest
from core.memory_backends import EVERY, PERSISTENT, on
from sqlalchemy import event

from hiermem_core.testing.contracts.health import FailingRowsContract, HealthContract
from hiermem_core.testing.contracts.observing import ObservingContract, RolledBackContract


class TestHealth(HealthContract):
    opened = on(*EVERY)


class TestObserving(ObservingContract):
    opened = on(*EVERY)


class TestRolledBack(RolledBackContract):
    opened = on(*PERSISTENT)


class TestReadOnlyFile(FailingRowsContract):
    """Every connection refuses to write, as on a file system that was remounted read-only."""

    opened = on(*PERSISTENT)

    @pytest.fixture
    def unwritable(self, hiermem):
        def refuse(connection, *ignored):
            connection.execute("PRAGMA query_only=ON")

        return lambda: event.listen(hiermem._services.database._engine, "checkout", refuse)
