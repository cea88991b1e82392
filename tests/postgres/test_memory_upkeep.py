"""Forgetting, health, vectors and their upkeep, on PostgreSQL."""

from __future__ import annotations

import pytest
from core.memory_backends import on
from sqlalchemy import event

from hiermem_core.testing.contracts.embedders import EmbedderContract
from hiermem_core.testing.contracts.embedders_reindex import ReindexContract
from hiermem_core.testing.contracts.forgetting import ForgettingContract
from hiermem_core.testing.contracts.forgetting_in_flight import ForgettingInFlightContract
from hiermem_core.testing.contracts.health import FailingRowsContract, HealthContract
from hiermem_core.testing.contracts.indexing import IndexContract, WaitingContract
from hiermem_core.testing.contracts.observing import ObservingContract, RolledBackContract


class TestForgetting(ForgettingContract):
    opened = on("postgres")


class TestForgettingInFlight(ForgettingInFlightContract):
    opened = on("postgres")


class TestHealth(HealthContract):
    opened = on("postgres")


class TestObserving(ObservingContract):
    opened = on("postgres")


class TestRolledBack(RolledBackContract):
    opened = on("postgres")


class TestReadOnlyServer(FailingRowsContract):
    """Every connection refuses to write, as a standby does."""

    opened = on("postgres")

    @pytest.fixture
    def unwritable(self, hiermem):
        def refuse(connection, *ignored):
            connection.execute("SET default_transaction_read_only = on")

        return lambda: event.listen(hiermem._services.database._engine, "checkout", refuse)


class TestEmbedders(EmbedderContract):
    opened = on("postgres")


class TestReindex(ReindexContract):
    opened = on("postgres")


class TestWaiting(WaitingContract):
    opened = on("postgres")


class TestIndex(IndexContract):
    opened = on("postgres")
