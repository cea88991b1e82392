"""Who made the stored vectors: a name, a length, and the vectors of fixed texts as a proof."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hiermem_core.embedding.calling import embed_all
from hiermem_core.errors import BackendError
from hiermem_core.models.plain import dump_json, load_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from hiermem_core.protocols import Embedder

PROBE_TEXTS = (
    "The meeting was moved to Thursday morning.",
    "Invoice 4711 is unpaid; the parcel left Hamburg on 3 May.",
    "She is allergic to nuts and never drinks coffee.",
    "def area(width, height): return width * height",
)
"""Fixed for good: identities in the field hold their vectors."""

LEAST_COSINE = 0.995
"""Rounding, other processors and weights of 8 bits stay above it; another model does not."""


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """An embedder, as far as vectors can tell.

    Attributes:
        probes: The vectors of `PROBE_TEXTS`.
    """

    model_id: str
    dimensions: int
    probes: tuple[tuple[float, ...], ...]

    def __str__(self) -> str:
        """Name it as errors do, such as `all-MiniLM-L6-v2 (384)`."""
        return f"{self.model_id} ({self.dimensions})"

    def to_json(self) -> str:
        """Return it as JSON text; vectors as base64 of float32, little endian."""
        probes = [_encoded(probe) for probe in self.probes]
        return dump_json(
            {"model_id": self.model_id, "dimensions": self.dimensions, "probes": probes}
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return what `to_json` wrote.

        Raises:
            BackendError: It did not write this.
        """
        try:
            return cls._from_fields(load_json(text))
        except (ValueError, TypeError, LookupError) as error:
            reason = "the stored record is damaged; reindex"
            raise BackendError("reading the embedder's identity", reason) from error

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Self:
        probes = tuple(_decoded(probe) for probe in fields["probes"])
        identity = cls(str(fields["model_id"]), int(fields["dimensions"]), probes)
        if any(len(probe) != identity.dimensions for probe in probes):
            raise ValueError("a probe of another length")
        return identity


def identity_of(embedder: Embedder) -> EmbedderIdentity:
    """Return the identity of an embedder; calls it once.

    Raises:
        BackendError: The embedder raised, or returned no vectors; its error is the cause.
        DimensionMismatchError: It returned vectors of another length than it declares.
    """
    probes = tuple(tuple(probe.tolist()) for probe in embed_all(embedder, PROBE_TEXTS))
    return EmbedderIdentity(embedder.model_id, embedder.dimensions, probes)


def agrees(stored: EmbedderIdentity, probes: Sequence[ArrayLike]) -> bool:
    """Tell whether vectors of `PROBE_TEXTS` were made by the stored embedder's model.

    True if each has a cosine of at least 0.995 to the stored one; lengths do not matter.
    """
    if len(stored.probes) != len(probes):
        return False
    return all(
        _cosine(np.asarray(one, np.float64), np.asarray(other, np.float64)) >= LEAST_COSINE
        for one, other in zip(stored.probes, probes, strict=True)
    )


def _cosine(one: Any, other: Any) -> float:
    lengths = np.linalg.norm(one) * np.linalg.norm(other)
    if one.shape != other.shape or not lengths > 0:
        return -1.0
    return float(one @ other / lengths)


def _encoded(probe: Sequence[float]) -> str:
    return base64.b64encode(np.asarray(probe, "<f4").tobytes()).decode("ascii")


def _decoded(text: str) -> tuple[float, ...]:
    return tuple(np.frombuffer(base64.b64decode(text, validate=True), "<f4").tolist())
