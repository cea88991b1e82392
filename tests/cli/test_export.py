"""`hiermem export`, and `hiermem import` of what it wrote."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest


@pytest.fixture
def filled(hiermem, talk, remember):
    remember("likes tea", "--namespace", "profile", "--key", "drink", "--tag", "größe")
    return talk


def body_of(path):
    return path.read_bytes().split(b"\n", 1)[1]


def test_an_export_is_imported_by_another_tenant_exactly(hiermem, filled, tmp_path):
    run = hiermem("export", tmp_path / "a.jsonl")
    taken = hiermem("import", tmp_path / "a.jsonl", "--tenant", "bob")
    hiermem("export", tmp_path / "b.jsonl", "--tenant", "bob")

    assert run.code == taken.code == 0
    assert run.out == f"{tmp_path / 'a.jsonl'}: tenant alice: 1 entry, 1 thread, 8 turns\n"
    assert taken.out.splitlines()[-1].startswith("imported 9, ")
    assert body_of(tmp_path / "a.jsonl") == body_of(tmp_path / "b.jsonl")


def test_importing_it_twice_stores_nothing_twice(hiermem, filled, tmp_path):
    hiermem("export", tmp_path / "a.jsonl")

    run = hiermem("import", tmp_path / "a.jsonl", "--json")

    assert (run.code, run.json["imported"], run.json["reasons"]) == (0, 0, {"unchanged": 9})


def test_an_edited_export_is_refused_with_its_line(hiermem, filled, tmp_path):
    path = tmp_path / "a.jsonl"
    hiermem("export", path)
    path.write_bytes(path.read_bytes().replace(b"likes tea", b"likes tee"))

    run = hiermem("import", path, "--tenant", "bob")

    assert (run.code, run.out) == (2, "")
    assert "line 2 was changed" in run.err
    assert hiermem("threads", "--tenant", "bob", "--json").json["threads"] == []


def test_an_export_can_go_to_standard_output(spawn, hiermem, filled, tmp_path):
    with spawn("export", "-") as process:
        out, err = process.communicate()

    assert process.returncode == 0
    assert b"tenant alice: 1 entry" in err
    (tmp_path / "a.jsonl").write_bytes(out)
    assert hiermem("import", tmp_path / "a.jsonl", "--tenant", "bob").code == 0
    assert hiermem("export", "-", "--json").code == 2


def test_a_reader_that_leaves_is_no_error(spawn, hiermem, tmp_path, conversation):
    hiermem("import", conversation(*[{"role": "user", "content": "x" * 500}] * 2000))
    with spawn("export", "-") as process:
        process.stdout.read(10)
        process.stdout.close()
        assert process.wait() == 0
        assert b"Traceback" not in process.stderr.read()


def test_a_file_that_is_there_is_kept_when_asked_and_not_touched_else(hiermem, filled, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("mine")

    refused = hiermem("export", path)
    assert (refused.code, path.read_text()) == (2, "mine")
    assert "--force" in refused.err

    run = hiermem("export", path, "--force", "--json")
    assert (run.code, Path(run.json["kept"]).read_text()) == (0, "mine")
    assert run.json["kept"] in run.err


def test_an_export_is_private_and_tells_its_figures(hiermem, filled, tmp_path):
    value = hiermem("export", tmp_path / "a.jsonl", "--json").json

    assert stat.S_IMODE((tmp_path / "a.jsonl").stat().st_mode) == 0o600
    assert (value["entries"], value["threads"], value["turns"]) == (1, 1, 8)
    assert value["bytes"] == (tmp_path / "a.jsonl").stat().st_size
    assert len(value["checksum"]) == 64


def test_an_export_needs_a_memory_and_a_tenant(hiermem, tmp_path, monkeypatch):
    assert "hiermem init" in hiermem("export", tmp_path / "a.jsonl").err
    hiermem("init")
    monkeypatch.delenv("HIERMEM_TENANT")

    assert hiermem("export", tmp_path / "a.jsonl").code == 2
    assert not (tmp_path / "a.jsonl").exists()


def test_an_empty_tenant_has_an_empty_export(hiermem, tmp_path):
    hiermem("init")

    assert hiermem("export", tmp_path / "a.jsonl").out.endswith("tenant alice: nothing\n")
    assert hiermem("import", tmp_path / "a.jsonl").code == 3


def test_entries_of_a_program_that_ended_cannot_be_exported(hiermem, tmp_path, monkeypatch):
    monkeypatch.setenv("HIERMEM_BACKEND", "in_memory")

    assert "in_memory" in hiermem("export", tmp_path / "a.jsonl").err


def test_vectors_are_exported_when_asked(hiermem, embedder, remember, tmp_path):
    remember("likes tea")

    with_them = hiermem("export", tmp_path / "a.jsonl", "--vectors", "--json").json
    without = hiermem("export", tmp_path / "b.jsonl", "--json").json
    hiermem("import", tmp_path / "a.jsonl", "--tenant", "bob")
    hiermem("export", tmp_path / "c.jsonl", "--vectors", "--tenant", "bob")

    assert (with_them["vectors"], without["vectors"]) == (1, 0)
    assert body_of(tmp_path / "a.jsonl") == body_of(tmp_path / "c.jsonl")
