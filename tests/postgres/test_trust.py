"""Quotas, redaction, trust, the audit log and two tenants with equal ids, on PostgreSQL."""

from __future__ import annotations

import secrets
from contextlib import closing

import pytest
from core.memory_backends import OPTIONS, on

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing.contracts import (
    AuditContract,
    LeakContract,
    PersistentAuditContract,
    ProvenanceContract,
    QuotaContract,
    RedactionContract,
)


class TestQuotas(QuotaContract):
    opened = on("postgres")


class TestProvenance(ProvenanceContract):
    opened = on("postgres")


class TestAudit(AuditContract, PersistentAuditContract):
    opened = on("postgres")


class TestRedaction(RedactionContract):
    opened = on("postgres")

    @pytest.fixture
    def places_with(self, location):
        server, _, schema = location.partition("?schema=")

        def places(text):
            with closing(connected(server)) as connection:
                tables = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
                names = [name for (name,) in connection.execute(tables, (schema,))]
                return [name for name in names if holds(connection, f"{schema}.{name}", text)]

        return places


class TestLeaks(LeakContract):
    @pytest.fixture
    def open_at(self, postgres_database):
        handles, schemas = [], []

        def open_one(_folder, **options):
            schemas.append(f"test_{secrets.token_hex(6)}")
            place = f"{postgres_database}?schema={schemas[-1]}"
            given = OPTIONS["postgres"] | options
            handles.append(HierMem.open(place, counter=ApproximateCounter(), **given))
            return handles[-1]

        yield open_one
        for handle in handles:
            handle.close()
        with closing(connected(postgres_database)) as connection:
            for schema in schemas:
                connection.execute(f"DROP SCHEMA {schema} CASCADE")


def connected(url):
    import psycopg

    return psycopg.connect(url.replace("+psycopg", ""), autocommit=True)


def holds(connection, table, text):
    query = f"SELECT count(*) FROM {table} AS held WHERE position(%s IN held::text) > 0"
    return connection.execute(query, (text,)).fetchone()[0] > 0
