"""Quotas, redaction, trust, the audit log and two tenants with equal ids, on PostgreSQL."""

from __future__ import annotations

import secrets

from core.memory_backends import on

from hiermem_core.testing.contracts import (
    AuditContract,
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
        url, _, schema = location.replace("+psycopg", "").partition("?schema=")

        def places(text):
            with psycopg.connect(url) as connection:
                tables = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
                names = [name for (name,) in connection.execute(tables, (schema,))]
                return [name for name in names if _holds(connection, schema, name, text)]

        return places


class TestLeaks(LeakContract):
    @pytest.fixture
    def open_at(self, postgres_database):
        handles, schemas = [], []

        def open_one(folder, **options):
            schemas.append(f"test_{secrets.token_hex(6)}")
            place = f"{postgres_database}?schema={schemas[-1]}"
            given = OPTIONS["postgres"] | options
            handles.append(HierMem.open(place, counter=ApproximateCounter(), **given))
            return handles[-1]

        yield open_one
        for handle in handles:
            handle.close()
        with psycopg.connect(postgres_database.replace("+psycopg", "")) as connection:
            for schema in schemas:
                connection.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(schema)))


def _holds(connection, schema, table, text):
    query = SQL("SELECT count(*) FROM {} AS held WHERE position(%s IN held::text) > 0")
    found = connection.execute(query.format(Identifier(schema, table)), (text,)).fetchone()
    return found[0] > 0
