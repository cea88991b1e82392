"""The seal of a location: made with it, and opened by the codec it was made with and no other."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from sqlalchemy import insert, select

from hiermem_core.errors import BackendError, ConfigurationError
from hiermem_core.storage.sealing import Seal, decoded, encoded
from hiermem_core.storage.tables import metadata

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from hiermem_core.protocols import Codec

_SEAL_KEY = "seal"
_MARK = "hiermem:"


def make_seal(connection: Connection, codec: Codec, *, now_ms: int) -> None:
    """Have a new location's content sealed by a codec from now on, and for good."""
    text = encoded(codec, _MARK + secrets.token_hex(32))
    row = {"key": _SEAL_KEY, "value": text, "updated_at": now_ms}
    connection.execute(insert(metadata).values(row))


def seal_in(connection: Connection, codec: Codec | None) -> Seal | None:
    """Return what seals a location that is there; `None`: its content is plain.

    Raises:
        ConfigurationError: It was made with a codec, and this is none, or has another key; or it
            was made without.
    """
    query = select(metadata.c.value).where(metadata.c.key == _SEAL_KEY)
    stored = connection.execute(query).scalar()
    if stored is None:
        if codec is None:
            return None
        reason = "the location was made without one; export its tenants, import them into a new one"
        raise ConfigurationError("codec", reason)
    if codec is None:
        reason = (
            "the location's content is encoded; open it with the codec it was made with, or set "
            "HIERMEM_ENCRYPTION_KEY"
        )
        raise ConfigurationError("codec", reason)
    try:
        secret = decoded(codec, stored)
    except BackendError:
        secret = ""
    if not secret.startswith(_MARK):
        reason = "does not decode the location's content; give the key it was made with"
        raise ConfigurationError("codec", reason)
    return Seal(codec, secret.removeprefix(_MARK).encode())
