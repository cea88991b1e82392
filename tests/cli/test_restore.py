"""`hiermem restore`."""

from __future__ import annotations

import pytest

from hiermem_core import HierMem


@pytest.fixture
def backup(hiermem, talk, tmp_path):
    hiermem("backup", tmp_path / "b")
    return tmp_path / "b"


def test_a_backup_comes_back_where_nothing_is(hiermem, backup, talk, tmp_path):
    run = hiermem("restore", backup, "--location", tmp_path / "new")

    assert (run.code, run.out) == (
        0,
        f"{tmp_path / 'new' / 'memory.db'}: 1 tenant, 1 thread, 8 turns\n",
    )
    assert "Hello there" in hiermem("show", talk, "--location", tmp_path / "new").out


def test_what_is_there_needs_force_and_is_named_and_kept(hiermem, backup, remember, tmp_path):
    entry = remember("later")

    refused = hiermem("restore", backup)
    assert (refused.code, hiermem("get", entry).code) == (2, 0)
    assert "holds 1 tenant, 1 entry, 1 thread, 8 turns" in refused.err
    assert "--force" in refused.err

    run = hiermem("restore", backup, "--force", "--yes", "--json")
    assert (run.code, hiermem("get", entry).code) == (0, 1)
    assert run.json["replaced"].startswith("1 tenant, 1 entry")

    assert hiermem("restore", run.json["kept"], "--force", "--yes").code == 0
    assert hiermem("get", entry).code == 0


def test_a_dry_run_changes_nothing(hiermem, backup, remember):
    entry = remember("later")

    run = hiermem("restore", backup, "--force", "--dry-run")

    assert run.code == 0
    assert run.out.startswith("nothing was changed; this would be:\n")
    assert "in the place of 1 tenant, 1 entry" in run.out
    assert hiermem("get", entry).code == 0


def test_a_changed_backup_is_refused(hiermem, backup, tmp_path):
    with (backup / "memory.db").open("ab") as file:
        file.write(b"x")

    run = hiermem("restore", backup, "--location", tmp_path / "new")

    assert run.code == 2
    assert "was changed" in run.err
    assert not (tmp_path / "new" / "memory.db").exists()


def test_what_is_no_backup_is_refused(hiermem, tmp_path):
    assert "is no backup" in hiermem("restore", tmp_path / "none").err
    assert hiermem("restore", tmp_path).code == 2


def test_a_memory_in_use_is_left_alone(hiermem, backup, tmp_path):
    with HierMem.open(tmp_path / "memory") as memory:
        memory.tenant("alice").stats()
        run = hiermem("restore", backup, "--force", "--yes")

    assert run.code == 1
    assert "is in use; end the programs that have it open" in run.err
