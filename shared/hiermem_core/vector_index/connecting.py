"""Opening clients of Chroma: on a folder of this machine, or of a server."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from hiermem_core.errors import ConfigurationError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy.engine import URL


@dataclass(frozen=True, slots=True)
class ChromaServer:
    """A Chroma server, by the URL of `chroma_url`."""

    url: str = field(repr=False)


_SECONDS = 30.0
"""A server that does not answer in time has failed; the rows answer then."""

_PORTS = {"http": 8000, "https": 443}
_OF_CHROMA = frozenset({"tenant", "database"})


def embedded(folder: Path) -> Callable[[], Any]:
    """Return what opens a client on a folder of this machine, which must have no other owner."""

    def connect() -> Any:
        chromadb, settings = _imported()
        options = settings(
            _env_file=None,
            anonymized_telemetry=False,
            allow_reset=False,
            chroma_api_impl="chromadb.api.rust.RustBindingsAPI",
            chroma_otel_collection_endpoint="",
            chroma_server_nofile=None,
            is_persistent=True,
            migrations="apply",
            migrations_hash_algorithm="md5",
            persist_directory=str(folder),
        )
        return chromadb.PersistentClient(str(folder), settings=options)

    return connect


def served(url: str) -> Callable[[], Any]:
    """Return what opens a client of a Chroma server, or of Chroma Cloud.

    Args:
        url: Of `chroma_url`.
    """
    place = chroma_url(url)

    def connect() -> Any:
        chromadb, settings = _imported()
        client = chromadb.HttpClient(
            host=place.host,
            port=place.port or _PORTS[place.drivername],
            ssl=place.drivername == "https",
            headers=_credentials(place),
            settings=settings(
                _env_file=None, anonymized_telemetry=False, chroma_otel_collection_endpoint=""
            ),
            **place.query,
        )
        session = _session_of(client)
        if session is not None:
            session.timeout = _SECONDS
        return client

    return connect


def close_client(client: Any) -> None:
    """Close a client, and the connections to a server, which Chroma itself leaves open."""
    client.close()
    for one in (client, getattr(client, "_admin_client", None)):
        session = _session_of(one)
        if session is not None:
            session.close()


def _session_of(client: Any) -> Any:
    """Return what holds a client's connections: Chroma offers neither its timeout nor its end."""
    return getattr(getattr(client, "_server", None), "_session", None)


def chroma_url(text: str) -> URL:
    """Return the URL of a Chroma server: `http://host:8000`, `https://user:password@host`.

    A name without a password is a token: `https://token@api.trychroma.com?tenant=t&database=d`.

    Raises:
        ConfigurationError: It is no such URL. What it says is not in the error.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise ConfigurationError("chroma", "is no URL; write http://host:8000") from None
    if url.drivername not in _PORTS or not url.host or url.database:
        raise ConfigurationError("chroma", "is no server; write http://host:8000")
    unknown = ", ".join(sorted(url.query.keys() - _OF_CHROMA))
    if unknown:
        raise ConfigurationError("chroma", f"unknown parameter {unknown}; remove it")
    return url


def _credentials(url: URL) -> dict[str, str]:
    if url.username and url.password is not None:
        pair = f"{url.username}:{url.password}".encode()
        return {"Authorization": f"Basic {b64encode(pair).decode()}"}
    return {"x-chroma-token": url.username} if url.username else {}


def _imported() -> tuple[Any, Any]:
    try:
        import chromadb  # noqa: PLC0415 - 80 packages, an extra
        from chromadb.config import Settings  # noqa: PLC0415 - as above
    except ImportError as error:
        raise MissingExtraError("chroma", feature="the vector index") from error
    return chromadb, Settings
