"""The examples run as they stand, offline, and again on the same location."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from llamaindex.samples import SOURCES, takes_a_store

EXAMPLES = Path(__file__).parents[2] / "examples" / "llamaindex"

SHOWN = {
    "simple_chat": [
        "What is my boat called? -> text text text",
        "'What is my boat called?', 'text text text']",
    ],
    "context_chat": [
        "from: ['The Saga is moored at pier seven']",
        "stored: ['Where is the Saga moored?', 'text text text']",
    ],
    "condense_chat": ["recalled: ['The Saga sails on Mondays']", "the model reads first: system"],
    "function_agent": ["answer: I will remember that.", "entries: ['The Saga needs new sails']"],
    "agent_workflow": ["I have read 3 messages."],
    "memory_with_block": ["archived: True", "the model reads: True"],
}
AGAIN = {"agent_workflow": ["I have read 7 messages."]}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=takes_a_store if "block" in name else ()) for name in SHOWN],
)
def test_an_example_shows_what_it_says_on_a_new_location_and_again(name, tmp_path):
    environment = {
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(SOURCES),
        "HIERMEM_LOCAL_EMBEDDER": "false",
    }

    for wanted in (SHOWN[name], AGAIN.get(name, SHOWN[name])):
        ended = subprocess.run(
            [sys.executable, EXAMPLES / f"{name}.py", tmp_path / "memory"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        for line in wanted:
            assert line in ended.stdout


def test_every_example_is_run():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_is_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text("utf-8").splitlines()) < 40
