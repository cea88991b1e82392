"""The audit log, on each backend and by its command."""

from __future__ import annotations

import json
import sqlite3

from core.memory_backends import EVERY, PERSISTENT, on
from typer.testing import CliRunner

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.cli.app import app
from hiermem_core.importing import import_memories
from hiermem_core.testing.contracts import AuditContract, PersistentAuditContract


class TestAudit(AuditContract):
    opened = on(*EVERY)


class TestPersistentAudit(PersistentAuditContract):
    opened = on(*PERSISTENT)


def test_an_import_is_one_operation_of_as_many_records_as_transactions(tmp_path):
    source = tmp_path / "memory-store.json"
    listed = [
        {"key": f"k{n}", "value": f"entry {n}", "namespace": "n", "timestamp": 1_700_000_000_000}
        for n in range(5)
    ]
    source.write_text(json.dumps({"n": listed}))
    with HierMem.open(tmp_path / "m", audit=True, counter=ApproximateCounter()) as hiermem:
        tenant = hiermem.tenant("acme", actor="ann")

        import_memories(source, tenant, batch_size=2)

        told = [(one.operation, one.count, one.actor) for one in tenant.audit()]
    assert told == [("import_memories", n, "ann") for n in (2, 2, 1)]


def test_the_command_prints_it(tmp_path):
    with HierMem.open(tmp_path / "m", audit=True, counter=ApproximateCounter()) as hiermem:
        hiermem.tenant("acme", actor="ann").remember("one", id="e1")
    arguments = ["audit", "--location", str(tmp_path / "m"), "--tenant", "acme"]

    plain = CliRunner().invoke(app, arguments)
    as_json = CliRunner().invoke(app, [*arguments, "--json"])

    assert plain.exit_code == 0
    assert "store" in plain.stdout
    assert "ann" in plain.stdout
    assert [one["ids"] for one in json.loads(as_json.stdout)["records"]] == [["e1"]]


def test_a_log_of_an_older_location_begins_empty(tmp_path):
    options = {"counter": ApproximateCounter()}
    HierMem.open(tmp_path, **options).close()
    with sqlite3.connect(tmp_path / "memory.db") as tables:
        tables.execute("DROP TABLE audit")
        tables.execute("UPDATE metadata SET value = '5' WHERE key = 'schema_version'")

    with HierMem.open(tmp_path, audit=True, **options) as hiermem:
        hiermem.tenant("acme").remember("one")

        assert [one.operation for one in hiermem.tenant("acme").audit()] == ["store"]
