"""Every command of the command line on a PostgreSQL server."""

from __future__ import annotations

import json
import os

import pytest
from postgres_server import PASSWORD

from hiermem_core.cli import main


@pytest.fixture
def hiermem(location, tmp_path, monkeypatch, capsys):
    """Run a command; give its exit code, and what it printed where no password may be."""
    for name in [name for name in os.environ if name.startswith("HIERMEM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HIERMEM_TENANT", "alice")
    monkeypatch.setenv("HIERMEM_LOCAL_EMBEDDER", "false")
    monkeypatch.chdir(tmp_path)

    def run(*words, at=location):
        code = main([str(word) for word in words] + (["--location", at] if at else []))
        out, err = capsys.readouterr()
        assert PASSWORD not in out + err
        assert "Traceback" not in err
        return code, out, err

    return run


@pytest.fixture
def talk(tmp_path):
    lines = [("user", "Where is the lighthouse?"), ("assistant", "At the cape.")]
    path = tmp_path / "talk.jsonl"
    text = "\n".join(json.dumps({"role": role, "content": text}) for role, text in lines)
    path.write_text(text + "\n")
    return path


def test_nothing_is_created_unasked_and_the_remedy_is_told(hiermem):
    code, out, err = hiermem("stats")

    assert (code, out) == (2, "")
    assert "hiermem init" in err


def test_a_memory_is_made_once(hiermem):
    assert hiermem("init", "--dry-run")[1].rstrip().endswith("would be created")
    assert hiermem("init")[1].rstrip().endswith(": created")
    assert hiermem("init")[1].rstrip().endswith("is there already")


def test_every_command_works(hiermem, talk, tmp_path):
    assert hiermem("import", talk, "--dry-run")[0] == 0
    assert hiermem("init", "--verify")[0] == 0
    assert hiermem("import", talk)[0] == 0
    assert "talk" in hiermem("threads")[1]
    assert "At the cape." in hiermem("show", "talk")[1]
    assert "lighthouse" in hiermem("context", "talk", "--budget", "500")[1]
    assert hiermem("notes", "talk")[0] == 0
    assert hiermem("reset", "talk", "--yes")[0] == 0
    code, out, _ = hiermem("remember", "The kettle is red", "--key", "kettle", "--json")
    entry_id = json.loads(out)["entry"]["id"]
    assert code == 0
    assert "The kettle is red" in hiermem("recall", "kettle")[1]
    assert "The kettle is red" in hiermem("search", "kettle")[1]
    assert "The kettle is red" in hiermem("get", entry_id)[1]
    assert "The kettle is red" in hiermem("list")[1]
    assert hiermem("update", entry_id, "--content", "The kettle is blue")[0] == 0
    assert "default" in hiermem("namespaces")[1]
    assert "postgresql" in hiermem("stats", "--json")[1]
    assert hiermem("health")[0] == 0
    assert hiermem("doctor")[0] == 0
    assert hiermem("purge", "--yes")[0] == 0
    assert hiermem("export", tmp_path / "alice.jsonl", "--vectors")[0] == 0
    assert hiermem("delete", entry_id, "--yes")[0] == 0
    assert hiermem("forget", "--everything", "--yes")[0] == 0
    assert hiermem("import", tmp_path / "alice.jsonl")[0] == 0
    assert "The kettle is blue" in hiermem("recall", "kettle")[1]


def test_the_location_may_be_a_setting(hiermem, location, monkeypatch):
    monkeypatch.setenv("HIERMEM_LOCATION", location)

    assert hiermem("init", at=None)[0] == 0
    assert hiermem("remember", "The kettle is red", at=None)[0] == 0
    assert "The kettle is red" in hiermem("recall", "kettle", at=None)[1]


def test_a_memory_moves_to_a_server_and_back(hiermem, location, tmp_path):
    folder, back = tmp_path / "here", tmp_path / "back"
    hiermem("init", at=str(folder))
    hiermem("remember", "The kettle is red", at=str(folder))

    code, out, err = hiermem("move", "--from", folder, "--to", location, at=None)
    again = hiermem("move", "--from", folder, "--to", location, at=None)
    returned = hiermem("move", "--from", location, "--to", back, "--json", at=None)

    assert code == 0
    assert "tenant alice: 1 entry; moved, verified" in out
    assert "is as it was" in err
    assert "was there already" in again[1]
    assert json.loads(returned[1])["tenants"][0]["entries"] == 1
    assert "The kettle is red" in hiermem("recall", "kettle", at=str(back))[1]


@pytest.mark.parametrize("words", [("backup", "b"), ("restore", "b"), ("init", "--force", "--yes")])
def test_what_only_files_have_says_what_servers_have_instead(hiermem, words):
    hiermem("init")

    code, out, err = hiermem(*words)

    assert (code, out) == (2, "")
    assert "pg_dump" in err
