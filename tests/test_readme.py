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

    agent, buffer, durable, core, store, retriever, history, engine, agents, own, learned = printed
    assert agent == "On 4 May.\n"
    assert "Which inn?" in buffer
    assert "'We land in Kyoto on 4 May.', 'Noted: Kyoto, 4 May.'" in durable
    assert "Prefers meetings in the morning" in core
    assert "user - We land in Kyoto on 4 May." in core
    assert core.endswith("True\n")
    assert store == "Likes green tea\n"
    assert retriever == "At nine.\n"
    assert history.startswith("At the Sakura inn.\n")
    assert "We land in Kyoto on 4 May." in history
    assert engine.startswith("() ")
    assert agents.count("yes\n") == 4
    assert own == "Boat 3 is at pier 3\n"
    assert learned == "They plan a trip.\n- They land on 4 May\n1\n"


@pytest.mark.parametrize("framework", ["langchain_hiermem", "llamaindex_hiermem"])
def test_each_framework_has_a_use_of_about_five_lines(framework):
    shortest = min((e for e in EXAMPLES if framework in e), key=len)
    own = [line for line in shortest.splitlines() if line.strip() and "import" not in line]

    assert len(own) <= 7


def test_its_links_lead_to_something():
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", README)

    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_measured_figure_names_a_script_that_is_there():
    section = README.split("## Measured\n")[1].split("\n## ")[0]
    scripts = re.findall(r"(\w+\.py)", section)

    assert len(scripts) >= 6
    assert [name for name in scripts if not (ROOT / "benchmarks" / name).exists()] == []


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
