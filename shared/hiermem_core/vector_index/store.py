"""The generations of the vector index: which is in use, whether it can be, and making the next.

Nothing here is called twice at once; `Indexer` sees to it.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hiermem_core.errors import HierMemError, IndexUnavailableError, MissingExtraError
from hiermem_core.faults import reach
from hiermem_core.models.moments import to_milliseconds
from hiermem_core.vector_index import probing, rows
from hiermem_core.vector_index.building import fill, settle_copied
from hiermem_core.vector_index.chroma import (
    MOST_OPEN,
    ChromaIndex,
    collection_name,
    embedded,
    is_forked_from_use,
)
from hiermem_core.vector_index.facts import (
    Facts,
    bears_stamp,
    folder_of,
    generations,
    new_stamp,
    read_facts,
    remove_generation,
    write_facts,
    write_progress,
    write_stamps,
)
from hiermem_core.vector_index.files import Files, look_at_files
from hiermem_core.vector_index.ownership import Ownership
from hiermem_core.vector_index.tails import Tails

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlalchemy import Connection

    from hiermem_core.protocols import Clock
    from hiermem_core.storage.database import Database
    from hiermem_core.vector_index.building import Pace

_LEAST_TO_COMPACT = 1_000
_LOOKED_AT_AFTER = 20

_logger = logging.getLogger(__name__)


class IndexStore:
    """The vector index in a folder that this process owns, or tries to.

    Attributes:
        index: What answers now; `None`: nothing does.
        embedder: Whose vectors it holds.
        is_building: The next generation is being built.
        is_abandoned: This is a forked child; the index is its parent's.
    """

    def __init__(
        self,
        database: Database,
        folder: Path,
        *,
        clock: Clock,
        is_stopping: Callable[[], bool],
        most_open: int = MOST_OPEN,
    ) -> None:
        self.index: ChromaIndex | None = None
        self.embedder = ""
        self.is_building = False
        self.is_abandoned = False
        self.ownership = Ownership(folder)
        self._database = database
        self._folder = folder
        self._clock = clock
        self._is_stopping = is_stopping
        self._most_open = most_open
        self._generation = 0
        self._added = 0
        self._changes = 0
        self._lost: list[ChromaIndex] = []
        self._tails = Tails()
        self._swapping = threading.Lock()

    @property
    def is_elsewhere(self) -> bool:
        """Tell whether the index is another process's for now, which is no failure."""
        return self.is_abandoned or is_forked_from_use() or self.ownership.is_foreign

    @property
    def has_files(self) -> bool:
        """Tell whether there is any generation."""
        return bool(generations(self._folder))

    def ready(self, embedder: str, pace: Pace) -> ChromaIndex:
        """Return the index, opened, looked at, and built anew where it has to be.

        Raises:
            IndexUnavailableError: Another owns the folder, the disk fails, or the work was ended.
        """
        is_same = embedder in ("", self.embedder)
        if self.index is not None and is_same and self.ownership.is_held:
            return self.index
        self._give_up()
        self._own()
        with self._database.read() as connection:
            facts = read_facts(connection)
        embedder = embedder or facts.embedder
        if not embedder:
            raise IndexUnavailableError("opening", "no embedder is known yet; name one")
        verdict = self._verdict(facts, embedder)
        if verdict == "bad":
            return self.rebuild(embedder, pace)
        index = self._reopened(facts)
        self._take(index, facts.generation, embedder, facts.added)
        if verdict == "drifted":
            self._queue_differences()
        self._tidy()
        return index

    def rebuild(self, embedder: str, pace: Pace) -> ChromaIndex:
        """Build the next generation from the database, and use it from then on.

        What answers now goes on answering until then, if anything does.

        Raises:
            IndexUnavailableError: The disk fails, or the work was ended; nothing has changed.
        """
        self._own()
        with self._database.read() as connection:
            facts = read_facts(connection)
        embedder = embedder or facts.embedder
        generation = max([facts.generation, *generations(self._folder)]) + 1
        folder = folder_of(self._folder, generation)
        self.is_building = True
        try:
            index = self._built(folder, embedder, pace, generation)
        except BaseException:  # no half a generation stays, whatever it is
            with suppress(IndexUnavailableError):
                remove_generation(self._folder, generation)
            raise
        finally:
            self.is_building = False
        old = self._take(index, generation, embedder, self._added)
        if old is not None:
            _close_quietly(old)
        reach("index.after_swap")
        self._tidy()
        return index

    def remove_others(self) -> None:
        """Remove every generation but the one in use, and the bytes of what was removed with it.

        Raises:
            IndexUnavailableError: Something stays, or another owns the folder.
        """
        self._own()
        with self._database.read() as connection:
            facts = read_facts(connection)
        for generation in generations(self._folder):
            if generation != facts.generation:
                remove_generation(self._folder, generation)

    def compact(self, pace: Pace) -> None:
        """Rebuild where vectors that are gone take more room than those that are there."""
        if self._changes < max(_LEAST_TO_COMPACT, self._added // _LOOKED_AT_AFTER):
            return
        self._changes = 0
        with self._database.read() as connection:
            living = sum(
                rows.count_vectors(connection, tenant, self.embedder)
                for tenant in rows.indexed_tenants(connection)
            )
        if self._added > 2 * max(living, _LEAST_TO_COMPACT):
            self.rebuild(self.embedder, pace)

    def files(self, index: ChromaIndex) -> Files:
        """Return what the files in use are like."""
        with index.quiet():
            return self._tails.files_of(folder_of(self._folder, self._generation))

    def note_changes(
        self, connection: Connection, *, added: int, removed: int, files: Files
    ) -> None:
        """Note changes that were made, in the transaction that settles them."""
        self._added += added
        self._changes += added + removed
        write_progress(connection, self._added, files, now_ms=self.now_ms())

    def lose(self, index: ChromaIndex) -> None:
        """Stop using an index that failed; it is looked at and opened again by `ready`."""
        with self._swapping:
            if self.index is index:
                self.index = None
                self._lost.append(index)

    def differences(self, tenant: str) -> tuple[list[int], list[int]]:
        """Return numbers missing from the index and numbers that have no vector.

        What is queued already is in neither.
        """
        if self.index is None:
            raise IndexUnavailableError("comparing", "the index is not open; try again")
        there = self.index.numbers(collection_name(tenant, self.embedder))
        with self._database.read() as connection:
            living = rows.living(connection, tenant, self.embedder)
            adds = rows.pending(connection, tenant, "add")
            removes = rows.pending(connection, tenant, "remove")
        missing = np.setdiff1d(np.setdiff1d(living, there), adds)
        orphans = np.setdiff1d(np.setdiff1d(there, living), removes)
        return missing.tolist(), orphans.tolist()

    def finds_itself(self, tenant: str) -> bool:
        """Tell whether a tenant's vectors are found by themselves."""
        if self.index is None:
            return False
        with self._database.read() as connection:
            expected = self._expected(connection, tenant, self.embedder)
        seen = probing.look_at(self.index, expected)
        return probing.judge([expected], {expected.collection: seen}) != "bad"

    def close(self) -> None:
        """Close the index, note that it was closed in order, and end the ownership."""
        with self._swapping:
            index, self.index = self.index, None
        with suppress(HierMemError):
            if index is not None:
                index.close()
                files = self.files(index)
                with self._database.write() as connection:
                    facts = replace(read_facts(connection), is_clean=True, files=files)
                    write_facts(connection, facts, now_ms=self.now_ms())
        self._give_up()
        self.ownership.release()

    def abandon(self) -> None:
        """Leave everything to the parent, in a forked child."""
        for index in [self.index, *self._lost]:
            if index is not None:
                index.abandon()
        self._swapping, self.is_abandoned = threading.Lock(), True
        self.index, self._lost, self.is_building = None, [], False
        self.ownership.release()

    def now_ms(self) -> int:
        """Return the present in UTC milliseconds."""
        return to_milliseconds(self._clock.now())

    def _own(self) -> None:
        if is_forked_from_use():
            raise IndexUnavailableError("opening", "Chroma does not survive a fork; start anew")
        if not self.ownership.try_own():
            reason = f"{self.ownership.owner} owns the index; use a Chroma server to share it"
            raise IndexUnavailableError("opening", reason)

    def _give_up(self) -> None:
        if self.index is not None:
            self.lose(self.index)
        while self._lost:
            _close_quietly(self._lost.pop())

    def _take(
        self, index: ChromaIndex, generation: int, embedder: str, added: int
    ) -> ChromaIndex | None:
        with self._swapping:
            self._generation = generation
            self.embedder, self._added, self._changes = embedder, added, 0
            old, self.index = self.index, index
        return old

    def _verdict(self, facts: Facts, embedder: str) -> probing.Verdict:
        folder = folder_of(self._folder, facts.generation)
        if embedder != facts.embedder or not bears_stamp(folder, facts.stamp):
            return "bad"
        files = look_at_files(folder)
        if files.sizes != facts.files.sizes:
            return "bad"
        if facts.is_clean:
            return "good"
        if files.times != facts.files.times:
            return "bad"
        with self._database.read() as connection:
            tenants = rows.indexed_tenants(connection)
            expected = [self._expected(connection, tenant, embedder) for tenant in tenants]
        file = self.ownership.file
        verdict = probing.probe(
            folder,
            expected,
            keep_open=() if file is None else (file,),
            is_cancelled=self._is_stopping,
        )
        if verdict is None:
            raise IndexUnavailableError("opening", "was interrupted; open the location again")
        _logger.info("the vector index was not closed in order: it is %s", verdict)
        return verdict

    def _expected(self, connection: Connection, tenant: str, embedder: str) -> probing.Expected:
        living = rows.living(connection, tenant, embedder)
        adds = rows.pending(connection, tenant, "add")
        certain = np.setdiff1d(living, adds)
        chosen = rows.samples(connection, embedder, probing.chosen(certain))
        return probing.Expected(
            collection=collection_name(tenant, embedder),
            least=len(certain),
            most=len(living) + len(rows.pending(connection, tenant, "remove")),
            numbers=[number for number, _ in chosen],
            vectors=[probing.encode(vector) for _, vector in chosen],
        )

    def _reopened(self, facts: Facts) -> ChromaIndex:
        folder = folder_of(self._folder, facts.generation)
        stamp = new_stamp()
        opened = replace(facts, stamp=stamp, is_clean=False, files=self._tails.files_of(folder))
        with _disk("opening"):
            write_stamps(folder, facts.stamp, stamp)
        with self._database.write() as connection:
            write_facts(connection, opened, now_ms=self.now_ms())
        with _disk("opening"):
            write_stamps(folder, stamp)
        return self._opened(folder)

    def _opened(self, folder: Path) -> ChromaIndex:
        try:
            return ChromaIndex(embedded(folder), most_open=self._most_open)
        except MissingExtraError as error:
            raise IndexUnavailableError("opening", str(error)) from error

    def _built(self, folder: Path, embedder: str, pace: Pace, generation: int) -> ChromaIndex:
        stamp = new_stamp()
        with _disk("rebuilding"):
            folder.mkdir(parents=True)
            write_stamps(folder, stamp)
        index = self._opened(folder)
        try:
            copied = fill(index, self._database, embedder, pace)
            facts = Facts(
                generation=generation,
                is_clean=False,
                embedder=embedder,
                added=copied.total,
                stamp=stamp,
                files=self._tails.files_of(folder),
            )
            reach("index.before_swap")
            with self._database.write() as connection:
                write_facts(connection, facts, now_ms=self.now_ms())
                settle_copied(connection, copied)
        except BaseException:  # no index stays open, whatever it is
            _close_quietly(index)
            raise
        self._added = copied.total
        return index

    def _queue_differences(self) -> None:
        with self._database.read() as connection:
            tenants = rows.indexed_tenants(connection)
        for tenant in tenants:
            missing, orphans = self.differences(tenant)
            if missing or orphans:
                with self._database.write() as connection:
                    rows.queue(connection, tenant, "add", missing)
                    rows.queue(connection, tenant, "remove", orphans)

    def _tidy(self) -> None:
        """Drop what belongs to no tenant of the index, and every other generation."""
        if self.index is None:
            return
        with self._database.read() as connection:
            tenants = rows.indexed_tenants(connection)
        names = {collection_name(tenant, self.embedder) for tenant in tenants} | {probing.CANARY}
        for name in self.index.collections - names:
            self.index.drop(name)
        with suppress(IndexUnavailableError):  # the next opening tries again
            self.remove_others()


def _close_quietly(index: ChromaIndex) -> None:
    with suppress(IndexUnavailableError):  # it is not used again
        index.close()


@contextmanager
def _disk(operation: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = f"the folder cannot be written ({error.strerror}); check the disk"
        raise IndexUnavailableError(operation, reason) from error
