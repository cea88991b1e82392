"""Calling the embedder: only when its vectors belong to those that are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

from hiermem_core.backends.embedders import GIVEN
from hiermem_core.backends.records import MadeVector
from hiermem_core.embedding.adapters import AdaptedEmbedder
from hiermem_core.embedding.calling import EmbedFailure, embed_each, embed_query, shortened
from hiermem_core.embedding.identity import EmbedderIdentity, identity_of
from hiermem_core.errors import (
    DimensionMismatchError,
    EmbedderMismatchError,
    IndexUnavailableError,
)
from hiermem_core.models.moments import to_milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hiermem_core.backends.embedders import RecordedEmbedder
    from hiermem_core.backends.records import Vector
    from hiermem_core.protocols import Clock, Embedder

OnEmbedderChange = Literal["raise", "degrade"]
K = TypeVar("K")

BATCH = 32
"""Texts of one call of the embedder."""


class Vectoriser:
    """Make vectors of texts, with the one embedder of a location.

    At its first use in a process the embedder's vectors of fixed texts are compared with those
    recorded when the location got its first vector; none is written or compared before.

    Args:
        embedder: `None`: only vectors that are given are stored.
        is_indexing: Vectors are made at all.
        named: Told the name under which vectors are stored, as soon as it is known.
    """

    def __init__(
        self,
        embedder: Embedder | None,
        recorded: RecordedEmbedder,
        *,
        is_indexing: bool,
        on_change: OnEmbedderChange,
        clock: Clock,
        named: Callable[[str], None],
    ) -> None:
        self.embedder = embedder
        self.recorded = recorded
        self.is_degraded = False
        self._is_indexing = is_indexing
        self._on_change = on_change
        self._clock = clock
        self._is_verified = False
        self._named = named
        named(recorded.name())
        if embedder is not None:
            self._check_at_open(embedder)

    @property
    def is_on(self) -> bool:
        """Tell whether texts get vectors."""
        return self.embedder is not None and self._is_indexing and not self.is_degraded

    @property
    def model_id(self) -> str | None:
        """The embedder's model; `None` without one."""
        return None if self.embedder is None else self.embedder.model_id

    @property
    def dimension(self) -> int | None:
        """The length of the stored vectors; `None` while there is none."""
        stored = self.recorded.identity(self.recorded.name())
        return None if stored is None else stored.dimensions

    def vectors_of(self, texts: Mapping[K, str]) -> dict[K, MadeVector]:
        """Return the vector of each text that the embedder does not fail at."""
        made, _ = self.tried(texts)
        return made

    def tried(self, texts: Mapping[K, str]) -> tuple[dict[K, MadeVector], dict[K, EmbedFailure]]:
        """Return the vectors of texts, and why the others have none.

        Raises:
            EmbedderMismatchError: The stored vectors are by another embedder.
        """
        if not texts or self.embedder is None or not self._is_ready():
            return {}, {}
        made: dict[K, MadeVector] = {}
        failed: dict[K, EmbedFailure] = {}
        keys = list(texts)
        for start in range(0, len(keys), BATCH):
            some = keys[start : start + BATCH]
            listed = [texts[key] for key in some]
            parts = shortened(self.embedder, listed)
            answers = embed_each(self.embedder, listed)
            for key, answer, is_part in zip(some, answers, parts, strict=True):
                if isinstance(answer, EmbedFailure):
                    failed[key] = answer
                else:
                    made[key] = MadeVector(answer, is_whole=not is_part)
        return made, failed

    def question(self, text: str) -> Vector:
        """Return the vector of a question.

        Raises:
            IndexUnavailableError: The stored vectors wait to be made anew by this embedder.
            EmbedderMismatchError: They are by another embedder.
            BackendError: The embedder failed.
        """
        if self.embedder is None or not self._is_ready():
            raise IndexUnavailableError(
                "semantic search", "the stored vectors are by another embedder; run reindex"
            )
        return embed_query(self.embedder, text)

    def check_length(self, vector: Any) -> None:
        """Raise `DimensionMismatchError` where a given vector cannot stand beside the stored ones.

        The first vector of a location without an embedder decides.
        """
        expected = self.dimension
        if expected is None and self.embedder is not None:
            expected = self.embedder.dimensions
        if expected is None:
            self._record(EmbedderIdentity(GIVEN, len(vector), ()))
        elif len(vector) != expected:
            raise DimensionMismatchError(expected=expected, actual=len(vector))
        elif self.embedder is not None:
            self._is_ready()

    def _check_at_open(self, embedder: Embedder) -> None:
        known = None if isinstance(embedder, AdaptedEmbedder) else embedder.dimensions
        try:
            self.recorded.check_name(embedder.model_id, known)
        except EmbedderMismatchError:
            if self._on_change == "raise":
                raise
            self.is_degraded = True

    def _is_ready(self) -> bool:
        """Verify the embedder once, and tell whether its vectors may be used."""
        if self.is_degraded or self.embedder is None:
            return False
        if not self._is_verified:
            try:
                self._verify(self.embedder)
            except EmbedderMismatchError:
                if self._on_change == "raise":
                    raise
                self.is_degraded = True
                return False
            self._is_verified = True
        return True

    def _verify(self, embedder: Embedder) -> None:
        identity = identity_of(embedder)
        if self.recorded.name():
            self.recorded.check(identity)
        else:
            self._record(identity)

    def _record(self, identity: EmbedderIdentity) -> None:
        self.recorded.record(identity, now_ms=to_milliseconds(self._clock.now()))
        self._named(self.recorded.name())
