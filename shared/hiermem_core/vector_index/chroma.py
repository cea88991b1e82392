"""A vector index in Chroma: numbers and vectors, in collections, and nothing else.

What Chroma does, found with 1.5.9 and heeded here:

- An id that is there already is skipped by `add`, an unknown one by `delete`; an allow-list with an
  unknown id fails the query.
- Loading a collection twice at once gives two writers on its files, so a collection is loaded
  under a lock. Afterwards queries run beside each other and beside a write.
- Its threads do not survive a fork, those for adding not even for a client opened afterwards.
- Memory and file handles of a collection are freed by closing the client only.
- Its errors are of any kind: its own, a `ValueError`, an `AttributeError` after closing, and a
  `PanicException`, which is no `Exception`.
"""

from __future__ import annotations

import ctypes
import hashlib
import threading
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from hiermem_core.errors import HierMemError, IndexUnavailableError, InvalidInputError
from hiermem_core.forks import around_fork
from hiermem_core.vector_index.connecting import close_client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

MOST_OPEN = 64
SYNC_THRESHOLD = 1_000
BULK_SYNC_THRESHOLD = 10_000
"""Chroma rewrites a collection's files every so many rows."""

_HNSW = {"space": "cosine", "max_neighbors": 16, "ef_construction": 200, "ef_search": 200}
_PAGE = 5_000
_FORK_WAIT = 30.0
"""Seconds a fork waits for an opening; the import takes half a second, or ten on a busy machine."""
_TAKING_VALUES = frozenset({"adding", "searching"})
_REFUSED = frozenset(
    {"InvalidArgumentError", "InvalidDimensionException", "DuplicateIDError", "TypeError"}
)


class _Gate:
    """One opening or closing at a time, and none in the middle of a fork.

    Attributes:
        was_used: Chroma has worked in this process, or in the one it was forked from.
        is_shut: It has in the latter, so that it would wait here for threads that are not there.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.was_used = False
        self.is_shut = False

    def before_fork(self) -> None:
        """Wait for what is opening; a half imported module would stay locked in the child."""
        self._is_held = self.lock.acquire(timeout=_FORK_WAIT)

    def after_in_parent(self) -> None:
        """Go on."""
        if self._is_held:
            self.lock.release()

    def after_in_child(self) -> None:
        """Begin anew, or not at all."""
        self.lock = threading.Lock()
        self.is_shut = self.was_used


_gate = _Gate()


class _OpenGate:
    """Holds nobody up: a client of a server is nothing that a fork breaks."""

    lock: AbstractContextManager[Any] = nullcontext()
    was_used = False
    is_shut = False


_OPEN_GATE = _OpenGate()

around_fork(
    before=_gate.before_fork, in_parent=_gate.after_in_parent, in_child=_gate.after_in_child
)


def is_forked_from_use() -> bool:
    """Tell whether Chroma cannot work in this process, forked from one where it has worked."""
    return _gate.is_shut


def collection_name(tenant: str, embedder: str) -> str:
    """Return the name of a tenant's collection; says nothing of either."""
    digest = hashlib.sha256(f"{len(tenant)}:{tenant}{embedder}".encode()).hexdigest()
    return f"hm_{digest[:40]}"


class ChromaIndex:
    """Vectors by number, in the collections of one Chroma client.

    Safe to share between threads; not with a forked child, which calls `abandon` and nothing else.

    Every method raises `IndexUnavailableError` when Chroma fails, and `InvalidInputError` when it
    refuses the values given; Chroma's own error is the cause.

    Attributes:
        has_failed: Chroma has failed once; what it has in memory may be wrong from then on.

    Args:
        connect: Opens a client: `embedded(folder)` or `served(url)`.
        most_open: Collections held in memory at once; beyond it, the client is opened anew.
        prefix: Begins the names of its collections, where others have theirs beside them.
        is_served: The client is one of a server, which lives in no process of ours.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        *,
        most_open: int = MOST_OPEN,
        prefix: str = "",
        is_served: bool = False,
    ) -> None:
        self.has_failed = False
        self._prefix = prefix
        self._gate = _OPEN_GATE if is_served else _gate
        self._connect = connect
        self._most_open = most_open
        self._writing = threading.RLock()
        self._idle = threading.Condition()
        self._running = 0
        self._loaded: set[str] = set()
        self._names: set[str] = set()
        self._handles: dict[str, Any] = {}
        self._client: Any = None
        self._open()

    @property
    def collections(self) -> frozenset[str]:
        """The names of the collections."""
        return frozenset(self._names)

    def __contains__(self, collection: str) -> bool:
        """Tell whether there is a collection of that name."""
        return collection in self._names

    def add(self, collection: str, numbers: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Add vectors; a number that is there already is skipped. Makes the collection."""
        ids = [str(number) for number in numbers]
        with self._loading(collection, "adding"):
            handle = self._handle(collection) or self._made(collection, SYNC_THRESHOLD)
            for begin in range(0, len(ids), self._most_at_once):
                some = slice(begin, begin + self._most_at_once)
                handle.add(ids=ids[some], embeddings=vectors[some])

    def remove(self, collection: str, numbers: Sequence[int]) -> None:
        """Remove vectors; what is not there is skipped. The files keep their bytes."""
        ids = [str(number) for number in numbers]
        with self._loading(collection, "removing"):
            handle = self._handle(collection)
            for begin in range(0, len(ids) if handle else 0, self._most_at_once):
                handle.delete(ids=ids[begin : begin + self._most_at_once])

    def nearest(
        self,
        collection: str,
        vector: NDArray[np.float32],
        count: int,
        among: Sequence[int] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return up to `count` numbers, nearest first, and their cosines.

        Args:
            among: Only these numbers; those that are not in the collection are left out.
        """
        ids = None if among is None else [str(number) for number in among]
        if collection not in self._names or count < 1 or ids == []:
            return _hits([], [])
        if self._enter(collection):
            try:
                with self._mapped("searching"):
                    return self._query(collection, vector, count, ids)
            finally:
                self._leave()
        with self._loading(collection, "searching"):
            return self._query(collection, vector, count, ids)

    def count(self, collection: str) -> int:
        """Return how many vectors a collection holds."""
        with self._exclusive("counting"):
            handle = self._handle(collection)
            return int(handle.count()) if handle else 0

    def numbers(self, collection: str) -> NDArray[np.int64]:
        """Return the numbers in a collection, ascending."""
        pages: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        with self._exclusive("listing"):
            handle = self._handle(collection)
            begin = 0
            while handle is not None:
                ids = handle.get(limit=_PAGE, offset=begin, include=[])["ids"]
                pages.append(np.array(ids, dtype=np.int64))
                begin += len(ids)
                if len(ids) < _PAGE:
                    break
        return np.sort(np.concatenate(pages))

    def drop(self, collection: str) -> None:
        """Remove a collection, if it is there. Some of its files stay."""
        with self._exclusive("dropping"):
            if collection in self._names:
                self._client.delete_collection(self._prefix + collection)
            self._names.discard(collection)
            self._handles.pop(collection, None)
            self._loaded.discard(collection)

    def begin_bulk(self, collection: str) -> None:
        """Make a collection, if it is not there, for many vectors; `end_bulk` ends it."""
        with self._exclusive("preparing"):
            if collection not in self._names:
                self._made(collection, BULK_SYNC_THRESHOLD)

    def end_bulk(self, collection: str) -> None:
        """Have a collection's files written more often again, once it is next loaded."""
        with self._exclusive("preparing"):
            handle = self._handle(collection)
            if handle is not None:
                change = {"hnsw": {"sync_threshold": SYNC_THRESHOLD}}
                self._client._modify(handle.id, new_configuration=change)  # noqa: SLF001 - `modify` of the handle warns of what Chroma itself has written

    def refresh(self) -> None:
        """Learn which collections others have made or dropped."""
        with self._exclusive("listing"):
            self._names = set(self._names_of(self._client))
            self._handles = {n: one for n, one in self._handles.items() if n in self._names}

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keep Chroma from writing its files while the block runs; asking goes on."""
        with self._writing:
            yield

    def close(self) -> None:
        """Let running calls end, and free memory and files. Idempotent."""
        with self._writing:
            self._shut()

    def abandon(self) -> None:
        """Leave the parent's client alone, for good, in a forked child.

        Chroma's threads are not in the child, and taking the client down waits for them, even at
        the end of the process. So what holds them is never taken down.
        """
        client, self._client = self._client, None
        self._writing, self._idle, self._running = threading.RLock(), threading.Condition(), 0
        self._handles, self._names, self._loaded = {}, set(), set()
        bindings = getattr(getattr(client, "_server", None), "bindings", None)
        with suppress(AttributeError):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(bindings))

    def _open(self) -> None:
        with self._mapped("opening"), self._gate.lock:
            if self._gate.is_shut:
                raise IndexUnavailableError("opening", "Chroma does not survive a fork; start anew")
            self._gate.was_used = True
            client = self._connect()
            try:
                self._names = set(self._names_of(client))
                self._most_at_once = int(client.get_max_batch_size())
            except BaseException:  # whatever it is, the client is closed
                close_client(client)
                raise
        self._client = client

    def _names_of(self, client: Any) -> Iterator[str]:
        """Yield the names of the collections that begin with the prefix, without it."""
        begin = 0
        while True:
            page = [one.name for one in client.list_collections(limit=_PAGE, offset=begin)]
            yield from (
                name.removeprefix(self._prefix) for name in page if name.startswith(self._prefix)
            )
            begin += len(page)
            if len(page) < _PAGE:
                return

    def _shut(self) -> None:
        with self._idle:
            client, self._client = self._client, None
            self._loaded.clear()
            self._idle.wait_for(lambda: not self._running)
        self._handles.clear()
        if client is not None:
            with self._mapped("closing"), self._gate.lock:
                close_client(client)

    @contextmanager
    def _mapped(self, operation: str) -> Iterator[None]:
        try:
            yield
        except HierMemError:
            raise
        except BaseException as error:  # panics of Chroma's are no Exception
            kind = type(error).__name__
            is_refusal = isinstance(error, ValueError) or kind in _REFUSED
            if is_refusal and operation in _TAKING_VALUES:
                reason = f"Chroma refuses it ({kind}); embed its text again"
                raise InvalidInputError("vector", reason) from error
            if not isinstance(error, Exception) and kind != "PanicException":
                raise
            self.has_failed = True
            reason = f"{kind} in Chroma; nothing is lost, it is opened anew or rebuilt by itself"
            raise IndexUnavailableError(operation, reason) from error

    @contextmanager
    def _exclusive(self, operation: str) -> Iterator[None]:
        with self._writing, self._mapped(operation):
            if self._client is None:
                raise IndexUnavailableError(operation, "the index is closed; open it again")
            yield

    @contextmanager
    def _loading(self, collection: str, operation: str) -> Iterator[None]:
        """Run the block alone; a collection is in memory after it, and others beside it fit."""
        with self._exclusive(operation):
            if collection not in self._loaded and len(self._loaded) >= self._most_open:
                self._shut()
                self._open()
            yield
            with self._idle:
                self._loaded.add(collection)

    def _enter(self, collection: str) -> bool:
        """Begin a call beside others, if the collection is in memory; `_leave` ends it."""
        with self._idle:
            if self._client is None or collection not in self._loaded:
                return False
            self._running += 1
            return True

    def _leave(self) -> None:
        with self._idle:
            self._running -= 1
            self._idle.notify_all()

    def _handle(self, collection: str) -> Any:
        handle = self._handles.get(collection)
        if handle is None and collection in self._names:
            handle = self._client.get_collection(self._prefix + collection, embedding_function=None)
            self._handles[collection] = handle
        return handle

    def _made(self, collection: str, sync_threshold: int) -> Any:
        handle = self._client.create_collection(
            self._prefix + collection,
            configuration={"hnsw": {**_HNSW, "sync_threshold": sync_threshold}},
            embedding_function=None,
            get_or_create=True,
        )
        self._handles[collection] = handle
        self._names.add(collection)
        return handle

    def _query(
        self, collection: str, vector: NDArray[np.float32], count: int, ids: list[str] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        handle = self._handle(collection)
        if handle is None:
            return _hits([], [])
        options = {"query_embeddings": [vector], "n_results": count, "include": ["distances"]}
        try:
            answer = handle.query(**options, ids=ids)
        except Exception:  # Chroma names no type for an unknown id; what is no such error is raised
            known = [] if ids is None else handle.get(ids=ids, include=[])["ids"]
            if ids is None or len(known) == len(ids):
                raise
            if not known:
                return _hits([], [])
            answer = handle.query(**options, ids=known)
        return _hits(answer["ids"][0], answer["distances"][0])


def _hits(
    ids: Sequence[str], distances: Sequence[float]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    cosines = np.clip(1.0 - np.asarray(distances, dtype=np.float64), -1.0, 1.0)
    return np.array(ids, dtype=np.int64), cosines
