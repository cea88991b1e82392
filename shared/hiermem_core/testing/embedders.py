"""An embedder without a model."""

from __future__ import annotations

import hashlib
import math
import re
import threading
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

_WORD = re.compile(r"\w+")
_HASHED = 8
_LONGEST_WAIT = 60.0


class FakeEmbedder:
    """Vectors by hashed words: texts that share words are near; equal texts are equal.

    The same in every process and on every machine. Letter case, order and punctuation of words do
    not matter. Every vector has length 1.

    Args:
        dimensions: The length of its vectors.
        seed: Another one is another model, whatever its id says.
        failing: The texts it rejects, or a function that tells them. It raises `ValueError` for
            the whole call, with the text in the message, as embedders in the field do.
        gate: Calls wait until it is set.
        max_characters: What of a text is read.

    Attributes:
        calls: The texts of each call, in order; questions too.
        waiting: Set when a call has come to the gate.
    """

    def __init__(
        self,
        dimensions: int = 32,
        model_id: str = "fake",
        *,
        seed: int = 0,
        failing: Callable[[str], bool] | Collection[str] = (),
        gate: threading.Event | None = None,
        max_characters: int = 8_000,
    ) -> None:
        self.dimensions = dimensions
        self.model_id = model_id
        self.max_characters = max_characters
        self.gate = gate
        self.failing = failing
        self.calls: list[tuple[str, ...]] = []
        self.waiting = threading.Event()
        self._seed = seed

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in order.

        Raises:
            ValueError: A text is one of those it rejects.
            TimeoutError: The gate stayed shut for a minute.
        """
        self.calls.append(tuple(texts))
        self._pass_gate()
        for text in texts:
            if self._rejects(text):
                raise ValueError(f"rejected: {text}")
        return [self._vector(text[: self.max_characters]) for text in texts]

    def _pass_gate(self) -> None:
        if self.gate is None:
            return
        self.waiting.set()
        if not self.gate.wait(_LONGEST_WAIT):
            raise TimeoutError("nobody opened the gate")

    def _rejects(self, text: str) -> bool:
        return self.failing(text) if callable(self.failing) else text in self.failing

    def _vector(self, text: str) -> list[float]:
        words = _WORD.findall(text.lower()) or [text]
        columns = zip(*(_numbers(word, self.dimensions, self._seed) for word in words), strict=True)
        sums = [math.fsum(column) for column in columns]
        length = math.hypot(*sums)
        if not length:
            return [1.0] + [0.0] * (self.dimensions - 1)
        return [number / length for number in sums]


@lru_cache(maxsize=4096)
def _numbers(word: str, dimensions: int, seed: int) -> tuple[float, ...]:
    """Return numbers between -1 and 1, by hash."""
    data = f"{seed}\x00{word}".encode("utf-8", "surrogatepass")
    digest = hashlib.shake_256(data).digest(_HASHED * dimensions)
    return tuple(
        int.from_bytes(digest[start : start + _HASHED], "big") / 2.0 ** (8 * _HASHED - 1) - 1
        for start in range(0, len(digest), _HASHED)
    )
