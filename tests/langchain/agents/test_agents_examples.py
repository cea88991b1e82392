"""The examples of agents and tools run as they stand, offline and twice on one location."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hiermem_core
import langchain_hiermem

EXAMPLES = Path(__file__).parents[3] / "examples" / "langchain"
SOURCES = [str(Path(package.__file__).parents[1]) for package in (hiermem_core, langchain_hiermem)]

SHOWN = {
    "agent": [
        "3 messages,",
        "alice: Who am I? -> You are Ann.",
        "bob: Who am I? -> I do not know.",
    ],
    "tools": ['"content":"Alice flies to Kyoto in May"', 'bob finds: {"memories":[]}'],
}


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_shows_what_it_says_on_a_new_location_and_again(name, tmp_path):
    environment = {
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(SOURCES),
    }

    for _ in range(2):
        ended = subprocess.run(
            [sys.executable, "-W", "error", EXAMPLES / f"{name}.py", tmp_path / "memory"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        for line in SHOWN[name]:
            assert line in ended.stdout


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_is_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text("utf-8").splitlines()) < 40
