"""Who changes an index that every process asks: one, by a lock of the database."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from hiermem_core.errors import HierMemError
from hiermem_core.vector_index.ownership import Ownership

if TYPE_CHECKING:
    from hiermem_core.storage.database import Database
    from hiermem_core.storage.dialect import Hold
    from hiermem_core.vector_index.generations import Owner

_NAME = "vector index"


def ownership_in(database: Database) -> Owner:
    """Return the ownership of a location's index on a server.

    By a lock of the database's server, or by a file beside the database; a memory of this process
    has no other owner.
    """
    folder = database.location.index_folder
    if database.location.server is not None:
        return DatabaseOwnership(database)
    return OnlyOwner() if folder is None else Ownership(folder)


class DatabaseOwnership:
    """Ownership by a lock that a session of the database's server holds, as long as it lives.

    Attributes:
        is_foreign: Another owner kept this one from owning it, at the last try.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._hold: Hold | None = None
        self._process = os.getpid()
        self.is_foreign = False

    @property
    def is_held(self) -> bool:
        """Tell whether this process owns the index."""
        if self._process != os.getpid():
            self._hold, self._process = None, os.getpid()
        return self._hold is not None and self._hold.is_alive

    @property
    def owner(self) -> str | None:
        """Say who the owner is, as far as it is known."""
        return "this process" if self.is_held else "another process" if self.is_foreign else None

    def try_own(self) -> bool:
        """Own the index, unless another does. Never waits."""
        if self.is_held:
            return True
        self.release()
        with suppress(HierMemError):  # a server that cannot be reached has no owner
            self._hold = self._database.hold(_NAME)
            self.is_foreign = self._hold is None
        return self._hold is not None

    def release(self) -> None:
        """End the ownership. Idempotent."""
        hold, self._hold = self._hold, None
        if hold is not None:
            hold.release()


class OnlyOwner:
    """The ownership of what no other process has."""

    is_foreign = False
    is_held = True
    owner = "this process"

    def try_own(self) -> bool:
        """Own it."""
        return True

    def release(self) -> None:
        """Do nothing."""
