"""docs/cli.md is what the commands are, and the commands keep to the same rules."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from hiermem_core.cli.app import app

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "cli.md"


def written():
    """Return the page as its script writes it."""
    spec = importlib.util.spec_from_file_location("write_cli", ROOT / "docs" / "write_cli.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.page()


def commands(group=None, words=()):
    for word, command in (group or get_command(app)).commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, word))
        else:
            yield " ".join((*words, word)), command


COMMANDS = dict(commands())


def options_of(name):
    return {word for one in COMMANDS[name].params for word in one.opts if word.startswith("--")}


def test_the_page_is_what_the_commands_are():
    assert PAGE.read_text(encoding="utf-8") == written(), "run: python docs/write_cli.py"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_on_the_page_and_has_its_help(name):
    section = PAGE.read_text(encoding="utf-8").split(f"\n## hiermem {name}\n")[1].split("\n## ")[0]

    assert COMMANDS[name].help
    for option in COMMANDS[name].params:
        assert option.help, option.name
        assert all(f"`{word}" in section for word in option.opts if word.startswith("--"))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_gives_json_and_can_be_quiet(name):
    assert {"--json", "--quiet"} <= options_of(name)


@pytest.mark.parametrize("name", COMMANDS)
def test_wrong_use_of_any_command_has_exit_code_two(hiermem, name):
    assert hiermem(*name.split(), "--no-such-option").code == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_any_command_needs_nothing(hiermem, name, monkeypatch):
    monkeypatch.setenv("HIERMEM_LOCATION", "/nowhere/at/all")

    run = hiermem(*name.split(), "--help")

    assert run.code == 0
    assert f"hiermem {name}" in run.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(shell, environment):
    given = {
        "_HIERMEM_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": "hiermem exp",
        "COMP_CWORD": "1",
        "_TYPER_COMPLETE_ARGS": "hiermem exp",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    program = Path(sys.executable).parent / "hiermem"
    run = subprocess.run(
        [program], env={**os.environ, **given}, capture_output=True, text=True, check=False
    )

    assert "export" in run.stdout
    assert "backup" not in run.stdout


def test_completion_is_set_up_by_an_option(hiermem):
    out = hiermem("--help").out

    assert "--install-completion" in out
    assert "--show-completion" in out
