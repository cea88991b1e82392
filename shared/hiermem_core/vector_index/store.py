"""The vector index in a folder: which generation is in use, and whether it can be."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from hiermem_core.errors import HierMemError, IndexUnavailableError, MissingExtraError
from hiermem_core.faults import reach
from hiermem_core.vector_index import probing, rows
from hiermem_core.vector_index.building import fill, settle_copied
from hiermem_core.vector_index.chroma import (
    MOST_OPEN,
    ChromaIndex,
    is_forked_from_use,
)
from hiermem_core.vector_index.connecting import embedded
from hiermem_core.vector_index.facts import (
    Facts,
    bears_stamp,
    folder_of,
    generations,
    new_stamp,
    read_facts,
    remove_generation,
    write_facts,
    write_stamps,
)
from hiermem_core.vector_index.files import Files, look_at_files
from hiermem_core.vector_index.generations import Generations, close_quietly
from hiermem_core.vector_index.ownership import Ownership
from hiermem_core.vector_index.tails import Tails

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hiermem_core.protocols import Clock
    from hiermem_core.storage.database import Database
    from hiermem_core.vector_index.building import Pace

_logger = logging.getLogger(__name__)


class IndexStore(Generations):
    """The vector index in a folder that this process owns, or tries to."""

    def __init__(
        self,
        database: Database,
        folder: Path,
        *,
        clock: Clock,
        is_stopping: Callable[[], bool],
        most_open: int = MOST_OPEN,
    ) -> None:
        super().__init__(database, clock=clock)
        self.ownership: Ownership = Ownership(folder)
        self._folder = folder
        self._is_stopping = is_stopping
        self._most_open = most_open
        self._tails = Tails()

    @property
    def is_elsewhere(self) -> bool:
        """Tell whether the index is another process's for now, which is no failure."""
        return super().is_elsewhere or is_forked_from_use()

    @property
    def has_any(self) -> bool:
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
            close_quietly(old)
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

    def files(self, index: ChromaIndex) -> Files:
        """Return what the files in use are like."""
        with index.quiet():
            return self._tails.files_of(folder_of(self._folder, self._generation))

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

    def _own(self) -> None:
        if is_forked_from_use():
            raise IndexUnavailableError("opening", "Chroma does not survive a fork; start anew")
        if not self.ownership.try_own():
            reason = f"{self.ownership.owner} owns the index; use a Chroma server to share it"
            raise IndexUnavailableError("opening", reason)

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
            close_quietly(index)
            raise
        self._added = copied.total
        return index


@contextmanager
def _disk(operation: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = f"the folder cannot be written ({error.strerror}); check the disk"
        raise IndexUnavailableError(operation, reason) from error
