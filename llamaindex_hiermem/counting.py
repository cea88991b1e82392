"""Tokens of texts by whatever tokenizer a memory is given, each text counted once."""

from __future__ import annotations

from collections import deque
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from llama_index.core.utils import get_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_KEPT_TOKENIZERS = 8
_KEPT_COUNTS = 4096
_KEPT_CHARACTERS = 2000
_KEPT_LONG_COUNTS = 64

_SPLITS_AT_SPACES = frozenset({"cl100k_base", "o200k_base"})
"""Encodings whose patterns end every match in front of a space that follows a visible character."""


class Count:
    """The tokens of a text; those of short texts are remembered, and of the last few others.

    One object serves all memories of a tokenizer, from any thread.
    """

    def __init__(self, tokenizer: Callable[[str], list[Any]]) -> None:
        def length(text: str) -> int:
            return len(tokenizer(text))

        self.tokenizer = tokenizer
        self._short = lru_cache(_KEPT_COUNTS)(length)
        self._long = lru_cache(_KEPT_LONG_COUNTS)(length)
        self._is_sum = splits_at_spaces(tokenizer)

    def __call__(self, text: str) -> int:
        """Return the tokens of a text."""
        return self._long(text) if len(text) > _KEPT_CHARACTERS else self._short(text)

    def joined(self, texts: Iterable[str]) -> int:
        """Return the tokens of texts joined by spaces.

        By most tokenizers they are more or fewer than those of the texts, so the joined text is
        counted; where they are the sum of its pieces, only pieces never seen are.
        """
        return sum(map(self, pieces_of(texts))) if self._is_sum else self(" ".join(texts))


def default_tokenizer(text: str) -> list[Any]:
    """Tokenize with LlamaIndex's own tokenizer, built at the first call."""
    return list(get_tokenizer()(text))


_counts: deque[Count] = deque(maxlen=_KEPT_TOKENIZERS)


def count_by(tokenizer: Callable[[str], list[Any]]) -> Count:
    """Return what counts by a tokenizer; the same for memories that have the same."""
    if tokenizer is default_tokenizer:
        tokenizer = get_tokenizer()
    found = next((count for count in tuple(_counts) if count.tokenizer == tokenizer), None)
    if found is None:
        found = Count(tokenizer)
        _counts.append(found)
    return found


class LazyCount:
    """What counts by a tokenizer, which is built when there is a text to count."""

    def __init__(self, tokenizer: Callable[[str], list[Any]]) -> None:
        self._tokenizer = tokenizer

    @cached_property
    def _count(self) -> Count:
        return count_by(self._tokenizer)

    def __call__(self, text: str) -> int:
        """Return the tokens of a text."""
        return self._count(text)

    def joined(self, texts: Iterable[str]) -> int:
        """Return the tokens of texts joined by spaces."""
        return self._count.joined(texts)


Counting: TypeAlias = Count | LazyCount


def splits_at_spaces(tokenizer: Any) -> bool:
    """Tell whether a tokenizer is an encoding of tiktoken by which no token spans a joint."""
    method = getattr(tokenizer, "func", tokenizer)
    encoding = getattr(method, "__self__", None)
    is_encoding = type(encoding).__module__ == "tiktoken.core"
    return is_encoding and getattr(encoding, "name", None) in _SPLITS_AT_SPACES


def pieces_of(texts: Iterable[str]) -> Iterator[str]:
    """Yield texts joined by spaces, cut in front of each space that follows a visible character."""
    piece = ""
    for place, text in enumerate(texts):
        piece += f" {text}" if place else text
        if piece and not piece[-1].isspace():
            yield piece
            piece = ""
    if piece:
        yield piece
