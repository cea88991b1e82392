"""Embedders of other libraries, known by their methods; no library is imported."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, cast

from hiermem_core.embedding.calling import HARMLESS_TEXT, MAX_CHARACTERS, as_ours
from hiermem_core.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hiermem_core.protocols import Embedder

_NAMES = ("model_id", "model_name", "model", "MODEL_NAME")
_NO_NAMES = frozenset({"", "unknown"})

_REMEDY = (
    "give a LangChain Embeddings, a LlamaIndex BaseEmbedding, a Chroma embedding function, "
    "a function from texts to vectors, or an object with model_id, dimensions and embed(texts)"
)


class AdaptedEmbedder:
    """Another library's embedder as an `Embedder`.

    Args:
        embed: Called with a list of texts; returns a vector each.
        dimensions: `None`: learnt from the first vector.
        embed_query: Called with a question; returns its vector.
        max_characters: What of a text is given to it.
    """

    def __init__(
        self,
        embed: Callable[[list[str]], Any],
        *,
        model_id: str,
        dimensions: int | None = None,
        embed_query: Callable[[str], Any] | None = None,
        max_characters: int = MAX_CHARACTERS,
    ) -> None:
        self.model_id = model_id
        self.max_characters = max_characters
        self.embed_query = embed_query
        self._embed = embed
        self._dimensions = dimensions

    @property
    def dimensions(self) -> int:
        """The length of every vector; asked before any text was embedded, it embeds one.

        Raises:
            BackendError: The embedder raised; its error is the cause.
            InvalidInputError: It returned no vector.
        """
        if self._dimensions is None:
            try:
                self.embed([HARMLESS_TEXT])
            except Exception as error:  # another library may raise anything
                raise as_ours(error) from error
        if self._dimensions is None:
            raise InvalidInputError("embedder", f"returns no list of vectors; {_REMEDY}")
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> list[Any]:
        """Return what the other embedder returns, as a list."""
        vectors = list(self._embed(list(texts)))
        if self._dimensions is None and vectors and hasattr(vectors[0], "__len__"):
            self._dimensions = len(vectors[0]) or None
        return vectors


def as_embedder(
    value: Any,
    *,
    model_id: str | None = None,
    dimensions: int | None = None,
    max_characters: int | None = None,
) -> Embedder:
    """Return `value` as an `Embedder`; embeds nothing yet.

    Takes an `Embedder`, a LangChain `Embeddings`, a LlamaIndex `BaseEmbedding`, a Chroma embedding
    function, and any function from a list of texts to their vectors. Where the library embeds
    questions another way, the result has `embed_query(text)`.

    Args:
        model_id: Stands for one model for good. Default: the value's model name if it has one, else
            the qualified name of its class or function.
        dimensions: The length of its vectors. Default: its own, else learnt at its first call.
        max_characters: What of a text to embed. Default: its own, else 8,000.

    Raises:
        InvalidInputError: It is none of these, or asynchronous, or a class instead of an object.
    """
    _check(model_id, dimensions, max_characters)
    embed, embed_query = _calls_of(value)
    if _is_embedder(value):
        if (model_id, dimensions, max_characters) == (None, None, None):
            return cast("Embedder", value)
        dimensions = dimensions or value.dimensions
    adapted = AdaptedEmbedder(
        embed,
        model_id=model_id or _name_of(value),
        dimensions=dimensions,
        embed_query=embed_query,
        max_characters=max_characters or int(getattr(value, "max_characters", MAX_CHARACTERS)),
    )
    return cast("Embedder", adapted)


_Calls = tuple["Callable[[list[str]], Any]", "Callable[[str], Any] | None"]


def _calls_of(value: Any) -> _Calls:
    """Return how to embed texts, and how to embed a question if that is another way."""
    if isinstance(value, type):
        raise InvalidInputError("embedder", f"{value.__qualname__} is a class; give an object")
    embed, embed_query = _known_calls_of(value)
    if inspect.iscoroutinefunction(embed) or inspect.iscoroutinefunction(
        getattr(embed, "__call__", None)  # noqa: B004 - asked for its colour, not whether it is
    ):
        raise InvalidInputError("embedder", "is asynchronous; give the synchronous one")
    return (_by_keyword(embed), embed_query) if _takes_input(embed) else (embed, embed_query)


def _known_calls_of(value: Any) -> _Calls:
    if _is_embedder(value):
        return value.embed, getattr(value, "embed_query", None)
    if _offers(value, "embed_documents", "embed_query"):
        return value.embed_documents, value.embed_query
    if _offers(value, "get_text_embedding_batch", "get_query_embedding"):
        return value.get_text_embedding_batch, value.get_query_embedding
    if not callable(value):
        raise InvalidInputError("embedder", f"{type(value).__name__} embeds nothing; {_REMEDY}")
    if _takes_input(value) and _offers(value, "embed_query"):
        return value, lambda text: value.embed_query(input=[text])[0]
    return value, None


def _by_keyword(embed: Callable[..., Any]) -> Callable[[list[str]], Any]:
    return lambda texts: embed(input=texts)


def _takes_input(function: Any) -> bool:
    """Tell a Chroma embedding function: it is called with `input=`."""
    try:
        return "input" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _is_embedder(value: Any) -> bool:
    return _offers(value, "model_id", "dimensions", "embed") and _is_name(value.model_id)


def _offers(value: Any, *names: str) -> bool:
    """Tell whether a value has all these names, without touching them: a property may call out."""
    return set(names) <= set(dir(value))


def _name_of(value: Any) -> str:
    for name in _NAMES:
        found = getattr(value, name, None)
        if _is_name(found):
            return str(found)
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.strip() not in _NO_NAMES


def _check(model_id: str | None, dimensions: int | None, max_characters: int | None) -> None:
    if model_id is not None and not _is_name(model_id):
        raise InvalidInputError("model_id", "is no name; give a text that is not empty")
    for name, figure in (("dimensions", dimensions), ("max_characters", max_characters)):
        if figure is not None and not (type(figure) is int and figure > 0):
            raise InvalidInputError(name, "must be a whole number above 0")
