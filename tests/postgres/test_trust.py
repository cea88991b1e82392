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


def test_a_location_of_the_fifth_schema_is_counted_when_it_is_migrated(location):
    options = {"counter": ApproximateCounter(), "local_embedder": False}
    with HierMem.open(location, **options) as hiermem:
        hiermem.tenant("acme").memory.store("one")
        hiermem.tenant("acme").thread("t").append([{"role": "user", "content": "two"}])
        hiermem.tenant("other").thread("t").append([{"role": "tool", "content": "three"}])
    server, _, schema = location.partition("?schema=")
    kept = "SELECT tenant, entries, bytes FROM tenants ORDER BY tenant"
    with closing(connected(server)) as tables:
        tables.execute(f"SET search_path TO {schema}")
        before = tables.execute(kept).fetchall()
        tables.execute("UPDATE metadata SET value = '5' WHERE key = 'schema_version'")
        tables.execute("DELETE FROM tenants WHERE tenant = 'other'")
        tables.execute("DROP TABLE audit")
        tables.execute("ALTER TABLE memory_entries DROP COLUMN is_stale")
        for column in ("entries", "bytes", "minute_ms", "minute_writes"):
            tables.execute(f"ALTER TABLE tenants DROP COLUMN {column}")

    with HierMem.open(location, audit=True, **options) as hiermem:
        hiermem.tenant("other").thread("t").delete()
        audited = hiermem.tenant("other").audit()

    with closing(connected(server)) as tables:
        tables.execute(f"SET search_path TO {schema}")
        after = tables.execute(kept).fetchall()
    assert after[0] == before[0]
    assert after[1] == ("other", 0, 0)
    assert [one.operation for one in audited] == ["delete"]
