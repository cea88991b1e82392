"""The command line in this process, and as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass

import pytest

from hiermem_core.cli import main


@dataclass
class Run:
    """What a run gave."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """Give the commands a folder and a location of their own, the tenant alice, no embedder."""
    for name in [name for name in os.environ if name.startswith("HIERMEM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HIERMEM_LOCATION", str(tmp_path / "memory"))
    monkeypatch.setenv("HIERMEM_TENANT", "alice")
    monkeypatch.setenv("HIERMEM_LOCAL_EMBEDDER", "false")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def hiermem(environment, capsys):
    """Run a command in this process."""

    def run(*words):
        code = main([str(word) for word in words])
        return Run(code, *capsys.readouterr())

    return run


@pytest.fixture
def spawn(environment):
    """Start a command as a process of its own."""

    def start(*words, **options):
        command = [sys.executable, "-m", "hiermem_core.cli", *map(str, words)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, preexec_fn=take_interrupts, **pipes | options)  # noqa: PLW1509 - no threads

    return start


def take_interrupts():
    """Take SIGINT as on a terminal; a shell lets what it starts in the background ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def conversation(tmp_path):
    """Write messages to a file, one per line."""

    def write(*messages, name="talk.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(message) + "\n" for message in messages))
        return path

    return write


@pytest.fixture
def talk(hiermem, conversation):
    """Have the thread `talk` with three exchanges, one of them with a tool call."""
    call = {"id": "c1", "function": {"name": "look", "arguments": '{"at": "sky"}'}}
    messages = [
        {"role": "user", "content": "Hello there", "name": "Mara"},
        {"role": "assistant", "content": "General greetings"},
        {"role": "user", "content": "Look up"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "blue " * 50, "tool_call_id": "c1"},
        {"role": "assistant", "content": "It is blue"},
        {"role": "user", "content": "昨日は雨でした"},
        {"role": "assistant", "content": "Det regnade"},
    ]
    assert hiermem("import", conversation(*messages)).code == 0
    return "talk"


@pytest.fixture
def embedder(environment, monkeypatch):
    """Let the commands use the local embedder."""
    monkeypatch.delenv("HIERMEM_LOCAL_EMBEDDER")


@pytest.fixture
def remember(hiermem):
    """Store an entry by the command line and return its id."""

    def store(*words):
        run = hiermem("remember", *words)
        assert run.code == 0, run.err
        return run.out.strip()

    return store
