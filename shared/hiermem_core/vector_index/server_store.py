"""The vector index on a Chroma server: every process asks it, one at a time changes it."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import HierMemError, IndexUnavailableError, MissingExtraError
from hiermem_core.faults import reach
from hiermem_core.vector_index import probing, rows
from hiermem_core.vector_index.building import fill, settle_copied
from hiermem_core.vector_index.chroma import ChromaIndex
from hiermem_core.vector_index.facts import Facts, new_stamp, read_facts, write_facts
from hiermem_core.vector_index.files import Files
from hiermem_core.vector_index.generations import Generations, close_quietly

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core.protocols import Clock
    from hiermem_core.storage.database import Database
    from hiermem_core.vector_index.building import Pace
    from hiermem_core.vector_index.generations import Owner

_EVERY = 2**31
"""A server decides itself how many collections it holds in memory."""


class ServerStore(Generations):
    """The vector index on a server, in collections whose names begin with its stamp.

    So locations share a server, and a server that has lost what it held is noticed: what the rows
    say is in it is looked up whenever it is opened.

    Args:
        connect: Opens a client.
        ownership: Who may change it.
    """

    is_shared = True

    def __init__(
        self, database: Database, connect: Callable[[], Any], ownership: Owner, *, clock: Clock
    ) -> None:
        super().__init__(database, clock=clock)
        self.ownership = ownership
        self._connect = connect

    @property
    def has_any(self) -> bool:
        """Tell whether there is any generation."""
        facts = self._facts()
        return bool(facts.stamp or facts.leftovers)

    def ready(self, embedder: str, pace: Pace) -> ChromaIndex:
        """Return the index, opened, looked at, and built anew where it has to be.

        Where another process is the owner, the index answers all the same.

        Raises:
            IndexUnavailableError: Another owns it, the server fails, or the work was ended.
        """
        facts = self._facts()
        embedder = embedder or facts.embedder
        if not embedder:
            raise IndexUnavailableError("opening", "no embedder is known yet; name one")
        index = self.index
        if index is not None and (embedder, facts.generation) == (self.embedder, self.generation):
            if not self.ownership.is_held:
                index.refresh()
                self._own()
            return index
        self._give_up()
        index = self._opened(facts.stamp) if facts.stamp else None
        verdict = "bad" if index is None else self._verdict(index, facts, embedder)
        if index is None or verdict == "bad":
            if index is not None:
                close_quietly(index)
            self._own()
            return self.rebuild(embedder, pace)
        self._take(index, facts.generation, embedder, facts.added)
        self._own()
        if verdict == "drifted":
            self._queue_differences()
        self._tidy()
        return index

    def rebuild(self, embedder: str, pace: Pace) -> ChromaIndex:
        """Build the next generation from the database, and use it from then on.

        Raises:
            IndexUnavailableError: The server fails, or the work was ended; nothing has changed.
        """
        self._own()
        stamp = new_stamp()
        facts = self._facts()
        embedder = embedder or facts.embedder
        self._write(replace(facts, leftovers=(*facts.leftovers, stamp)))
        self.is_building = True
        try:
            index = self._built(stamp, embedder, pace)
        finally:
            self.is_building = False
        old = self._take(index, facts.generation + 1, embedder, self._added)
        if old is not None:
            close_quietly(old)
        reach("index.after_swap")
        self._tidy()
        return index

    def remove_others(self) -> None:
        """Drop the collections of every generation but the one in use.

        Raises:
            IndexUnavailableError: The server fails, or another owns the index.
        """
        self._own()
        for stamp in self._facts().leftovers:
            other = self._opened(stamp)
            try:
                for name in other.collections:
                    other.drop(name)
            finally:
                close_quietly(other)
            facts = self._facts()
            self._write(replace(facts, leftovers=_without(facts.leftovers, stamp)))

    def files(self, index: ChromaIndex) -> Files:
        """Return nothing: the files are the server's."""
        del index
        return Files()

    def close(self) -> None:
        """Close the client, and end the ownership."""
        with self._swapping:
            index, self.index = self.index, None
        with suppress(HierMemError):
            if index is not None:
                index.close()
        self._give_up()
        self.ownership.release()

    def abandon(self) -> None:
        """Begin anew in a forked child, with a client of its own."""
        self._swapping = threading.Lock()
        self.index, self._lost, self.is_building = None, [], False

    def _own(self) -> None:
        if not self.ownership.try_own():
            reason = f"{self.ownership.owner or 'another process'} keeps the index"
            raise IndexUnavailableError("changing", reason)

    def _facts(self) -> Facts:
        with self._database.read() as connection:
            return read_facts(connection)

    def _write(self, facts: Facts) -> None:
        with self._database.write() as connection:
            write_facts(connection, facts, now_ms=self.now_ms())

    def _opened(self, stamp: str) -> ChromaIndex:
        try:
            return ChromaIndex(self._connect, most_open=_EVERY, prefix=f"{stamp}-", is_served=True)
        except MissingExtraError as error:
            raise IndexUnavailableError("opening", str(error)) from error

    def _verdict(self, index: ChromaIndex, facts: Facts, embedder: str) -> probing.Verdict:
        if embedder != facts.embedder:
            return "bad"
        with self._database.read() as connection:
            tenants = rows.indexed_tenants(connection)
            expected = [self._expected(connection, tenant, embedder) for tenant in tenants]
        seen = {one.collection: probing.look_at(index, one) for one in expected}
        return probing.judge(expected, seen)

    def _built(self, stamp: str, embedder: str, pace: Pace) -> ChromaIndex:
        index = self._opened(stamp)
        try:
            copied = fill(index, self._database, embedder, pace)
            reach("index.before_swap")
            with self._database.write() as connection:
                old = read_facts(connection)
                leftovers = _without((*old.leftovers, old.stamp), stamp)
                facts = Facts(
                    generation=old.generation + 1,
                    is_clean=True,
                    embedder=embedder,
                    added=copied.total,
                    stamp=stamp,
                    leftovers=leftovers,
                )
                write_facts(connection, facts, now_ms=self.now_ms())
                settle_copied(connection, copied)
        except BaseException:  # no client stays open, whatever it is
            close_quietly(index)
            raise
        self._added = copied.total
        return index


def _without(stamps: tuple[str, ...], stamp: str) -> tuple[str, ...]:
    return tuple(one for one in stamps if one not in {"", stamp})
