"""`hiermem inspect`: a page that shows what is kept, and makes it forget."""

import webbrowser
from typing import Annotated

import typer

from hiermem_core.cli.opening import named_tenant, opened
from hiermem_core.cli.options import JsonOption, LocationOption, QuietOption
from hiermem_core.cli.output import emit, flush, note


def inspect(
    *,
    tenant: Annotated[
        list[str] | None,
        typer.Option(
            "--tenant",
            metavar="NAME",
            help="A tenant that may be opened, may be given several times; else HIERMEM_TENANT.",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="N", help="0: one that is free.")
    ] = 0,
    browser: Annotated[bool, typer.Option("--browser", help="Open it in the browser.")] = False,
    location: LocationOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Serve a page that shows threads, notes, entries and contexts, and can forget them.

    It answers on this machine only, at the address printed, whose token is made anew each time:
    who has the address may read and forget. It asks nothing of any other server. Ctrl-C ends it.
    """
    from hiermem_core.inspector.serving import serve  # noqa: PLC0415 - not for --help

    names = list(dict.fromkeys(tenant or [named_tenant(None)]))

    def tell(address: str) -> None:
        emit({"address": address, "tenants": names}, [address], as_json=as_json)
        flush()
        note("Ctrl-C ends it", quiet=quiet)
        if browser:
            webbrowser.open(address)

    with opened(location) as hiermem:
        serve(hiermem, tenants=names, port=port, tell=tell)
