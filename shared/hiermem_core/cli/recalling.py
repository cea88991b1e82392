"""`hiermem recall`, and `hiermem search`, which is the same: what answers a question."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hiermem_core.cli.given import given_fields, given_json, given_text
from hiermem_core.cli.opening import lacks_embedder, opened_tenant
from hiermem_core.cli.options import (
    FilterOption,
    JsonOption,
    LimitOption,
    LocationOption,
    NamespaceOption,
    QuietOption,
    TagOption,
    TenantOption,
    TypeOption,
    UserOption,
)
from hiermem_core.cli.output import emit, note
from hiermem_core.cli.plain import hit_json, warnings_json
from hiermem_core.displays.entry_wording import hit_text
from hiermem_core.displays.wording import KEYWORDS_ONLY, explain
from hiermem_core.errors import InvalidInputError

if TYPE_CHECKING:
    from hiermem_core import Tenant
    from hiermem_core.models.queries import RecallResult, RecallThreads

ThreadsOption = Annotated[
    str | None,
    typer.Option("--threads", metavar="WHICH", help="Whose turns: this, all, or none."),
]


def recall(
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="Plain text; - is standard input.")
    ],
    *,
    thread: Annotated[
        str | None, typer.Option("--thread", metavar="NAME", help="The thread that asks.")
    ] = None,
    threads: ThreadsOption = None,
    namespace: NamespaceOption = None,
    filter_: FilterOption = None,
    type_: TypeOption = None,
    tag: TagOption = None,
    user: UserOption = None,
    limit: LimitOption = 10,
    explain_: Annotated[
        bool, typer.Option("--explain", help="Tell how each hit came by its score.")
    ] = False,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find the entries and turns that answer a question, best first.

    The turns are those of all threads, with --thread of that one, else as --threads says. What
    restricts entries, such as --namespace, leaves turns out, unless --threads or --thread is given.
    """
    asked = given_text("question", question)
    entries = given_fields(
        namespace=namespace,
        filter=given_json("filter", filter_),
        type=type_,
        tags=tag or None,
        user_id=user,
    )
    default = "this" if thread is not None else "none" if entries else "all"
    which = threads_given(threads, default=default)
    options = entries | {"threads": which, "limit": limit, "explain": explain_}
    with opened_tenant(location, tenant) as owner:
        found = _found(owner, asked, thread, options)
    value: dict[str, Any] = {"tenant": owner.name, "threads": which or "none"}
    value |= {"hits": [hit_json(hit) for hit in found], "warnings": warnings_json(found.warnings)}
    emit(value, map(hit_text, found), as_json=as_json)
    for warning in found.warnings:
        note(explain(warning), quiet=quiet)
    note("nothing was found", quiet=quiet or bool(found))
    note(KEYWORDS_ONLY, quiet=quiet or not lacks_embedder())


def threads_given(threads: str | None, *, default: str) -> "RecallThreads | None":
    """Return whose turns are recalled.

    Raises:
        InvalidInputError: It is none of the three words.
    """
    match default if threads is None else threads:
        case "this":
            return "this"
        case "all":
            return "all"
        case "none":
            return None
    raise InvalidInputError("threads", "must be this, all or none")


def _found(
    owner: "Tenant", question: str, thread: str | None, options: dict[str, Any]
) -> "RecallResult":
    if thread is None:
        if options["threads"] == "this":
            raise InvalidInputError("threads", "which is this? add --thread NAME")
        return owner.recall(question, **options)
    asking = owner.thread(thread)
    asking.info()  # entries alone would answer in the name of a thread that is not there
    return asking.recall(question, **options)
