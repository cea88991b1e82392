"""Sources and trust, on each backend."""

from __future__ import annotations

from core.memory_backends import EVERY, on
from sqlalchemy import select

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.storage.tables import is_derived, memory_entries
from hiermem_core.testing.contracts import ProvenanceContract

_E = memory_entries.c


class TestProvenance(ProvenanceContract):
    opened = on(*EVERY)


def test_derived_entries_are_found_by_their_own_index_however_many_others_there_are(tmp_path):
    with HierMem.open(tmp_path, counter=ApproximateCounter()) as hiermem:
        memory = hiermem.tenant("acme").memory
        memory.bulk_insert([f"entry {number}" for number in range(200)])
        memory.store("derived", derived_from=["nobody"])
        query = select(_E.id, _E.number, _E.derived_from).where(_E.tenant == "acme", is_derived)
        with hiermem._services.database.read() as connection:
            statement = str(query.compile(connection, compile_kwargs={"literal_binds": True}))
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}").all()

    assert "memory_entries_by_derivation" in str(plan)
