"""Entries between processes: what one stores, another finds, and a killed one has not lost."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest

DYING = """
import os, signal, sys
from hiermem_core import HierMem
with HierMem.open(sys.argv[1]) as memory:
    memory.tenant("alice").remember(sys.argv[2], key=sys.argv[3])
    os.kill(os.getpid(), signal.SIGKILL)
"""


def finished(process, **options):
    out, err = process.communicate(timeout=60, **options)
    return process.returncode, out.decode(), err.decode()


def test_what_one_process_stores_others_find_change_and_delete(spawn):
    code, out, _ = finished(spawn("remember", "Der Schlüssel liegt im 靴箱", "--key", "key"))
    entry_id = out.strip()

    got = finished(spawn("get", "--key", "key"))
    recalled = finished(spawn("recall", "Schlüssel", "--json"))
    updated = finished(spawn("update", entry_id, "--content", "Er liegt unter der Matte"))
    listed = finished(spawn("list"))
    deleted = finished(spawn("delete", entry_id, "--yes"))
    gone = finished(spawn("get", entry_id))

    assert code == 0
    assert "  Der Schlüssel liegt im 靴箱\n" in got[1]
    assert json.loads(recalled[1])["hits"][0]["content"] == "Der Schlüssel liegt im 靴箱"
    assert updated[1] == f"{entry_id}: version 2\n"
    assert "Er liegt unter der Matte" in listed[1]
    assert (deleted[0], gone[0], gone[1]) == (0, 1, "")
    assert gone[2] == f"error: entry '{entry_id}' not found; see: hiermem list\n"


def test_an_entry_survives_the_kill_of_the_process_that_stored_it(spawn, tmp_path):
    location = str(tmp_path / "memory")
    command = [sys.executable, "-c", DYING, location, "Kept, whatever comes", "kept"]

    assert subprocess.run(command, check=False).returncode == -9

    assert "Kept, whatever comes" in finished(spawn("get", "--key", "kept"))[1]
    assert "Kept, whatever comes" in finished(spawn("recall", "whatever"))[1]


def test_processes_that_store_at_once_lose_nothing(spawn):
    processes = [spawn("remember", f"fact {n}", "--type", "episodic") for n in range(6)]

    assert [finished(process)[0] for process in processes] == [0] * 6

    entries = json.loads(finished(spawn("list", "--json"))[1])["entries"]
    assert {entry["content"] for entry in entries} == {f"fact {n}" for n in range(6)}


def test_standard_input_is_taken_whole(spawn):
    text = "日本語の文\n" * 5000
    code, out, _ = finished(spawn("remember", "-", stdin=subprocess.PIPE), input=text.encode())

    assert code == 0
    value = json.loads(finished(spawn("get", out.strip(), "--json"))[1])
    assert value["entry"]["content"] == text.removesuffix("\n")


@pytest.mark.parametrize("words", [("list", "--limit", "1000"), ("recall", "word")])
def test_a_reader_that_leaves_early_ends_the_command_quietly(hiermem, spawn, tmp_path, words):
    from hiermem_core import HierMem

    with HierMem.open(tmp_path / "memory", local_embedder=False) as memory:
        drafts = [f"word {n} " + "x" * 20_000 for n in range(200)]
        memory.tenant("alice").memory.bulk_insert(drafts)
    process = spawn(*words)
    process.stdout.readline()
    process.stdout.close()

    assert (process.wait(60), process.stderr.read()) == (0, b"")
    process.stderr.close()


def test_an_output_that_knows_only_ascii_gets_escapes(spawn, monkeypatch):
    finished(spawn("remember", "昨日は雨", "--key", "k"))
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")

    code, out, err = finished(spawn("list"))

    assert (code, err) == (0, "")
    assert r"\u6628\u65e5" in out


def test_on_a_terminal_hits_hold_no_escapes_and_notes_go_to_stderr(spawn, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    finished(spawn("remember", "\x1b[2J cleared"))
    parent, child = pty.openpty()
    process = spawn("recall", "cleared", stdout=child)
    os.close(child)
    shown = os.read(parent, 65_536).decode()
    err = process.stderr.read()
    process.stderr.close()
    os.close(parent)

    assert process.wait(60) == 0
    assert r"\x1b[2J cleared" in shown
    assert "\x1b" not in shown
    assert err == b""


def test_the_readers_of_json_get_one_object_and_nothing_else(hiermem, talk, remember):
    entry_id = remember("a fact")
    for words in (
        ("remember", "another"),
        ("recall", "fact"),
        ("search", "fact"),
        ("get", entry_id),
        ("list",),
        ("update", entry_id, "--tag", "t"),
        ("namespaces",),
        ("health",),
        ("doctor",),
        ("purge", "--yes"),
        ("delete", entry_id, "--yes"),
        ("forget", "--thread", talk, "--yes"),
    ):
        run = hiermem(*words, "--json", "--quiet")

        assert isinstance(run.json, dict)
        assert (run.code, run.err) == (0, "")
        assert run.out.isascii()
