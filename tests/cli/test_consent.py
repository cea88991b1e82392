"""What destroys asks before; without a terminal it wants --yes; a dry run changes no byte."""

from __future__ import annotations

import json
import os
import pty
import sys
from datetime import UTC, datetime

import pytest
from terminals import drained
from typer.main import get_command

from hiermem_core import HierMem
from hiermem_core.cli.app import app
from hiermem_core.testing import FakeClock, ScriptedModel
from hiermem_core.testing.contracts.samples import asked_and_answered

SENTINEL = "qzx7sentinel"
NOTES = json.dumps({"summary": f"A {SENTINEL}.", "facts": [{"text": SENTINEL, "seqs": [1, 2]}]})

REPLACE = (
    "Replace what is at {place}, and keep a backup of it: 1 tenant, 2 entries, 1 thread, 6 turns?"
)
COMMANDS = {
    "delete": (("delete", "--namespace", "open", "--key", "k"), "Delete open/k: 1 entry?"),
    "forget": (
        ("forget", "--everything"),
        "Forget for good: 2 entries, 6 turns, 1 thread, 1 notes?",
    ),
    "purge": (("purge",), "Remove what has expired: 1 entry?"),
    "reset": (("reset", "trip"), "Clear what was learnt from thread trip: 1 summary, 1 fact?"),
    "init": (("init", "--force"), REPLACE),
    "restore": (("restore", "saved", "--force"), REPLACE),
}
"""What destroys something of what `stored` has, and what it asks."""

each_command = pytest.mark.parametrize("name", COMMANDS)


@pytest.fixture
def stored(hiermem, tmp_path):
    """Have an entry, another that has expired, a thread with notes, and a backup of them."""
    long_ago = FakeClock(datetime(2020, 1, 1, tzinfo=UTC))
    options = {"clock": long_ago, "chat_model": ScriptedModel([NOTES]), "inline_updates": True}
    with HierMem.open(tmp_path / "memory", **options) as memory:
        alice = memory.tenant("alice")
        alice.remember(f"stays {SENTINEL}", namespace="open", key="k")
        alice.remember(f"goes {SENTINEL}", ttl=1)
        alice.thread("trip").append(asked_and_answered("abc"))
        assert memory.updates.resume() == 1
    assert hiermem("backup", "saved").code == 0
    return hiermem


@pytest.fixture
def files(tmp_path):
    """Return what is in each file."""
    return lambda: {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


@pytest.fixture
def answered(spawn):
    """Run a command on a terminal, and answer what it asks."""

    def run(answer, *words):
        parent, child = pty.openpty()
        process = spawn(*words, stdin=child, stderr=child)
        os.close(child)
        os.write(parent, answer)
        out = process.stdout.read().decode()
        process.stdout.close()
        code = process.wait(60)
        return code, out, drained(parent).replace("\r\n", "\n")

    return run


def test_every_command_that_asks_is_tried_here_and_can_be_rehearsed():
    commands = get_command(app).commands
    options = {
        name: {word for one in commands[name].params for word in one.opts} for name in commands
    }

    assert {name for name in commands if "--yes" in options[name]} == set(COMMANDS)
    assert all("--dry-run" in options[name] for name in COMMANDS)


@each_command
@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_a_dry_run_tells_how_much_and_changes_no_byte(stored, files, name, as_json):
    words, _ = COMMANDS[name]
    before = files()

    run = stored(*words, "--dry-run", *as_json)

    assert run.code == 0
    assert files() == before
    assert SENTINEL not in run.out + run.err
    if as_json:
        assert run.json["dry_run"] is True
    else:
        assert "would be" in run.out or "would remove" in run.out


@each_command
def test_a_dry_run_tells_the_same_as_what_is_done(stored, name):
    words, _ = COMMANDS[name]
    rehearsed = stored(*words, "--dry-run", "--json").json
    done = stored(*words, "--yes", "--json").json

    told = {"counts", "deleted", "removed", "seen", "replaced", "location"} & rehearsed.keys()
    assert told
    assert {key: rehearsed[key] for key in told} == {key: done[key] for key in told}
    assert (rehearsed["dry_run"], done["dry_run"]) == (True, False)


@each_command
@pytest.mark.parametrize("stream", ["stdin", "stderr"])
def test_without_a_terminal_nothing_is_done_unless_it_is_agreed_to(
    stored, files, name, stream, monkeypatch
):
    words, _ = COMMANDS[name]
    for one in {"stdin", "stderr"} - {stream}:
        monkeypatch.setattr(getattr(sys, one), "isatty", lambda: True, raising=False)
    before = files()

    run = stored(*words)

    assert (run.code, run.out) == (2, "")
    assert "no terminal to ask on; add --yes, or first --dry-run" in run.err
    assert files() == before


@each_command
def test_on_a_terminal_it_asks_and_takes_no_for_an_answer(stored, answered, files, name, tmp_path):
    words, question = COMMANDS[name]
    before = files()

    code, out, told = answered(b"\n", *words, "--json")

    assert (code, out) == (1, "")
    assert question.format(place=tmp_path / "memory" / "memory.db") in told
    assert told.endswith(" [y/N] nothing was changed\n")
    assert SENTINEL not in told
    assert files() == before


@each_command
def test_on_a_terminal_yes_does_it_and_stdout_is_one_object(stored, answered, files, name):
    words, _ = COMMANDS[name]
    before = files()

    code, out, _ = answered(b"y\n", *words, "--json")

    assert code == 0
    assert json.loads(out)["dry_run"] is False
    assert files() != before


@pytest.mark.parametrize("words", [("purge",), ("forget", "--thread", "none"), ("init", "--force")])
def test_where_nothing_would_go_nothing_is_asked(hiermem, answered, words):
    hiermem("init")

    code, _, told = answered(b"", *words)

    assert code == 0
    assert "?" not in told
