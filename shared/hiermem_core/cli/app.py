"""The application: its commands, and the help that documents them."""

from typing import Annotated

import typer

from hiermem_core.cli.auditing import audit
from hiermem_core.cli.backups import backup, restore
from hiermem_core.cli.contexts import context
from hiermem_core.cli.demo import demo
from hiermem_core.cli.entries import delete, get, list_, namespaces, purge
from hiermem_core.cli.exports import export
from hiermem_core.cli.forgetting import forget
from hiermem_core.cli.imports import import_file
from hiermem_core.cli.inspecting import inspect
from hiermem_core.cli.locations import init, stats
from hiermem_core.cli.migrating import migrate
from hiermem_core.cli.moving import move
from hiermem_core.cli.notes import learn, notes, reset
from hiermem_core.cli.recalling import recall
from hiermem_core.cli.remembering import remember, update
from hiermem_core.cli.runs import patterns, sessions
from hiermem_core.cli.threads import show, threads
from hiermem_core.cli.tokens import tokens
from hiermem_core.cli.upkeep import doctor, health, reindex
from hiermem_core.version import __version__

SUMMARY = "One memory for LangChain and LlamaIndex: on disk, recalled, within a token budget."

EPILOG = """\b
Exit codes:
    0  success
    1  partial or failed: records that could not be imported, a budget exceeded,
       a thread or entry not found, rows and vectors that disagree, a forget
       that is not complete, damaged turns left out of an export, a storage failure,
       a question answered with no
    2  wrong use: a missing source, an unknown option, no tenant, bad settings,
       nobody to ask whether something may go, and no --yes
    3  nothing to import
  130  interrupted

\b
Settings: every option of the library is also a HIERMEM_* variable, such as
HIERMEM_LOCATION and HIERMEM_TENANT. An option given on the line wins.
"""

app = typer.Typer(
    name="hiermem",
    help=SUMMARY,
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it
    if wanted:
        typer.echo(f"hiermem-core {__version__}")
        raise typer.Exit


VersionOption = Annotated[
    bool,
    typer.Option("--version", callback=_show_version, is_eager=True, help="Say the version."),
]


@app.callback()
def hiermem(*, version: VersionOption = False) -> None:
    """Take the options that belong to no command."""
    del version


app.command()(init)
app.command("import")(import_file)
app.command()(migrate)
app.command()(export)
app.command()(backup)
app.command()(restore)
app.command()(move)
app.command()(threads)
app.command()(show)
app.command()(inspect)
app.command()(context)
app.command()(notes)
app.command()(learn)
app.command()(reset)
app.command()(remember)
app.command()(recall)
app.command("search", help="Find what answers a question: the same as recall.")(recall)
app.command()(get)
app.command("list")(list_)
app.command()(update)
app.command()(delete)
app.command()(forget)
app.command()(namespaces)
app.command()(patterns)
app.command()(sessions)
app.command()(stats)
app.command()(health)
app.command()(doctor)
app.command()(reindex)
app.command()(purge)
app.command()(audit)
app.add_typer(tokens, name="tokens")
app.command()(demo)
