"""What of a LangGraph store is indexed, and by whose vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from langgraph.store.base import ensure_embeddings

from hiermem_core import (
    ConfigurationError,
    EmbedderMismatchError,
    HierMemError,
    InvalidInputError,
    as_embedder,
)
from langchain_hiermem.items import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.embeddings import Embeddings

    from hiermem_core import Embedder, EntryDraft


@dataclass(frozen=True, slots=True)
class Index:
    """How the items of a store are indexed.

    Attributes:
        fields: The paths that are indexed where an operation names none.
        given: The embeddings of the configuration.
        own: Those that make the vectors here; `None`: the HierMem's embedder does, if it has one.
    """

    fields: tuple[str, ...]
    given: Embeddings | None
    own: Embeddings | None

    @classmethod
    def of(cls, config: Mapping[str, Any] | None, embedder: Embedder | None) -> Index:
        """Return the index of a configuration.

        Args:
            embedder: The HierMem's. Where it has one, that makes the vectors.

        Raises:
            EmbedderMismatchError: The configuration names another model than the HierMem's.
            ConfigurationError: `fields` are no list of paths.
        """
        config = config or {}
        fields = config.get("fields") or (EVERYTHING,)
        if isinstance(fields, str) or not all(isinstance(one, str) for one in fields):
            raise ConfigurationError("fields", "must be a list of paths")
        embed = config.get("embed")
        given = None if embed is None else ensure_embeddings(embed)
        if given is None or embedder is None:
            return cls(tuple(fields), given, given)
        name = _name_of(given if isinstance(embed, str) else embed)
        if name != embedder.model_id:
            raise EmbedderMismatchError(stored=embedder.model_id, given=name)
        return cls(tuple(fields), given, None)


class Texts:
    """What of a batch is embedded before it is written: each text of its drafts once, by place.

    Attributes:
        documents: The texts of drafts.
        questions: Those of searches.
    """

    def __init__(self, drafts: Sequence[EntryDraft], questions: Sequence[str]) -> None:
        texts = (text for draft in drafts for text in _texts_of(draft))
        self.documents = list(dict.fromkeys(texts))
        self.questions = list(dict.fromkeys(question for question in questions if question.strip()))


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vectors made here, by text; both are empty where the HierMem makes them."""

    documents: Mapping[str, Sequence[float]]
    questions: Mapping[str, Sequence[float]]

    def given_to(self, draft: EntryDraft) -> EntryDraft:
        """Return a draft with its vectors."""
        texts = _texts_of(draft)
        if not self.documents or not texts:
            return draft
        vectors = [self.documents[text] for text in texts]
        return replace(draft, embedding=vectors[0] if draft.passages is None else vectors)


NONE = Vectors({}, {})


def embed(own: Embeddings | None, texts: Texts) -> Vectors:
    """Return the vectors of texts; none where they are not made here."""
    if own is None:
        return NONE
    documents = own.embed_documents(texts.documents) if texts.documents else []
    questions = [own.embed_query(question) for question in texts.questions]
    return _paired(texts, documents, questions)


async def aembed(own: Embeddings | None, texts: Texts) -> Vectors:
    """Do `embed` by the asynchronous methods of the embeddings."""
    if own is None:
        return NONE
    documents = await own.aembed_documents(texts.documents) if texts.documents else []
    questions = [await own.aembed_query(question) for question in texts.questions]
    return _paired(texts, documents, questions)


def _paired(
    texts: Texts, documents: Sequence[Sequence[float]], questions: Sequence[Sequence[float]]
) -> Vectors:
    if len(documents) != len(texts.documents):
        reason = f"returned {len(documents)} vectors for {len(texts.documents)} texts; mend it"
        raise InvalidInputError("embed", reason)
    return Vectors(
        dict(zip(texts.documents, documents, strict=True)),
        dict(zip(texts.questions, questions, strict=True)),
    )


def _texts_of(draft: EntryDraft) -> tuple[str, ...]:
    return (draft.content,) if draft.passages is None else tuple(draft.passages)


def _name_of(value: Any) -> str:
    """Return the name by which the core knows the model of an embedder."""
    try:
        return as_embedder(value).model_id
    except HierMemError:  # an asynchronous function, which the core does not take
        named = value if hasattr(value, "__qualname__") else type(value)
        return f"{named.__module__}.{named.__qualname__}"
