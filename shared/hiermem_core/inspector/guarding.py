"""Who may ask: the holder of the token, from this machine, from the inspector's own pages."""

from __future__ import annotations

from dataclasses import dataclass
from secrets import compare_digest
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Sent with every answer: nothing from outside is loaded, run, framed, cached or told."""

_READING = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class Door:
    """What a request must bear to be let in.

    Attributes:
        token: The first part of every path.
    """

    token: str
    port: int

    @property
    def hosts(self) -> tuple[str, str]:
        """The names of this machine that are answered; another one may be a rebound name."""
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"

    def refusal(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """Return the status and text with which a request is refused, `None` to let it in. Pure."""
        if headers.get("host") not in self.hosts:
            return 421, "this name is not the inspector's; use the address it printed"
        if not self._is_token(path.removeprefix("/").partition("/")[0]):
            return 403, "the address lacks its token; use the one that hiermem inspect printed"
        if method not in _READING and not self._is_own(headers):
            return 403, "this was not sent by a page of the inspector"
        return None

    def _is_token(self, given: str) -> bool:
        return compare_digest(given.encode(), self.token.encode())

    def _is_own(self, headers: Mapping[str, str]) -> bool:
        """Tell whether a form was sent by a page of ours, as the browser says."""
        is_same_site = headers.get("sec-fetch-site", "same-origin") == "same-origin"
        return is_same_site and headers.get("origin") in {f"http://{host}" for host in self.hosts}


class Guard:
    """Answers what the door refuses, and adds the headers to every answer."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._door.refusal(scope["method"], scope["path"], Headers(scope=scope))
        if refusal is None:
            await self._app(scope, receive, send_guarded)
            return
        status, text = refusal
        await PlainTextResponse(text, status)(scope, receive, send_guarded)
