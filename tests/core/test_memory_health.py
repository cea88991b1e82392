"""Health, statistics and events, on each backend."""

from __future__ import annotations

import pytest
from core.memory_backends import EVERY, PERSISTENT, on

from hiermem_core.testing.contracts.health import FailingRowsContract, HealthContract
from hiermem_core.testing.contracts.observing import ObservingContract, RolledBackContract


class TestHealth(HealthContract):
    opened = on(*EVERY)


class TestObserving(ObservingContract):
    opened = on(*EVERY)


class TestRolledBack(RolledBackContract):
    opened = on(*PERSISTENT)


class TestFullDisk(FailingRowsContract):
    """The database may not grow any more, as on a full disk."""

    opened = on(*PERSISTENT)

    @pytest.fixture
    def unwritable(self, hiermem):
        def fill_up():
            engine = hiermem._services.database._engine
            with engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA query_only=ON")

        return fill_up
