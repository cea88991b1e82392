"""The options that commands share, and what they mean."""

from typing import Annotated

import typer

LocationOption = Annotated[
    str | None,
    typer.Option(
        "--location",
        metavar="PATH",
        help="Folder, .db file or postgresql+psycopg:// URL of the memory; else HIERMEM_LOCATION, "
        "else your data folder.",
    ),
]
TenantOption = Annotated[
    str | None,
    typer.Option("--tenant", metavar="NAME", help="Whose memory it is; else HIERMEM_TENANT."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print the result and nothing else.")]
IdArgument = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="The entry's id; or give --key.")
]
KeyOption = Annotated[
    str | None, typer.Option("--key", metavar="KEY", help="The entry's name in its namespace.")
]
NamespaceOption = Annotated[
    str | None,
    typer.Option("--namespace", metavar="PATH", help="Such as work/notes; what is below counts."),
]
PlaceOption = Annotated[
    str | None,
    typer.Option("--namespace", metavar="PATH", help="Such as work/notes; else default."),
]
TypeOption = Annotated[
    str | None,
    typer.Option("--type", metavar="TYPE", help="episodic, semantic, procedural or working."),
]
TagOption = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="May be given several times.")
]
UserOption = Annotated[
    str | None, typer.Option("--user", metavar="NAME", help="The user it belongs to.")
]
MetadataOption = Annotated[
    str | None, typer.Option("--metadata", metavar="JSON", help='Such as {"year": 2026}.')
]
TtlOption = Annotated[
    float | None, typer.Option("--ttl", metavar="SECONDS", help="How long it is to live.")
]
FilterOption = Annotated[
    str | None,
    typer.Option("--filter", metavar="JSON", help='On metadata: {"year": {"$gte": 2024}}.'),
]
LimitOption = Annotated[
    int, typer.Option("--limit", min=0, metavar="N", help="How many at most, up to 1000.")
]
ThreadArgument = Annotated[str, typer.Argument(metavar="THREAD", help="The thread's name.")]
