"""Making every vector anew, or those that are missing, from the stored text."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hiermem_core.backends.records import Attempt
from hiermem_core.embedding.adapters import as_embedder
from hiermem_core.embedding.identity import identity_of
from hiermem_core.errors import (
    BackendError,
    ConfigurationError,
    ConflictError,
    EmbedderMismatchError,
)
from hiermem_core.forks import renewed_after_fork
from hiermem_core.models.moments import to_milliseconds
from hiermem_core.models.results import ReindexReport
from hiermem_core.service.catching_up import BATCH
from hiermem_core.service.vectorising import check_lengths, vectors_by

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hiermem_core.backends.records import MadeVector, Text
    from hiermem_core.embedding.calling import EmbedFailure
    from hiermem_core.protocols import Backend, Embedder
    from hiermem_core.service.upkeep import Upkeep


class Reindexing:
    """Re-embed a HierMem, one reindex at a time. Holds no transaction while the embedder runs."""

    def __init__(self, upkeep: Upkeep) -> None:
        self._parts = upkeep
        self._running = threading.Lock()
        self._staged: dict[str, dict[int, tuple[Text, MadeVector]]] = {}
        renewed_after_fork(self)

    def run(
        self, embedder: Any = None, progress: Callable[[int, int], None] | None = None
    ) -> ReindexReport:
        """Make the vectors; see `HierMem.reindex`."""
        chosen = as_embedder(embedder) if embedder is not None else self._parts.vectoriser.embedder
        if chosen is None:
            raise ConfigurationError("embedder", "is missing; give one to reindex with")
        if not self._running.acquire(blocking=False):
            raise ConflictError("a reindex runs here already; wait for its end")
        try:
            return self._run(chosen, _Progress(progress))
        finally:
            self._running.release()

    def after_fork(self) -> None:
        """Begin with a free lock in a forked child."""
        self._running = threading.Lock()

    def _run(self, embedder: Embedder, progress: _Progress) -> ReindexReport:
        parts = self._parts
        parts.listing.list_all()
        name, is_other = self._named(embedder)
        target = _Target(embedder, name, is_new=is_other)
        parts.vectoriser.expect(embedder, name)
        refused = self._stage(target, progress) if is_other else 0
        parts.vectoriser.adopt(embedder)
        parts.staged.remove_others()
        refused += self._fill(target, progress, retries=not is_other)
        for tenant in parts.tenants():
            parts.indexer.nudge(tenant)
        done, total = self._counts(name)
        progress.report(done, total)
        return ReindexReport(
            model_id=embedder.model_id,
            dimension=embedder.dimensions,
            rows=total,
            embedded=progress.embedded,
            refused=refused,
            replaced=is_other,
        )

    def _named(self, embedder: Embedder) -> tuple[str, bool]:
        """Return the name of the embedder's vectors, and whether others count now."""
        recorded, now_ms = self._parts.vectoriser.recorded, self._now_ms()
        identity = identity_of(embedder)
        try:
            if recorded.name():
                recorded.check(identity)
            else:
                recorded.record(identity, now_ms=now_ms)
        except EmbedderMismatchError:
            begun = self._parts.staged.begun()
            return recorded.named(identity, begun, now_ms=now_ms), True
        return recorded.name(), False

    def _stage(self, target: _Target, progress: _Progress) -> int:
        """Make all vectors beside those that count, then have them count.

        Returns:
            The rows that the embedder refused.
        """
        staged, name = self._parts.staged, target.name
        staged.begin(name, now_ms=self._now_ms())
        refused: dict[int, str] = {}
        in_memory = self._staged.setdefault(name, {})
        is_done = False
        while not is_done:
            progress.start(*self._counts(name, in_memory=len(in_memory)))
            self._stage_rows(target, refused, progress)
            self._stage_memory(target, in_memory, progress)
            is_done = self._swap(name, refused, in_memory)
        self._staged.clear()
        return len(refused)

    def _swap(
        self,
        name: str,
        refused: Mapping[int, str],
        in_memory: Mapping[int, tuple[Text, MadeVector]],
    ) -> bool:
        """Have the staged vectors count, those in memory at the same moment."""
        memory = self._parts.memory
        with ExitStack() as held:
            is_done = self._parts.staged.swap(
                name,
                refused,
                most=BATCH,
                now_ms=self._now_ms(),
                before_commit=lambda: memory and held.enter_context(memory.alone()),
            )
            if is_done and memory is not None:
                memory.take_over(name, in_memory)
        return is_done

    def _stage_rows(self, target: _Target, refused: dict[int, str], progress: _Progress) -> None:
        last = 0
        while True:
            waiting = self._parts.staged.lacking(target.name, after=last, limit=BATCH)
            if not waiting.rows:
                return
            last = waiting.rows[-1]
            texts = {row: text for row, text in waiting.texts.items() if row not in refused}
            made, failed = target.vectors_of(texts)
            kept = self._parts.staged.keep(target.name, waiting, made)
            refused |= {row: failure.error for row, failure in failed.items()}
            progress.step(kept)
            _check_is_up(failed)

    def _stage_memory(
        self, target: _Target, staged: dict[int, tuple[Text, MadeVector]], progress: _Progress
    ) -> None:
        texts = {} if self._parts.memory is None else self._parts.memory.texts()
        rows = [row for row, text in texts.items() if staged.get(row, ("",))[0] != text]
        for start in range(0, len(rows), BATCH):
            some = {row: texts[row] for row in rows[start : start + BATCH]}
            made, failed = target.vectors_of(some)
            staged.update({row: (some[row], vector) for row, vector in made.items()})
            progress.step(len(made))
            _check_is_up(failed)

    def _fill(self, target: _Target, progress: _Progress, *, retries: bool) -> int:
        """Embed every row that has no vector, once; return how many the embedder refused."""
        until = self._now_ms()
        tenants = self._parts.tenants()
        for keeper in self._parts.keepers:
            for tenant in tenants:
                keeper.await_lacking(tenant)
                if retries:
                    keeper.retry(tenant)
        progress.start(*self._counts(target.name))
        return sum(
            self._embed_waiting(backend, tenant, target, until, progress)
            for backend in self._parts.backends
            for tenant in tenants
        )

    def _embed_waiting(
        self,
        backend: Backend,
        tenant: str,
        target: _Target,
        until: int,
        progress: _Progress,
    ) -> int:
        refused = 0
        while (batch := self._embed_batch(backend, tenant, target, until)) is not None:
            made, failed = batch
            refused += len(failed)
            progress.step(made)
            _check_is_up(failed)
            if self._parts.vectoriser.recorded.name() != target.name:
                raise ConflictError("another reindex has ended meanwhile; run reindex again")
        return refused

    def _embed_batch(
        self, backend: Backend, tenant: str, target: _Target, until: int
    ) -> tuple[int, dict[int, EmbedFailure]] | None:
        """Embed some rows, none that another thread embeds alike; `None`: none waits any more.

        Returns:
            How many got their vector, and the failures.
        """
        patience = 0.0 if target.is_new else None
        with self._parts.catching_up.exclusive.alone(tenant, patience) as is_alone:
            if not is_alone and not target.is_new:
                raise ConflictError("the embedder called reindex itself; call it from elsewhere")
            waiting = backend.waiting(tenant, limit=BATCH, due_ms=until)
            if not waiting.rows:
                return None
            made, failed = target.vectors_of(waiting.texts)
            tried = _attempts(made, failed)
            settled = backend.settle(tenant, waiting, tried, now_ms=self._now_ms())
            return settled.made, failed

    def _counts(self, name: str, in_memory: int | None = None) -> tuple[int, int]:
        """Return how many rows have their vector, and how many rows there are."""
        done, total = self._parts.staged.counts(name)
        if self._parts.memory is None:
            return done, total
        made, rows = self._parts.memory.counts()
        return done + (made if in_memory is None else in_memory), total + rows

    def _now_ms(self) -> int:
        return to_milliseconds(self._parts.clock.now())


@dataclass(frozen=True, slots=True)
class _Target:
    """The embedder whose vectors are made, and the name they are kept under.

    Attributes:
        is_new: Others counted before. What other threads make now is by those, and of no use.
    """

    embedder: Embedder
    name: str
    is_new: bool

    def vectors_of(
        self, texts: Mapping[int, Text]
    ) -> tuple[dict[int, MadeVector], dict[int, EmbedFailure]]:
        """Return the vectors of texts, and why the others have none.

        Raises:
            DimensionMismatchError: A vector has another length than the embedder declares.
        """
        made, failed = vectors_by(self.embedder, self.name, texts)
        check_lengths(failed)
        return made, failed


class _Progress:
    """Tells how far the work is; what it calls may raise to end the work."""

    def __init__(self, tell: Callable[[int, int], None] | None) -> None:
        self.embedded = 0
        self._tell = tell
        self._done = 0
        self._total = 0

    def start(self, done: int, total: int) -> None:
        """Begin at so many of all rows."""
        self._done, self._total = done, total

    def step(self, count: int) -> None:
        """Tell that so many more rows have their vector."""
        self.embedded += count
        self.report(self._done + count, self._total)

    def report(self, done: int, total: int) -> None:
        """Tell how many of all rows have their vector."""
        self._done = min(done, total)
        if self._tell is not None:
            self._tell(self._done, total)


def _attempts(
    made: Mapping[int, MadeVector], failed: Mapping[int, EmbedFailure]
) -> dict[int, Attempt]:
    tried = {row: Attempt(vector) for row, vector in made.items()}
    failures = {row: Attempt(error=one.error, is_down=one.is_down) for row, one in failed.items()}
    return tried | failures


def _check_is_up(failed: Mapping[int, EmbedFailure]) -> None:
    for failure in failed.values():
        if failure.is_down:
            reason = f"the embedder raised {failure.error}; mend it and run reindex again"
            raise BackendError("reindexing", reason)
