"""Calling the embedder: only when its vectors belong to those that are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from hiermem_core.backends.embedders import GIVEN
from hiermem_core.backends.records import MadeVector
from hiermem_core.embedding.adapters import AdaptedEmbedder
from hiermem_core.embedding.calling import (
    EMBEDDING,
    EmbedFailure,
    embed_query,
    shortened,
    try_each,
)
from hiermem_core.embedding.identity import EmbedderIdentity, identity_of
from hiermem_core.errors import (
    BackendError,
    DimensionMismatchError,
    EmbedderMismatchError,
    HierMemError,
    IndexUnavailableError,
)
from hiermem_core.models.moments import to_milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hiermem_core.backends.embedders import RecordedEmbedder
    from hiermem_core.backends.records import Text, Vector
    from hiermem_core.models.warnings import WarningCode
    from hiermem_core.protocols import Clock, Embedder

OnEmbedderChange = Literal["raise", "degrade"]
K = TypeVar("K")
T = TypeVar("T")

BATCH = 32
"""Texts of one call of the embedder."""


class Vectoriser:
    """Make vectors of texts, with the one embedder of a location.

    At its first use in a process the embedder's vectors of fixed texts are compared with those
    recorded when the location got its first vector; none is written or compared before.

    Attributes:
        last_error: What was wrong with the embedder, the last time it was called: it failed at
            everything, gave a vector of a wrong length, or is not the one of the stored vectors.

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
        self.last_error: str | None = None
        self._is_indexing = is_indexing
        self._on_change = on_change
        self._clock = clock
        self._verified: dict[str, Embedder] = {}
        self._foreign = ""
        self._named = named
        named(recorded.name())
        if embedder is not None:
            self._check_at_open(embedder)

    @property
    def is_on(self) -> bool:
        """Tell whether texts get vectors now."""
        return self.awaits and not self.is_degraded

    @property
    def awaits(self) -> bool:
        """Tell whether texts get vectors, now or once the stored ones are by this embedder."""
        return self.embedder is not None and self._is_indexing

    @property
    def is_degraded(self) -> bool:
        """Tell whether the stored vectors are by another embedder, which a reindex mends."""
        return self._foreign != "" and self._foreign == self.recorded.name()

    @property
    def is_asked(self) -> bool:
        """Tell whether questions get vectors; a degraded embedder is asked, and says why not."""
        return self.embedder is not None and self._is_indexing

    @property
    def weakness(self) -> WarningCode:
        """What a search without the vector of its question is warned of."""
        return "index_rebuilding" if self.is_degraded else "semantic_unavailable"

    @property
    def name(self) -> str:
        """The name of the vectors that count; `""` while there is none."""
        return self.recorded.name()

    @property
    def model_id(self) -> str | None:
        """The embedder's model; `None` without one."""
        return None if self.embedder is None else self.embedder.model_id

    @property
    def dimension(self) -> int | None:
        """The length of the stored vectors; `None` while there is none."""
        stored = self.recorded.identity(self.recorded.name())
        return None if stored is None else stored.dimensions

    def vectors_of(self, texts: Mapping[K, Text]) -> dict[K, MadeVector]:
        """Return the vector of each text that the embedder does not fail at.

        Of several texts in one place there is a vector each, or none where it fails at one.

        Raises:
            DimensionMismatchError: A vector has another length than the embedder declares.
            EmbedderMismatchError: The stored vectors are by another embedder.
        """
        made, failed = self.tried(texts)
        check_lengths(failed)
        return made

    def tried(self, texts: Mapping[K, Text]) -> tuple[dict[K, MadeVector], dict[K, EmbedFailure]]:
        """Return the vectors of texts, and why the others have none.

        An embedder that fails at the fixed texts is down, and fails at every other too.

        Raises:
            EmbedderMismatchError: The stored vectors are by another embedder.
        """
        try:
            ready = self._ready() if texts else None
        except (BackendError, DimensionMismatchError) as error:
            if isinstance(error, BackendError) and error.operation != EMBEDDING:
                raise
            return {}, dict.fromkeys(texts, _of_probes(error))
        if ready is None:
            return {}, {}
        made, failed = vectors_by(*ready, texts)
        self.last_error = _trouble(failed)
        return made, failed

    def question(self, text: str) -> Vector:
        """Return the vector of a question.

        Raises:
            IndexUnavailableError: The stored vectors wait to be made anew by this embedder.
            EmbedderMismatchError: They are by another embedder.
            BackendError: The embedder failed, or gave a vector of a wrong length.
        """
        try:
            ready = self._ready()
            if ready is None:
                raise IndexUnavailableError(
                    "semantic search", "the stored vectors are by another embedder; run reindex"
                )
            embedder = ready[0]
            vector = self._tell_trouble(lambda: embed_query(embedder, text))
        except DimensionMismatchError as error:
            raise BackendError(EMBEDDING, error.reason) from error
        self.last_error = None
        return vector

    def check_length(self, vector: Any) -> None:
        """Raise `DimensionMismatchError` where given vectors cannot stand beside the stored ones.

        The first vector of a location without an embedder decides.
        """
        length = np.shape(vector)[-1]
        expected = self.dimension
        if expected is None and self.embedder is not None:
            expected = self.embedder.dimensions
        if expected is None:
            self._record(EmbedderIdentity(GIVEN, length, ()))
        elif length != expected:
            raise DimensionMismatchError(expected=expected, actual=length)
        else:
            self._ready()

    def given(self, vector: Any) -> MadeVector:
        """Return a given vector as one that stands beside the stored ones.

        Raises:
            DimensionMismatchError: It has another length.
        """
        self.check_length(vector)
        return MadeVector(vector, by=self.recorded.name())

    def expect(self, embedder: Embedder, name: str) -> None:
        """Know by which embedder the vectors of a name are, should they count some time."""
        self._verified[name] = embedder

    def adopt(self, embedder: Embedder) -> None:
        """Use the embedder whose vectors count by now."""
        self.embedder, self._foreign, self.last_error = embedder, "", None
        self._named(self.recorded.name())

    def _check_at_open(self, embedder: Embedder) -> None:
        known = None if isinstance(embedder, AdaptedEmbedder) else embedder.dimensions
        try:
            self.recorded.check_name(embedder.model_id, known)
        except EmbedderMismatchError:
            if self._on_change == "raise":
                raise
            self._foreign = self.recorded.name()

    def _ready(self) -> tuple[Embedder, str] | None:
        """Return the embedder of the vectors that count, and their name.

        It is verified once, and again when vectors of another name count: another process may have
        made them anew. `None` where the given one is not theirs.
        """
        name = self.recorded.name()
        known = self._verified.get(name)
        if known is not None:
            return known, name
        if self.embedder is None or self.is_degraded:
            return None
        embedder = self.embedder
        try:
            self._tell_trouble(lambda: self._verify(embedder))
        except EmbedderMismatchError:
            if self._on_change == "raise":
                raise
            self._foreign = self.recorded.name()
            return None
        name = self.recorded.name()
        self._verified[name] = self.embedder
        self._named(name)
        return self.embedder, name

    def _tell_trouble(self, call: Callable[[], T]) -> T:
        """Call the embedder, and keep what is wrong with it for whoever asks."""
        try:
            return call()
        except HierMemError as error:
            self.last_error = str(error)
            raise

    def _verify(self, embedder: Embedder) -> None:
        identity = identity_of(embedder)
        if self.recorded.name():
            self.recorded.check(identity)
        else:
            self._record(identity)

    def _record(self, identity: EmbedderIdentity) -> None:
        self.recorded.record(identity, now_ms=to_milliseconds(self._clock.now()))
        self._named(self.recorded.name())


def vectors_by(
    embedder: Embedder, name: str, texts: Mapping[K, Text]
) -> tuple[dict[K, MadeVector], dict[K, EmbedFailure]]:
    """Return the vectors of texts by an embedder, under its name, and why the others have none."""
    each = [
        (key, text)
        for key, found in texts.items()
        for text in ((found,) if isinstance(found, str) else found)
    ]
    vectors: dict[K, list[Vector]] = {key: [] for key, _ in each}
    failed: dict[K, EmbedFailure] = {}
    in_part: set[K] = set()
    for start in range(0, len(each), BATCH):
        some = each[start : start + BATCH]
        listed = [text for _, text in some]
        parts = shortened(embedder, listed)
        answers = try_each(embedder, listed)
        for (key, _), answer, is_part in zip(some, answers, parts, strict=True):
            if isinstance(answer, EmbedFailure):
                failed.setdefault(key, answer)
            else:
                vectors[key].append(answer)
                in_part |= {key} if is_part else set()
    made = {
        key: MadeVector(
            rows[0] if isinstance(texts[key], str) else np.stack(rows),
            is_whole=key not in in_part,
            by=name,
        )
        for key, rows in vectors.items()
        if key not in failed
    }
    return made, failed


def _of_probes(error: BackendError | DimensionMismatchError) -> EmbedFailure:
    """Return the failure of every text by an embedder that failed at the fixed ones."""
    mismatch = error if isinstance(error, DimensionMismatchError) else None
    kind = type(error.__cause__ or error).__name__
    return EmbedFailure(kind, is_down=True, mismatch=mismatch)


def check_lengths(failed: Mapping[K, EmbedFailure]) -> None:
    """Raise `DimensionMismatchError` where a vector had another length than declared."""
    for failure in failed.values():
        if failure.mismatch is not None:
            raise failure.mismatch


def _trouble(failed: Mapping[K, EmbedFailure]) -> str | None:
    """Return what failures say of the embedder itself; `None`: nothing."""
    for failure in failed.values():
        if failure.mismatch is not None:
            return str(failure.mismatch)
        if failure.is_down:
            return f"the embedder raised {failure.error}; mend it, or give another"
    return None
