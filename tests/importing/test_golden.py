"""Every file of claude-flow 2 that was kept as a model, with the exact answer beside it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from datetime import datetime
from pathlib import Path

import pytest

from hiermem_core import HierMem, events
from hiermem_core.importing import find_stores, import_memories
from hiermem_core.testing import FakeClock, FakeEmbedder

DATA = Path(os.environ.get("CLAUDE_FLOW_FILES", "claude_flow_v2"))

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="name the folder of the golden files in CLAUDE_FLOW_FILES"
)


def runs():
    for expected in sorted(DATA.glob("*/expected.json")):
        golden = json.loads(expected.read_text(encoding="utf-8"))
        for number, run in enumerate(golden["runs"]):
            yield pytest.param(golden, run, id=f"{golden['fixture']}-{number}")


def digests(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


class Golden:
    """A copy of a golden folder, and a tenant to import it into."""

    def __init__(self, golden, run, folder):
        self.golden, self.run, self.folder = golden, run, folder
        shutil.copytree(DATA / golden["fixture"], folder)
        (folder / "expected.json").unlink()
        assert digests(folder) == golden["files"]
        for name in run.get("remove", ()):
            (folder / name).unlink()
        self.before = digests(folder)
        self.clock = FakeClock(datetime.fromisoformat(run["clock"]))
        self.embedder = FakeEmbedder()
        self.stored = []
        self.memory = HierMem.open(
            folder.parent / "memory",
            clock=self.clock,
            embedder=self.embedder,
            observer=self._note,
        )
        self.tenant = self.memory.tenant("alice")

    def _note(self, event):
        if isinstance(event, events.EntryStored):
            self.stored.append(event.entry_id)

    def go(self, **options):
        source = self.folder / self.run["source"]
        return import_memories(source, self.tenant, **self.run["options"] | options)

    def generation(self):
        return self.tenant.memory.generation()

    def entries(self):
        return [entry_dict(entry) for entry in everything(self.tenant)]


def everything(tenant):
    return tenant.memory.search(limit=1000)


def entry_dict(entry):
    def iso(moment):
        return moment and moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    names = ("id", "namespace", "key", "content", "type", "metadata", "ttl")
    return {name: getattr(entry, name) for name in names} | {
        "tags": list(entry.tags),
        "created_at": iso(entry.created_at),
        "updated_at": iso(entry.updated_at),
        "expires_at": iso(entry.expires_at),
    }


def listed(report, outcome):
    return [
        {"ref": item.ref, "reason": item.reason} | ({"of": item.of} if item.of else {})
        for item in report.items
        if item.outcome == outcome
    ]


def stores_of(report):
    return [
        {"path": one.path, "format": one.format, "status": one.status, "found": one.found}
        for one in report.stores
    ]


def as_expected(report):
    names = ("found", "imported", "updated", "skipped", "failed", "status", "exit_code")
    return {name: getattr(report, name) for name in names}


@pytest.fixture
def golden(request, tmp_path):
    one = Golden(*request.param, tmp_path / "source")
    yield one
    one.memory.close()
    assert digests(one.folder) == one.before


def pytest_generate_tests(metafunc):
    if "golden" in metafunc.fixturenames:
        parameters = [pytest.param(one.values, id=one.id) for one in runs()]
        metafunc.parametrize("golden", parameters, indirect=True)


def test_i1_a_golden_folder_gives_exactly_what_it_says(golden):
    report = golden.go()

    run = golden.run
    assert as_expected(report) == run["report"]
    assert stores_of(report) == run["stores"]
    assert list(report.warnings) == run.get("warnings", [])
    assert listed(report, "skipped") == run["skipped"]
    assert listed(report, "failed") == run["failed"]
    assert golden.stored == run["imported"]
    known = run.get("entries", golden.golden["entries"])
    by_id = {entry["id"]: entry for entry in golden.entries()}
    assert by_id == {name: known[name] for name in run["imported"]}
    for entry in everything(golden.tenant):
        rest = (entry.source, entry.trust, entry.version, entry.times_stored, entry.user_id)
        assert rest == ("import", 0.5, 1, 1, None)


def test_i2_a_golden_folder_imported_twice_changes_nothing(golden):
    first = golden.go()
    golden.tenant.memory.wait_for_index()
    generation, calls = golden.generation(), len(golden.embedder.calls)

    report = golden.go()

    assert report.imported == report.updated == 0
    assert report.reasons.get("unchanged", 0) == first.imported
    assert report.exit_code == first.exit_code
    assert (golden.generation(), len(golden.embedder.calls)) == (generation, calls)


def test_i4_a_dry_run_of_a_golden_folder_reports_the_same_and_stores_nothing(golden):
    place = golden.folder.parent / "memory"
    generation, before = golden.generation(), sorted(path.name for path in place.iterdir())

    dry = golden.go(dry_run=True)

    assert (golden.generation(), golden.embedder.calls) == (generation, [])
    assert sorted(path.name for path in place.iterdir()) == before
    report = golden.go()
    assert dry.dry_run
    assert dry.to_dict() | {"dry_run": False} == report.to_dict()


def test_what_is_found_in_a_golden_folder_is_told_without_a_tenant(golden):
    """Backups are found only where they are wanted."""
    wants_backups = "include_backups" in golden.run["options"]

    found = find_stores(golden.folder / golden.run["source"])

    told = stores_of(type("Found", (), {"stores": found}))
    assert [store for store in golden.run["stores"] if store in told] == told
    assert (len(told) < len(golden.run["stores"])) == wants_backups


def test_i3_exports_of_a_golden_folder_change_nothing_of_it(tmp_path):
    golden = json.loads((DATA / "adv" / "expected.json").read_text(encoding="utf-8"))
    one = Golden(golden, golden["runs"][0], tmp_path / "source")
    one.go()
    before = one.entries()

    for ending in ("json", "csv", "xml", "yaml"):
        report = import_memories(one.folder / f"export.{ending}", one.tenant)
        assert report.reasons == {"unchanged": 4}, ending

    assert one.entries() == before
    one.memory.close()
