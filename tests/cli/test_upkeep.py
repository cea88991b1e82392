"""Reindexing, repairing and asking how things stand; and the vectors an import makes."""

from __future__ import annotations

import os
import pty
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from hiermem_core import HierMem
from hiermem_core.displays.entry_wording import is_well
from hiermem_core.models.results import DoctorReport
from hiermem_core.testing import FakeEmbedder

WITHOUT_EMBED = """
import os, sys
sys.modules["onnxruntime"] = None
os.environ.pop("HIERMEM_LOCAL_EMBEDDER", None)
from hiermem_core.cli import main
sys.exit(main(sys.argv[1:]))
"""

FAILING = """
import sys
from hiermem_core.cli import main
from hiermem_core.embedding.minilm import MiniLM

def fail(self, texts):
    raise OSError("the model went away")

MiniLM.embed = fail
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def sayings(conversation):
    """A file of twenty turns to be embedded."""
    return conversation(*[{"role": "user", "content": f"saying number {n}"} for n in range(20)])


def rows_of(run):
    return {tuple(line.split(maxsplit=1)) for line in run.out.splitlines() if line.strip()}


def run_script(script, *words):
    command = [sys.executable, "-c", script, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_import_makes_the_vectors_of_what_it_stored(embedder, hiermem, sayings):
    run = hiermem("import", sayings, "--json")

    assert run.json["vectors"] == {
        "model_id": "all-MiniLM-L6-v2",
        "indexed": 20,
        "pending": 0,
        "failed": 0,
    }
    assert "making 20 vectors by all-MiniLM-L6-v2" in run.err
    assert "making" not in hiermem("import", sayings).err


def test_an_import_without_the_index_leaves_the_vectors_to_reindex(embedder, hiermem, sayings):
    imported = hiermem("import", sayings, "--no-index", "--json")
    before = hiermem("stats", "--json").json["memory"]["index"]

    reindexed = hiermem("reindex")

    assert imported.json["vectors"] is None
    assert imported.err.endswith("to make them: hiermem reindex\n")
    assert before["indexed"] == 0
    assert reindexed.out.startswith("20 vectors made by all-MiniLM-L6-v2 (384); 20 rows in all")
    assert hiermem("reindex", "--json").json["embedded"] == 0


def test_an_import_without_an_embedder_makes_none_and_ends_well(hiermem, sayings):
    run = hiermem("import", sayings, "--json")

    assert (run.code, run.json["vectors"]) == (0, None)


def test_an_embedder_that_fails_does_not_fail_the_import(embedder, hiermem, sayings):
    run = run_script(FAILING, "import", sayings)

    assert run.returncode == 0
    assert run.stdout.endswith("imported 20, skipped 0, failed 0 of 20\n")
    assert "20 rows without a vector, found by keywords; see: hiermem health" in run.stderr
    assert "Traceback" not in run.stderr
    assert hiermem("recall", "saying").out.count("saying number") == 10


def test_on_a_terminal_making_vectors_draws_a_bar_on_stderr_only(
    embedder, spawn, sayings, monkeypatch
):
    monkeypatch.setenv("TERM", "xterm")
    subprocess.run(
        [sys.executable, "-m", "hiermem_core.cli", "import", sayings, "--no-index", "--quiet"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    parent, child = pty.openpty()
    process = spawn("reindex", stderr=child)
    os.close(child)
    out = process.stdout.read().decode()
    shown = os.read(parent, 65_536).decode()
    os.close(parent)
    process.stdout.close()

    assert process.wait(60) == 0
    assert "making vectors" in shown
    assert "\x1b" not in out


def test_reindex_without_the_extra_says_what_to_install(hiermem, talk):
    run = run_script(WITHOUT_EMBED, "reindex")

    assert run.returncode == 2
    assert 'pip install "hiermem-core[embed]"' in run.stderr


def test_reindex_with_the_embedder_switched_off_is_wrong_use(hiermem, talk):
    run = hiermem("reindex")

    assert run.code == 2
    assert "is switched off; look at HIERMEM_LOCAL_EMBEDDER" in run.err


@pytest.fixture
def foreign_vectors(hiermem, tmp_path):
    """Have an entry whose vector is by the embedder of somebody's program."""
    with HierMem.open(tmp_path / "memory", embedder=FakeEmbedder(32)) as memory:
        memory.tenant("alice").remember("The harbour freezes in winter")


def test_vectors_of_another_program_are_left_alone_and_searched_by_keywords(
    embedder, hiermem, foreign_vectors
):
    recalled, told = hiermem("recall", "harbour"), hiermem("recall", "harbour", "--json").json

    assert "The harbour freezes in winter" in recalled.out
    assert "hiermem reindex --change-embedder" in recalled.err
    assert [warning["code"] for warning in told["warnings"]] == ["index_rebuilding"]
    assert hiermem("remember", "another").code == 0
    assert hiermem("health").code == 0
    assert hiermem("stats").code == 0


def test_vectors_of_another_program_are_replaced_only_when_told(
    embedder, hiermem, foreign_vectors, tmp_path
):
    refused = hiermem("reindex")
    with HierMem.open(tmp_path / "memory", embedder=FakeEmbedder(32)) as memory:
        assert memory.tenant("alice").recall("harbour").warnings == ()

    replaced = hiermem("reindex", "--change-embedder", "--json")

    assert refused.code == 2
    assert "vectors here are by fake (32), not by all-MiniLM-L6-v2 (384)" in refused.err
    assert "hiermem reindex --change-embedder" in refused.err
    assert (replaced.code, replaced.json["replaced"]) == (0, True)
    assert hiermem("recall", "does ice stop the ships?", "--json").json["warnings"] == []


def test_health_names_every_part(embedder, hiermem, talk):
    run, value = hiermem("health"), hiermem("health", "--json").json

    assert ("all", "healthy") in rows_of(run)
    assert {"rows", "keywords", "embedder"} <= {row[0] for row in rows_of(run)}
    assert value["status"] == value["rows"]["status"] == "healthy"
    assert (value["index_lag"], value["queue_depth"], value["dead_jobs"]) == (0, 0, 0)


def test_stats_name_entries_vectors_and_what_answers_each_mode(embedder, hiermem, remember):
    remember("one", "--namespace", "work")
    remember("two", "--namespace", "work", "--type", "episodic")

    rows, value = rows_of(hiermem("stats")), hiermem("stats", "--json").json

    assert ("entries", "2") in rows
    assert ["namespace", "work", "2"] in [rest.split() for name, rest in rows if name == "by"]
    assert value["memory"]["entries_by_type"] == {"episodic": 1, "semantic": 1}
    assert value["memory"]["index"]["model_id"] == "all-MiniLM-L6-v2"
    assert set(value["memory"]["engines"]) == {"keyword", "semantic", "hybrid"}
    assert value["turns"] == 0


def test_doctor_finds_a_sound_memory_sound(hiermem, talk):
    run, value = hiermem("doctor"), hiermem("doctor", "--json").json

    assert run.code == 0
    assert run.out.endswith("sound: everything agrees\n")
    assert (value["is_sound"], value["well"], value["repaired"]) == (True, True, False)
    assert hiermem("doctor", "--repair").code == 0


def test_doctor_tells_what_disagrees_and_repairs_it(hiermem, talk, tmp_path):
    with sqlite3.connect(tmp_path / "memory" / "memory.db") as rows:
        rows.execute("DELETE FROM keywords WHERE rowid = (SELECT min(rowid) FROM keywords)")

    found, repaired, after = (
        hiermem(*words) for words in (("doctor",), ("doctor", "--repair"), ("doctor",))
    )

    assert found.code == 1
    assert ("unlisted", "1") in rows_of(found)
    assert found.out.endswith("to repair it run: hiermem doctor --repair\n")
    assert (repaired.code, after.code) == (0, 0)
    assert repaired.out.endswith("repaired: everything agrees\n")


def test_doctor_looks_at_all_tenants_or_at_one(hiermem, talk, tmp_path):
    with sqlite3.connect(tmp_path / "memory" / "memory.db") as rows:
        rows.execute("DELETE FROM keywords WHERE rowid = (SELECT min(rowid) FROM keywords)")

    assert hiermem("doctor", "--tenant", "bob").code == 0
    assert hiermem("doctor", "--tenant", "alice").code == 1


@pytest.mark.parametrize(
    ("report", "found", "mended"),
    [
        (DoctorReport(), True, True),
        (DoctorReport(pending=3), True, False),
        (DoctorReport(pending=3, repaired=True), True, True),
        (DoctorReport(missing=1), False, False),
        (DoctorReport(missing=1, repaired=True), False, True),
        (DoctorReport(unchecked="away"), True, False),
    ],
)
def test_a_repair_that_was_asked_for_is_well_only_when_nothing_is_left(report, found, mended):
    assert is_well(report, is_repair=False) is found
    assert is_well(report, is_repair=True) is mended


def test_a_database_that_cannot_be_written_is_unhealthy(hiermem, talk, tmp_path):
    if not os.geteuid():
        pytest.skip("root may write everything")
    path = Path(tmp_path / "memory" / "memory.db")
    path.chmod(0o400)

    assert hiermem("health").code == 1
