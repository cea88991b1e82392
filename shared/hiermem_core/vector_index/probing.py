"""Looking at an index: with a canary, or after an unclean end, from a child process.

Files that were cut off in the middle of being rewritten can crash or hang whoever reads them, so
the first to read them is a process that may die.
"""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hiermem_core.errors import HierMemError
from hiermem_core.vector_index.chroma import ChromaIndex
from hiermem_core.vector_index.connecting import embedded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

Verdict = Literal["good", "drifted", "bad"]

QUESTIONS = 20
"""Vectors looked up by themselves in each collection, over its whole length, ..."""
NEWEST = 20
"""... and so many of its newest, which the last rewriting was about."""

CANARY = "hm_canary"
"""A collection that belongs to no tenant."""

_LEAST_FOUND = 0.9
_HITS = 10
_SAME = 1 - 1e-6
_SECONDS = 60.0
_VECTORS_A_SECOND = 3_000
_POLL = 0.02
_MARK = "hiermem-probe:"
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.stdin.readline()); "
    "from hiermem_core.vector_index.probing import answer; answer(sys.stdin, sys.stdout)"
)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a collection should be like.

    Attributes:
        least: Vectors it holds at least: those whose adding was confirmed.
        most: Vectors it holds at most.
        numbers: Some that it holds for certain.
        vectors: Theirs, float32 in base64.
    """

    collection: str
    least: int
    most: int
    numbers: Sequence[int]
    vectors: Sequence[str]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a collection is like: its vectors, and how many were looked up and found."""

    count: int
    asked: int
    found: int


def chosen(numbers: NDArray[np.int64]) -> list[int]:
    """Return the numbers to look up, of all there are, ascending."""
    spread = np.linspace(0, len(numbers) - 1, min(QUESTIONS, len(numbers)), dtype=np.int64)
    picked: list[int] = np.union1d(numbers[spread], numbers[-NEWEST:]).tolist()
    return picked


def encode(vector: bytes) -> str:
    """Return a stored vector as text."""
    return base64.b64encode(vector).decode()


def judge(expected: Iterable[Expected], seen: Mapping[str, Seen]) -> Verdict:
    """Return what is to be done with an index.

    `good` needs every count to be the only one possible; where some changes may or may not have
    arrived, it is `drifted`, and comparing numbers tells. `bad` loses vectors or cannot be read.
    """
    verdict: Verdict = "good"
    for one in expected:
        found = seen.get(one.collection)
        if found is None or found.found < found.asked * _LEAST_FOUND:
            return "bad"
        if not found.count == one.least == one.most:
            verdict = "drifted"
    return verdict


def probe(
    folder: Path,
    expected: Sequence[Expected],
    *,
    keep_open: Iterable[int] = (),
    is_cancelled: Callable[[], bool] = lambda: False,
) -> Verdict | None:
    """Look at an index in a child process, which also completes what Chroma left undone.

    Args:
        folder: Of an index that no process has open.
        keep_open: Descriptors the child inherits, so that a lock lives as long as it.

    Returns:
        `None` when it was cancelled: nothing is known. An index that cannot be probed is `bad`.
    """
    if not _has_files(folder):
        return "bad"
    if not expected:
        return "good"
    if not _is_python(sys.executable):
        return "bad"
    seconds = _SECONDS + sum(one.most for one in expected) / _VECTORS_A_SECOND
    request = {
        "folder": str(folder),
        "seconds": seconds,
        "expected": [asdict(one) for one in expected],
    }
    with tempfile.TemporaryFile("w+") as question, tempfile.TemporaryFile("w+") as reply:
        question.write(f"{json.dumps(sys.path)}\n{json.dumps(request)}\n")
        question.seek(0)
        if not _asked(question, reply, seconds, keep_open, is_cancelled):
            return None
        reply.seek(0)
        return judge(expected, _seen(reply.read()))


def answer(question: Any, reply: Any) -> None:
    """Answer a probe; the child process's work."""
    request = json.loads(question.readline())
    _end_after(request["seconds"])
    index = ChromaIndex(embedded(Path(request["folder"])))
    seen = {}
    for one in request["expected"]:
        expected = Expected(**one)
        if expected.collection in index or not expected.least:
            seen[expected.collection] = asdict(look_at(index, expected))
    index.close()
    reply.write(f"\n{_MARK}{json.dumps(seen)}\n")
    reply.flush()


def look_at(index: ChromaIndex, expected: Expected) -> Seen:
    """Return what a collection is like."""
    found = 0
    for number, text in zip(expected.numbers, expected.vectors, strict=True):
        vector = np.frombuffer(base64.b64decode(text), dtype="<f4")
        numbers, cosines = index.nearest(expected.collection, vector, _HITS)
        is_twin = len(cosines) > 0 and bool(cosines[0] >= _SAME)
        found += number in numbers or is_twin
    return Seen(index.count(expected.collection), len(expected.numbers), found)


def canary_message(index: ChromaIndex) -> str:
    """Add, find and remove a vector that belongs to no tenant; return what fails, else nothing."""
    number = secrets.randbelow(1 << 62)
    vector = np.array([[1.0, 0.0]], dtype=np.float32)
    try:
        index.add(CANARY, [number], vector)
        found, _ = index.nearest(CANARY, vector[0], 1, among=[number])
        index.remove(CANARY, [number])
    except HierMemError as error:
        return str(error)
    return "" if number in found else "the canary is not found; run a repair"


def _has_files(folder: Path) -> bool:
    database = folder / "chroma.sqlite3"
    try:
        return database.stat().st_size > 0
    except OSError:
        return False


def _is_python(executable: str | None) -> bool:
    """Tell whether an executable runs scripts; a frozen or embedding program does not."""
    if not executable or getattr(sys, "frozen", False):
        return False
    return re.match(r"(python|pypy)", Path(executable).name.lower()) is not None


def _asked(
    question: Any,
    reply: Any,
    seconds: float,
    keep_open: Iterable[int],
    is_cancelled: Callable[[], bool],
) -> bool:
    """Run the child; return false if it was cancelled. It is gone when this returns."""
    options: dict[str, Any] = {"start_new_session": True, "pass_fds": tuple(keep_open)}
    try:
        child = subprocess.Popen(  # noqa: S603 - this very interpreter, on a text of ours
            [sys.executable, "-W", "ignore", "-c", _BOOT],
            stdin=question,
            stdout=reply,
            stderr=subprocess.DEVNULL,
            **(options if os.name == "posix" else {}),
        )
    except OSError:
        return True
    deadline = time.monotonic() + seconds
    try:
        while child.poll() is None and time.monotonic() < deadline:
            if is_cancelled():
                return False
            time.sleep(_POLL)
    finally:
        child.kill()
        child.wait()
    return True


def _seen(text: str) -> dict[str, Seen]:
    for line in reversed(text.splitlines()):
        if line.startswith(_MARK):
            with suppress(ValueError, TypeError):
                told = json.loads(line.removeprefix(_MARK))
                return {name: Seen(**figures) for name, figures in told.items()}
    return {}


def _end_after(seconds: float) -> None:
    """End this process by itself, even if the one that started it is gone."""
    with suppress(ImportError, AttributeError):
        import signal  # noqa: PLC0415 - the child's only

        signal.alarm(int(seconds) + 1)
