"""Write docs/cli.md from the application: `python docs/write_cli.py`; a test holds it true."""
# ruff: noqa: INP001 - a script, no package

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.main import get_command

from hiermem_core.cli.app import EPILOG, SUMMARY, app
from hiermem_core.importing.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).with_name("cli.md")

_HEAD = f"""# The command line

<!-- written by docs/write_cli.py; change the commands, then run that -->

{SUMMARY}

`hiermem COMMAND --help` says what stands here. Results go to standard output, everything else to
standard error, where a progress bar is drawn on a terminal only. `--json` prints one JSON object,
and an error as one, on standard error. `--quiet` leaves out what is said beside the result.

Shell completion: `hiermem --install-completion` sets it up for bash, zsh, fish or PowerShell, and
`hiermem --show-completion` prints it; neither needs a network.

What destroys something says on a terminal how much would go, and asks; where there is no terminal
it ends with exit code 2, unless `--yes` is given, and where the answer is no with exit code 1.
`--dry-run` says how much would go, never what it says, and changes nothing. So do `delete`,
`forget`, `purge` and `reset`, and `init --force` and `restore --force`, which keep what they
replace beside it, as a backup that `restore` takes. `export --force` and `backup --force` destroy
nothing: they keep what is there under another name.
"""


def page() -> str:
    """Return the page that documents every command. Pure."""
    root: Any = get_command(app)
    parts = [_HEAD, _epilog(), _formats(), "## Options of all commands\n", _options(root)]
    parts += [_section(name, command) for name, command in _commands(root, "hiermem")]
    return "\n".join(parts)


def _formats() -> str:
    head = (
        "## Formats of import\n\n`--format` takes one of these; `--list` names what is found.\n\n"
    )
    return head + "".join(f"- `{name}`\n" for name in FORMATS)


def _commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield every command that can be run, with its words."""
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{name} {word}")
        else:
            yield f"{name} {word}", command


def _epilog() -> str:
    lines = EPILOG.replace("\b\n", "").strip().splitlines()
    codes = [line for line in lines if line.startswith("  ")]
    rest = " ".join(line for line in lines[len(codes) + 1 :] if line)
    table: list[list[str]] = []
    for line in codes:
        code, text = line[:5].strip(), line[5:].strip()
        table += [[code, text]] if code else []
        if not code:
            table[-1][1] += f" {text}"
    rows = "\n".join(f"| {code} | {text} |" for code, text in table)
    return f"## Exit codes\n\n| code | meaning |\n| --- | --- |\n{rows}\n\n{rest}\n"


def _section(name: str, command: Any) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    usage = " ".join([name, *(_argument(one) for one in arguments), "[OPTIONS]"])
    text = inspect.cleandoc(command.help or "")
    return f"## {name}\n\n```\n{usage}\n```\n\n{text}\n\n{_arguments(arguments)}{_options(command)}"


def _argument(argument: Any) -> str:
    name = str(argument.metavar or argument.name.upper())
    return name if argument.required or name.startswith("[") else f"[{name}]"


def _arguments(arguments: list[Any]) -> str:
    rows = [f"| `{_argument(one)}` | {_cell(one.help)} |" for one in arguments]
    return "\n".join(["| argument | |", "| --- | --- |", *rows, "", ""]) if rows else ""


def _options(command: Any) -> str:
    rows = [
        f"| {_names(one)} | {_cell(one.help)}{_default(one)} |"
        for one in command.params
        if one.param_type_name == "option" and not one.hidden
    ]
    return "\n".join(["| option | |", "| --- | --- |", *rows, ""]) if rows else ""


def _names(option: Any) -> str:
    value = "" if option.is_flag else f" {option.metavar or option.name.upper()}"
    return ", ".join(f"`{name}{value}`" for name in [*option.opts, *option.secondary_opts])


def _default(option: Any) -> str:
    shown = option.default
    is_shown = isinstance(shown, int | float | str) and not isinstance(shown, bool) and shown != ""
    return f" Default: {shown}." if is_shown and not option.is_flag else ""


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
