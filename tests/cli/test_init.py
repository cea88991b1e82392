"""`hiermem init`: a memory is made, looked over, or begun anew with the old one kept."""

from __future__ import annotations

import pytest


def test_path_and_location_are_the_same_option(hiermem, tmp_path):
    assert hiermem("init", "--path", tmp_path / "custom.db").code == 0
    assert (tmp_path / "custom.db").is_file()
    assert "is there already" in hiermem("init", "--location", tmp_path / "custom.db").out


@pytest.mark.parametrize("backend", ["sqlite", "chroma", "hybrid"])
def test_every_backend_can_be_named(hiermem, tmp_path, backend):
    run = hiermem("init", "--backend", backend, "--json")

    assert (run.code, run.json["backend"], run.json["created"]) == (0, backend, True)
    hint = f"export HIERMEM_BACKEND={backend}"
    assert (hint in hiermem("init", "--backend", backend).err) == (backend != "hybrid")


def test_an_unknown_backend_is_refused_before_anything_is_made(hiermem, tmp_path):
    run = hiermem("init", "--backend", "agentdb")

    assert run.code == 2
    assert "sqlite, chroma, hybrid" in run.err
    assert not (tmp_path / "memory").exists()


def test_init_again_changes_nothing(hiermem, talk):
    assert hiermem("init", "--json").json["created"] is False
    assert "Hello there" in hiermem("show", talk).out


def test_force_says_what_it_replaces_and_keeps_it(hiermem, talk):
    run = hiermem("init", "--force", "--yes", "--json")

    assert (run.code, run.json["created"]) == (0, True)
    assert run.json["replaced"] == "1 tenant, 1 thread, 8 turns"
    assert run.json["kept"] in run.err
    assert hiermem("threads", "--json").json["threads"] == []

    assert hiermem("restore", run.json["kept"]).code == 0
    assert "Hello there" in hiermem("show", talk).out


def test_force_where_nothing_is_stored_replaces_nothing(hiermem, tmp_path):
    assert hiermem("init", "--force", "--yes", "--json").json["replaced"] is None
    assert hiermem("init", "--force", "--yes", "--json").json["created"] is False
    assert [path.name for path in (tmp_path / "memory").iterdir()] == ["memory.db"]


def test_a_dry_run_makes_and_replaces_nothing(hiermem, tmp_path, conversation):
    assert "would be created" in hiermem("init", "--dry-run").out
    assert not (tmp_path / "memory").exists()

    hiermem("import", conversation({"role": "user", "content": "hi"}))
    run = hiermem("init", "--force", "--dry-run")
    assert "would be empty, in the place of 1 tenant, 1 thread, 1 turn" in run.out
    assert len(hiermem("threads", "--json").json["threads"]) == 1


def test_force_helps_where_the_file_is_damaged(hiermem, tmp_path):
    hiermem("init")
    (tmp_path / "memory" / "memory.db").write_bytes(b"garbage" * 1000)

    assert hiermem("init").code == 1
    run = hiermem("init", "--force", "--yes", "--json")

    assert (run.code, run.json["replaced"]) == (0, "a damaged database")


def test_another_programs_database_is_not_replaced(hiermem, tmp_path):
    import sqlite3

    with sqlite3.connect(tmp_path / "theirs.db") as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()

    run = hiermem("init", "--path", tmp_path / "theirs.db", "--force", "--yes")

    assert run.code == 2
    assert "another program's database" in run.err


def test_verify_looks_everything_over(hiermem, talk, tmp_path):
    assert hiermem("init", "--verify").out.endswith("verified\n")
    assert hiermem("init", "--verify", "--json").json["verified"] is True

    import sqlite3

    with sqlite3.connect(tmp_path / "memory" / "memory.db") as database:
        database.execute("DELETE FROM keywords WHERE rowid = 1")
    database.close()
    run = hiermem("init", "--verify")
    assert run.code == 1
    assert "see: hiermem doctor" in run.out
