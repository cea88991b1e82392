"""Serving the inspector on this machine."""

from __future__ import annotations

import socket
from contextlib import contextmanager
from secrets import token_urlsafe
from typing import TYPE_CHECKING

from hiermem_core.errors import ConfigurationError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hiermem_core.hiermem import HierMem

HOST = "127.0.0.1"


def serve(
    memory: HierMem, *, tenants: Sequence[str], port: int = 0, tell: Callable[[str], None]
) -> None:
    """Serve the inspector of an open memory until the process is interrupted.

    Args:
        tenants: Those that may be opened.
        port: 0: one that is free.
        tell: Told the address, once it answers; who has it may read and forget.

    Raises:
        MissingExtraError: The extra `inspect` is not installed.
        ConfigurationError: The port is taken.
    """
    try:
        import uvicorn  # noqa: PLC0415 - an extra

        from hiermem_core.inspector.guarding import Door  # noqa: PLC0415 - needs the extra
        from hiermem_core.inspector.pages import create_app  # noqa: PLC0415 - needs the extra
    except ImportError:
        raise MissingExtraError("inspect", feature="the inspector") from None
    with _listening(port) as listener:
        door = Door(token_urlsafe(24), listener.getsockname()[1])
        app = create_app(memory, tenants=tenants, door=door)
        config = uvicorn.Config(
            app,
            access_log=False,  # its lines would hold the token
            log_level="warning",
            lifespan="off",
            ws="none",
            server_header=False,
            proxy_headers=False,
        )
        tell(f"http://{HOST}:{door.port}/{door.token}/")
        uvicorn.Server(config).run(sockets=[listener])


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    """Listen on this machine only."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            reason = f"{port} cannot be used ({error.strerror}); name another, or 0 for any"
            raise ConfigurationError("port", reason) from error
        listener.listen()
        yield listener
