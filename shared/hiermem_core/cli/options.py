"""The options that commands share, and what they mean."""

from typing import Annotated

import typer

LocationOption = Annotated[
    str | None,
    typer.Option(
        "--location",
        metavar="PATH",
        help="Folder or .db file of the memory; else HIERMEM_LOCATION, else your data folder.",
    ),
]
TenantOption = Annotated[
    str | None,
    typer.Option("--tenant", metavar="NAME", help="Whose memory it is; else HIERMEM_TENANT."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print the result and nothing else.")]
ThreadArgument = Annotated[str, typer.Argument(metavar="THREAD", help="The thread's name.")]
