"""Calling an embedder: what a rejected text, a wrong answer or an outage may cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hiermem_core.errors import BackendError, DimensionMismatchError, HierMemError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hiermem_core.protocols import Embedder

EMBEDDING = "embedding"
"""The operation that errors of an embedder name."""

HARMLESS_TEXT = "Hello."
"""What any embedder takes: if it fails at this, the text before was not to blame."""

MAX_CHARACTERS = 8_000
"""What of a text is given to an embedder that has no `max_characters` of its own. Many services
refuse more than 8,191 tokens, and few texts have more than one a character."""

_NO_VECTOR = "InvalidInputError"
_REMEDY = "mend the embedder or give another, then try again"


@dataclass(frozen=True, slots=True)
class EmbedFailure:
    """Why a text has no vector.

    Attributes:
        error: The type's name of the error; never its text, which may hold content.
        is_down: The embedder fails at a harmless text too, so this one is not to blame.
        mismatch: The vector has another length than the embedder declares.
    """

    error: str
    is_down: bool = False
    mismatch: DimensionMismatchError | None = None


def try_each(embedder: Embedder, texts: Sequence[str]) -> list[NDArray[np.float32] | EmbedFailure]:
    """Return for each text, in order, its vector or why there is none.

    One call for all. If it raises or returns another number of vectors, each text is tried alone,
    so that none fails for another's sake; an embedder that is down is not asked for the rest. A
    vector that is not finite or all zero, or of another length than the embedder declares, counts
    as none. Of a long text the beginning is embedded.
    """
    if not texts:
        return []
    parts = [embedded_part(embedder, text) for text in texts]
    rows = _answer(embedder, parts)
    if isinstance(rows, EmbedFailure):
        rows = _one_by_one(embedder, parts, rows)
    return [_vector_or_failure(embedder, row) for row in rows]


def embed_all(embedder: Embedder, texts: Sequence[str]) -> list[NDArray[np.float32]]:
    """Return the vector of each text, in order, all or none.

    Raises:
        BackendError: The embedder raised, or returned something else; its error is the cause.
        DimensionMismatchError: A vector has another length than the embedder declares.
    """
    parts = [embedded_part(embedder, text) for text in texts]
    try:
        rows = list(embedder.embed(parts))
    except Exception as error:  # an embedder may raise anything; its type is told
        raise as_ours(error) from error
    if len(rows) != len(parts):
        raise BackendError(EMBEDDING, f"{len(rows)} vectors for {len(parts)} texts; {_REMEDY}")
    return [_usable_vector(embedder, row) for row in rows]


def embed_query(embedder: Embedder, text: str) -> NDArray[np.float32]:
    """Return the vector of a question, by the embedder's own `embed_query` if it has one.

    Raises:
        BackendError: The embedder raised, or returned something else; its error is the cause.
        DimensionMismatchError: The vector has another length than the embedder declares.
    """
    embed = getattr(embedder, "embed_query", None)
    if not callable(embed):
        return embed_all(embedder, [text])[0]
    try:
        row = embed(embedded_part(embedder, text))
    except Exception as error:  # an embedder may raise anything; its type is told
        raise as_ours(error) from error
    return _usable_vector(embedder, row)


def embedded_part(embedder: Embedder, text: str) -> str:
    """Return the beginning of a text that the embedder is given."""
    return text[: getattr(embedder, "max_characters", MAX_CHARACTERS)]


def shortened(embedder: Embedder, texts: Sequence[str]) -> list[bool]:
    """Tell for each text whether only its beginning is embedded.

    An embedder that reads less than it is given says so by a method `is_shortened(text)`.
    """
    limit = getattr(embedder, "max_characters", MAX_CHARACTERS)
    reads_less = getattr(embedder, "is_shortened", None)
    return [
        len(text) > limit or (callable(reads_less) and bool(reads_less(text))) for text in texts
    ]


def as_ours(error: Exception) -> HierMemError:
    """Return the error to raise for one of an embedder: its own if it is ours, else by its type."""
    if isinstance(error, HierMemError):
        return error
    return BackendError(EMBEDDING, f"the embedder raised {type(error).__name__}; {_REMEDY}")


def _answer(embedder: Embedder, texts: Sequence[str]) -> list[Any] | EmbedFailure:
    try:
        rows: list[Any] = list(embedder.embed(texts))
    except Exception as error:  # noqa: BLE001 - an embedder may raise anything; the name is kept
        return EmbedFailure(type(error).__name__)
    return rows if len(rows) == len(texts) else EmbedFailure(_NO_VECTOR)


def _one_by_one(embedder: Embedder, texts: Sequence[str], failure: EmbedFailure) -> list[Any]:
    """Return what each text alone gives; `failure` is what all together gave."""
    rows: list[Any] = []
    for text in texts:
        answer = failure if len(texts) == 1 else _answer(embedder, [text])
        if not isinstance(answer, EmbedFailure):
            rows += answer
        elif isinstance(_answer(embedder, [HARMLESS_TEXT]), EmbedFailure):
            return rows + [replace(answer, is_down=True)] * (len(texts) - len(rows))
        else:
            rows.append(answer)
    return rows


def _vector_or_failure(embedder: Embedder, row: Any) -> NDArray[np.float32] | EmbedFailure:
    if isinstance(row, EmbedFailure):
        return row
    try:
        vector = as_vector(row)
    except (TypeError, ValueError) as error:
        return EmbedFailure(type(error).__name__)
    if vector is None:
        return EmbedFailure(_NO_VECTOR)
    try:
        return _of_declared_length(embedder, vector)
    except DimensionMismatchError as error:
        return EmbedFailure(type(error).__name__, mismatch=error)


def _usable_vector(embedder: Embedder, row: Any) -> NDArray[np.float32]:
    try:
        vector = as_vector(row)
    except (TypeError, ValueError) as error:
        raise as_ours(error) from error
    if vector is None:
        raise BackendError(EMBEDDING, f"a vector is not finite or all zero; {_REMEDY}")
    return _of_declared_length(embedder, vector)


def as_vector(row: Any) -> NDArray[np.float32] | None:
    """Return a copy of a row of numbers, or `None` if no direction can be told from it.

    Raises:
        TypeError, ValueError: It is no row of numbers.
    """
    with np.errstate(over="ignore", under="ignore"):
        vector = np.array(row, dtype=np.float32)
    if vector.ndim != 1:
        raise ValueError("not a row of numbers")
    return vector if np.isfinite(vector).all() and vector.any() else None


def _of_declared_length(embedder: Embedder, vector: NDArray[np.float32]) -> NDArray[np.float32]:
    if len(vector) != embedder.dimensions:
        raise DimensionMismatchError(expected=embedder.dimensions, actual=len(vector))
    return vector
