"""`hiermem backup`."""

from __future__ import annotations

import json


def test_a_backup_says_what_is_in_it_and_how_to_put_it_back(hiermem, talk, tmp_path):
    run = hiermem("backup", tmp_path / "b")

    assert run.code == 0
    assert run.out.startswith(f"{tmp_path / 'b'}: 1 tenant, 1 thread, 8 turns; ")
    assert f"to put it back: hiermem restore {tmp_path / 'b'}" in run.err
    assert json.loads((tmp_path / "b" / "backup.json").read_text())["sha256"] in run.out


def test_a_backup_as_json(hiermem, talk, tmp_path):
    value = hiermem("backup", tmp_path / "b", "--json").json

    assert value["target"] == str(tmp_path / "b")
    assert value["counts"]["turns"] == 8
    assert value["kept"] is None


def test_a_name_that_is_taken_needs_force_and_is_kept(hiermem, talk, tmp_path):
    hiermem("backup", tmp_path / "b")

    assert hiermem("backup", tmp_path / "b").code == 2
    run = hiermem("backup", tmp_path / "b", "--force", "--json")

    assert run.code == 0
    assert hiermem("restore", run.json["kept"], "--location", tmp_path / "kept").code == 0


def test_a_backup_needs_a_memory(hiermem, tmp_path):
    run = hiermem("backup", tmp_path / "b")

    assert (run.code, (tmp_path / "b").exists()) == (2, False)
    assert "hiermem init" in run.err


def test_a_backup_can_be_looked_into(hiermem, talk, tmp_path):
    hiermem("backup", tmp_path / "b")

    assert "Hello there" in hiermem("show", talk, "--location", tmp_path / "b").out
