"""The README's examples run as pasted, in order, in one empty folder."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def commands_of(heading):
    section = README.split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\$ (.*)$", section, re.MULTILINE)


def test_the_readme_starts_with_the_two_commands():
    assert README.split("```")[1].splitlines()[1].startswith("$ make demo")
    assert README.split("```")[1].splitlines()[2].startswith("$ make test")


def test_the_python_examples_run_and_print_what_they_promise(tmp_path):
    printed = []
    for example in EXAMPLES:
        outcome = subprocess.run(
            [sys.executable, "-c", example],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert outcome.returncode == 0, outcome.stderr
        printed.append(outcome.stdout)

    assert "user - When do we land?" in printed[0]
    assert "0 warnings" in printed[0]
    assert "Prefers meetings in the morning\n" in printed[1]
    assert "Never book a flight before ten" in printed[1]
    assert printed[1].endswith("True\n")
    assert printed[2] == "They plan a trip.\n- They land on 4 May\n"
    assert printed[3] == "1\n"
    assert printed[4] == 'book early 0.55\n1. search inns (1) -> ["Sakura"]\n'
    assert printed[5] == "On 4 May.\n"
    assert "And where do we sleep?" in printed[6]
    assert printed[7] == "At the Sakura inn.\n"
    assert printed[8] == "Prefers meetings in the morning\n1\n"
    assert "Which inn?" in printed[9]
    assert "We land in Kyoto on 4 May." in printed[10]
    assert "At the Sakura inn." in printed[10]


@pytest.mark.parametrize("framework", ["langchain_hiermem", "llamaindex_hiermem"])
def test_each_framework_has_a_use_of_about_five_lines(framework):
    shortest = min((e for e in EXAMPLES if framework in e), key=len)

    assert len([line for line in shortest.splitlines() if line.strip()]) <= 6


def test_the_commands_of_the_readme_run(tmp_path):
    export, *commands = commands_of("Command line")
    environment = dict(pair.split("=") for pair in shlex.split(export)[1:])
    program = Path(sys.executable).parent / "hiermem"
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for command in commands:
        outcome = subprocess.run(
            [program, *shlex.split(command)[1:]],
            cwd=tmp_path,
            env={
                "HOME": str(tmp_path),
                "PATH": "",
                "HIERMEM_LOCAL_EMBEDDER": "false",
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert outcome.returncode == 0, (command, outcome.stderr)
        assert outcome.stdout
