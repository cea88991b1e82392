"""`hiermem notes`, `reset` and `learn`: what is remembered about threads."""

import sys
from pathlib import Path
from typing import Annotated

import typer

import hiermem_core as core
from hiermem_core.cli.consent import DryRunOption, YesOption, ask, check_can_ask, counts_text
from hiermem_core.cli.opening import named_tenant, opened, opened_tenant
from hiermem_core.cli.options import (
    JsonOption,
    LocationOption,
    QuietOption,
    TenantOption,
    ThreadArgument,
)
from hiermem_core.cli.output import emit, note
from hiermem_core.cli.plain import learning_json, notes_counts, notes_json
from hiermem_core.displays.note_wording import learned_lines, notes_lines
from hiermem_core.errors import ConfigurationError
from hiermem_core.models.events import Event, NotesLearned, UpdateFailed


def notes(
    thread: ThreadArgument,
    *,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Print the notes of a thread: summary, facts, and the turns they cover."""
    with opened_tenant(location, tenant) as owner:
        stored = owner.thread(thread)
        state, newest = stored.state(), stored.info().last_seq
    value = {"tenant": owner.name, "thread": thread} | notes_json(state, newest)
    emit(value, notes_lines(state, newest), as_json=as_json)
    is_empty = not (state.summary or state.facts)
    note(f"thread {thread} has no notes", quiet=quiet or not is_empty)


def reset(
    thread: ThreadArgument,
    *,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Forget what was learnt from a thread; its turns stay.

    They count as seen, so that no later update brings the notes back.
    """
    del quiet
    check_can_ask(dry_run=dry_run, yes=yes)
    with opened_tenant(location, tenant) as owner:
        stored = owner.thread(thread)
        counts = notes_counts(stored.state())
        ask(
            f"Clear what was learnt from thread {thread}",
            lambda: counts_text(counts),
            dry_run=dry_run,
            yes=yes,
        )
        if not dry_run:
            stored.reset()
        seen = stored.info().last_seq
    value = {"tenant": owner.name, "thread": thread, "seen": seen}
    value |= {"counts": counts, "dry_run": dry_run}
    cleared = f"{'would be cleared' if dry_run else 'cleared'}: {counts_text(counts) or 'nothing'}"
    emit(value, [f"thread {thread}: {cleared}; its turns stay"], as_json=as_json)


def learn(
    *,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="PATH",
            help="Import path of a chat model, package.module:name; else HIERMEM_CHAT_MODEL.",
        ),
    ] = None,
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="NAME", help="Only of this one; else of all.")
    ] = None,
    location: LocationOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Bring the notes of every thread up to date that is due.

    For after a crash, and for scheduled jobs. The chat model is any that the library takes, such
    as a LangChain chat model or a LlamaIndex LLM, in a module of yours. What fails stays due.
    """
    chat_model = model or core.HierMemSettings.read().chat_model
    if chat_model is None:
        reason = "none is named; add --model package.module:name or set HIERMEM_CHAT_MODEL"
        raise ConfigurationError("chat_model", reason)
    sys.path.insert(0, str(Path.cwd()))
    told: list[Event] = []
    with opened(
        location, chat_model=chat_model, observer=told.append, inline_updates=True
    ) as hiermem:
        due = hiermem.updates.resume(None if tenant is None else named_tenant(tenant))
    learned = [event for event in told if isinstance(event, NotesLearned)]
    failed = [event for event in told if isinstance(event, UpdateFailed)]
    emit(learning_json(due, learned, failed), learned_lines(learned, failed), as_json=as_json)
    note("no thread is due", quiet=quiet or bool(due))
    if failed:
        raise typer.Exit(1)
