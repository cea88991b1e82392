"""What `search_scale.py` stores and asks: synthetic, clustered, the same every time.

Vectors lie around 1,000 random directions: a direction plus Gaussian noise whose expected length
is 0.8 of the direction's, so that two of a cluster have a cosine of about 0.6, and two of
different clusters of about 0. Questions are drawn the same way and are none of the vectors.
Texts have 8 to 16 words of a vocabulary of 30,000 by Zipf's law.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

DIMENSIONS = 384
CLUSTERS = 1000
NOISE = 0.8
VOCABULARY = 30_000
FEWEST_WORDS, MOST_WORDS = 8, 16
CHUNK = 10_000
START = datetime(2025, 1, 1, tzinfo=UTC)

_WORDS = (Path(__file__).parent / "words.txt").read_text(encoding="utf-8").split()


def centres() -> NDArray[np.float32]:
    """Return the directions of the clusters."""
    dice = np.random.default_rng(1)
    found = dice.standard_normal((CLUSTERS, DIMENSIONS), dtype=np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def vectors_of(seed: int, count: int) -> NDArray[np.float32]:
    """Return vectors of length one around random clusters."""
    dice = np.random.default_rng([2, seed])
    noise = dice.standard_normal((count, DIMENSIONS), dtype=np.float32)
    found = centres()[dice.integers(CLUSTERS, size=count)] + noise * NOISE / math.sqrt(DIMENSIONS)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def stored_vectors(path: Path, size: int) -> NDArray[np.float32]:
    """Return the vectors to store, from a file that is made if it is not there."""
    if not path.exists():
        part = path.with_suffix(".part")
        array = np.lib.format.open_memmap(part, "w+", np.float32, (size, DIMENSIONS))
        for start in range(0, size, CHUNK):
            count = min(CHUNK, size - start)
            array[start : start + count] = vectors_of(start, count)
        array.flush()
        part.rename(path)
    return np.load(path, mmap_mode="r")


def questions(count: int) -> NDArray[np.float32]:
    """Return the vectors to search for."""
    return vectors_of(999_999_999, count)


def texts_of(seed: int, count: int, words: int | None = None) -> list[str]:
    """Return texts, each of so many words."""
    dice = np.random.default_rng([3, seed])
    weights = 1 / (np.arange(VOCABULARY) + 10)
    chosen = dice.choice(VOCABULARY, size=(count, MOST_WORDS), p=weights / weights.sum())
    lengths = dice.integers(FEWEST_WORDS, MOST_WORDS + 1, size=count).tolist()
    return [
        " ".join(map(_word, row[: words or length]))
        for row, length in zip(chosen.tolist(), lengths, strict=True)
    ]


def _word(rank: int) -> str:
    first, second = divmod(rank * 7919 % (len(_WORDS) ** 2), len(_WORDS))
    return _WORDS[first] + _WORDS[second]


def entries(size: int, start: int = 0) -> Iterator[list[dict[str, Any]]]:
    """Yield the entries in chunks, without their vectors."""
    for first in range(start, size, CHUNK):
        count = min(CHUNK, size - first)
        yield [
            _entry(place, text) for place, text in enumerate(texts_of(first, count), start=first)
        ]


def _entry(place: int, text: str) -> dict[str, Any]:
    half, percent, permille = place % 2, place % 100, place % 1000
    return {
        "content": text,
        "namespace": f"h{half}/p{percent}/m{permille}",
        "type": _of(place, "working", "procedural", "semantic", "episodic"),
        "tags": (_of(place, "rare", "few", "half", "other"),),
        "metadata": {"place": place, "half": half, "percent": percent, "permille": permille},
        "created_at": START + timedelta(seconds=place),
    }


def _of(place: int, permille: str, percent: str, half: str, other: str) -> str:
    if place % 1000 == 3:
        return permille
    if place % 100 == 1:
        return percent
    return half if place % 2 == 0 else other


def restrictions(size: int) -> dict[str, dict[str, tuple[dict[str, Any], NDArray[np.bool_]]]]:
    """Return, by share and kind, what restricts a search, and which places it leaves."""
    place = np.arange(size)
    half, percent, permille = place % 2 == 0, place % 100 == 0, place % 1000 == 0
    few, rare = place % 100 == 1, place % 1000 == 3
    after = {share: START + timedelta(seconds=int(size * (1 - share))) for share in (0.5, 0.01)}
    late = START + timedelta(seconds=int(size * 0.999))
    found: dict[str, dict[str, tuple[dict[str, Any], NDArray[np.bool_]]]] = {
        "half": {
            "namespace": ({"namespace": "h0"}, half),
            "type": ({"type": "semantic"}, half),
            "tag": ({"tags": ["half"]}, half),
            "time": ({"created_after": after[0.5]}, place >= int(size * 0.5)),
            "metadata": ({"filter": {"half": 0}}, half),
        },
        "1 %": {
            "namespace": ({"namespace": "h0/p0"}, percent),
            "type": ({"type": "procedural"}, few & ~rare),
            "tag": ({"tags": ["few"]}, few & ~rare),
            "time": ({"created_after": after[0.01]}, place >= int(size * 0.99)),
            "metadata": ({"filter": {"percent": 0}}, percent),
        },
        "0.1 %": {
            "namespace": ({"namespace": "h0/p0/m0"}, permille),
            "type": ({"type": "working"}, rare),
            "tag": ({"tags": ["rare"]}, rare),
            "time": ({"created_after": late}, place >= int(size * 0.999)),
            "metadata": ({"filter": {"permille": 0}}, permille),
        },
    }
    return found


CHROMA_WHERE = {"half": {"half": 0}, "1 %": {"percent": 0}, "0.1 %": {"permille": 0}}
