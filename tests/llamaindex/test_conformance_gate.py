"""The gate that runs upstream's own tests: it substitutes, counts, and says why it is skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

GATE = Path(__file__).parents[1] / "conformance" / "llamaindex.py"

THEIRS = """
import pytest
from llama_index.core.memory.chat_memory_buffer import ChatMemoryBuffer

def test_it_is_ours():
    assert ChatMemoryBuffer.__name__ == "HierMemChatMemoryBuffer"

@pytest.mark.asyncio
async def test_it_is_empty():
    assert await ChatMemoryBuffer.from_defaults().aget() == []
"""


def run(*arguments, **environment):
    ended = subprocess.run(
        [sys.executable, GATE, *map(str, arguments)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return ended.returncode, ended.stdout


def test_without_an_index_it_says_so_and_fails_nothing():
    code, said = run(PIP_NO_INDEX="1", LLAMA_INDEX_TESTS="")

    assert code == 0
    assert said.startswith("skipped: llama-index-core==")


def test_it_runs_the_files_of_a_folder_and_counts(tmp_path):
    place = tmp_path / "tests" / "memory" / "test_chat_memory_buffer.py"
    place.parent.mkdir(parents=True)
    place.write_text(THEIRS)

    code, said = run("--tests", tmp_path / "tests")
    place.write_text(f"{THEIRS}\ndef test_that_fails():\n    assert False\n")
    code_of_failure, said_of_failure = run("--tests", tmp_path / "tests")

    assert code == 0
    assert "passed    memory/test_chat_memory_buffer.py [buffer]: 2 passed, 0 failed" in said
    assert code_of_failure == 1
    assert "test_that_fails" in said_of_failure
