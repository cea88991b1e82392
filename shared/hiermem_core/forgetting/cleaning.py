"""Cleaning the files of what was erased from the rows."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from hiermem_core.backends.keywords import shed_removed
from hiermem_core.errors import HierMemError, IndexUnavailableError
from hiermem_core.forgetting.marks import all_due, settle
from hiermem_core.models.moments import to_milliseconds
from hiermem_core.vector_index.facts import (
    generations,
    read_facts,
    remove_generation,
    write_facts,
)
from hiermem_core.vector_index.ownership import Ownership

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hiermem_core.forgetting.marks import Due, Part
    from hiermem_core.protocols import Clock
    from hiermem_core.storage.database import Database
    from hiermem_core.vector_index.indexer import Indexer

_logger = logging.getLogger(__name__)


class Cleaner:
    """Clean the files of a location, for every selector that is due.

    The vector index is built anew from the rows; the keyword index's segments are merged, the
    database is rewritten and its write-ahead log emptied. Each part is noted when it is done, so
    that a process that dies leaves the rest to the next.
    """

    def __init__(self, database: Database, indexer: Indexer, *, clock: Clock) -> None:
        self._database = database
        self._indexer = indexer
        self._clock = clock

    def clean(self, patience: float | None = None) -> dict[str, str]:
        """Do what is due; return the parts that failed, with the error's type.

        Args:
            patience: Seconds to wait for others that use the database; `None`: as long as a
                write waits.
        """
        with self._database.read() as connection:
            due = all_due(connection)
        failed: dict[str, str] = {}
        if any(one.index for one in due):
            due = self._done("index", due, self._clean_index, failed)
        if any(one.files for one in due):
            self._done("files", due, lambda: self._clean_files(patience), failed)
        return failed

    def _done(
        self, part: Part, due: list[Due], action: Callable[[], None], failed: dict[str, str]
    ) -> list[Due]:
        try:
            action()
            with self._database.write() as connection:
                return settle(connection, part, due, now_ms=to_milliseconds(self._clock.now()))
        except HierMemError as error:
            failed[part] = type(error).__name__
            _logger.warning("what was forgotten is still in the %s: %s", part, failed[part])
            return due

    def _clean_files(self, patience: float | None) -> None:
        shed_removed(self._database)
        self._database.clean(patience)

    def _clean_index(self) -> None:
        if self._indexer.is_shared:
            self._indexer.purge()
            return
        folder = self._database.location.index_folder
        if folder is None:
            return
        if _is_there(folder):
            if self._indexer.is_on:
                self._indexer.purge()
            else:
                _remove_unused(folder)
        if not generations(folder):
            self._distrust()

    def _distrust(self) -> None:
        """Have an index whose files are gone built anew, should they come back from somewhere."""
        with self._database.write() as connection:
            facts = replace(read_facts(connection), stamp="")
            write_facts(connection, facts, now_ms=to_milliseconds(self._clock.now()))


def _is_there(folder: Path) -> bool:
    """Tell whether the index's folder is there.

    Raises:
        IndexUnavailableError: Something is there that cannot be read.
    """
    try:
        os.listdir(folder)  # noqa: PTH208 - a folder that cannot be read must raise at once
    except FileNotFoundError:
        return False
    except OSError as error:
        reason = f"its folder cannot be read ({error.strerror}); mend that and repeat it"
        raise IndexUnavailableError("forgetting", reason) from error
    return True


def _remove_unused(folder: Path) -> None:
    """Remove the files of an index that this process does not use; it is built anew when needed."""
    ownership = Ownership(folder)
    if not ownership.try_own():
        reason = f"{ownership.owner} owns the index; repeat it there, or when that has ended"
        raise IndexUnavailableError("forgetting", reason)
    try:
        for generation in generations(folder):
            remove_generation(folder, generation)
    finally:
        ownership.release()
