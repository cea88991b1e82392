"""Whose vectors a location holds: the recorded embedder, and whether the given one is that."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select

from hiermem_core.embedding.identity import EmbedderIdentity, agrees
from hiermem_core.errors import EmbedderMismatchError
from hiermem_core.storage.tables import metadata

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from hiermem_core.storage.database import Database

NAME_KEY = "embedder_name"
"""The name under which the vectors that count are stored; changes when a reindex is complete."""

IDENTITY_KEY = "embedder:"
"""With a name after it: the identity recorded under that name."""

GIVEN = "given"
"""Stands for a model id where vectors are given and there is no embedder."""

_NAME = f"SELECT value FROM metadata WHERE key = '{NAME_KEY}'"  # noqa: S608 - a constant


class RecordedEmbedder:
    """The embedder whose vectors count, as the database says at every moment."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, EmbedderIdentity] = {}

    def name(self, connection: Connection | None = None) -> str:
        """Return its name, such as `all-MiniLM-L6-v2 (384)`; `""` while there is no vector."""
        return self._database.fact(_NAME, inside=connection) or ""

    def identity(self, name: str) -> EmbedderIdentity | None:
        """Return what is recorded under a name, which stands for one embedder for good."""
        if name and name not in self._known:
            with self._database.read() as connection:
                query = select(metadata.c.value).where(metadata.c.key == IDENTITY_KEY + name)
                stored = connection.execute(query).scalar()
            if stored is not None:
                self._known[name] = EmbedderIdentity.from_json(stored)
        return self._known.get(name)

    def record(self, identity: EmbedderIdentity, *, now_ms: int) -> None:
        """Record the embedder of the first vectors, unless another process was faster.

        Raises:
            EmbedderMismatchError: It was, with another embedder.
        """
        with self._database.write() as connection:
            query = select(metadata.c.value).where(metadata.c.key == NAME_KEY)
            stored = connection.execute(query).scalar()
            if stored is None:
                write_identity(connection, identity, now_ms=now_ms)
                write_name(connection, str(identity), now_ms=now_ms)
        if stored is not None:
            self.check(identity)

    def check(self, identity: EmbedderIdentity) -> None:
        """Raise `EmbedderMismatchError` unless the recorded vectors are by this embedder."""
        stored = self.identity(self.name())
        if stored is None:
            return
        if not _is_same(stored, identity):
            has_name = str(stored) == str(identity)
            given = f"{identity} with other vectors" if has_name else str(identity)
            raise EmbedderMismatchError(stored=str(stored), given=given)

    def named(self, identity: EmbedderIdentity, begun: str | None, *, now_ms: int) -> str:
        """Return a name for vectors by an embedder whose vectors do not count now.

        A name stands for one making of vectors for good, so that an index of it is never mistaken.

        Args:
            begun: The name of a making that was cut off; taken up again if it is this embedder's.
        """
        known = None if begun is None else self.identity(begun)
        if begun is not None and known is not None and _is_same(known, identity):
            return begun
        with self._database.write() as connection:
            names = (f"{identity} #{place}" if place > 1 else str(identity) for place in count(1))
            name = next(name for name in names if not _is_taken(connection, name))
            write_identity(connection, identity, name=name, now_ms=now_ms)
        return name

    def check_name(self, model_id: str, dimensions: int | None) -> None:
        """Raise `EmbedderMismatchError` where name or length differ; calls no embedder."""
        stored = self.identity(self.name())
        if stored is None:
            return
        lengths = {stored.dimensions, dimensions or stored.dimensions}
        if stored.model_id != model_id or len(lengths) > 1:
            given = model_id if dimensions is None else f"{model_id} ({dimensions})"
            raise EmbedderMismatchError(stored=str(stored), given=given)


def _is_same(stored: EmbedderIdentity, identity: EmbedderIdentity) -> bool:
    has_name = (stored.model_id, stored.dimensions) == (identity.model_id, identity.dimensions)
    return has_name and agrees(stored, identity.probes)


def _is_taken(connection: Connection, name: str) -> bool:
    query = select(metadata.c.key).where(metadata.c.key == IDENTITY_KEY + name)
    return connection.execute(query).first() is not None


def write_identity(
    connection: Connection, identity: EmbedderIdentity, *, now_ms: int, name: str | None = None
) -> None:
    """Write an identity under a name; default: its own."""
    _write(connection, IDENTITY_KEY + (name or str(identity)), identity.to_json(), now_ms)


def write_name(connection: Connection, name: str, *, now_ms: int) -> None:
    """Have the vectors of a name count from now on."""
    _write(connection, NAME_KEY, name, now_ms)


def _write(connection: Connection, key: str, value: str, now_ms: int) -> None:
    connection.execute(delete(metadata).where(metadata.c.key == key))
    row = {"key": key, "value": value, "updated_at": now_ms}
    connection.execute(insert(metadata).values(row))
