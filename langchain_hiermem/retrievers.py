"""LangChain retrievers: on the long-term entries of HierMem, and with a cache before any other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.config import ensure_config
from pydantic import ConfigDict, Field, PrivateAttr

from hiermem_core import InvalidInputError, MemoryQuery, Tenant, WorkingMemory

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        BaseCallbackManager,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.runnables import Runnable, RunnableConfig

    from hiermem_core import Hit, Observer, WorkingMemoryStats

_PAGE = 1000


class HierMemRetriever(BaseRetriever):
    """The entries of one tenant that answer a question, best first.

    A view: it opens and closes nothing, and does nothing when made. The tenant is fixed; there is
    none to be given in a call. `invoke` takes `k` and `filter`, which stand for the fields of that
    name in this call.

    A document has the entry's id and content; its metadata are the entry's, with `hiermem_score`,
    `hiermem_namespace`, `hiermem_type` and `hiermem_created_at` besides, and `hiermem_expires_at`
    where it expires.

    Attributes:
        k: How many documents at most.
        namespace: Entries there and below; `None`: everywhere.
        filter: On metadata, such as `{"year": {"$gte": 2024}}`.
        types: Only entries of these; `None`: of every type.
        min_score: The least score, 0 to 1.
        mode: `"keyword"`, `"semantic"`, `"hybrid"` or another mode of the core; `None`: the best
            the backend has.

    Raises:
        UnsupportedSearchError: The backend has no index for the mode; raised by a call.

    Example:
        Setup: `pip install "hiermem-core[langchain]"`. Instantiate:
        ```python
        retriever = HierMemRetriever(hiermem.tenant("alice"), k=3)
        ```
        Use:
        ```python
        retriever.invoke("When should we meet?")
        ```
        Async:
        ```python
        await retriever.ainvoke("When should we meet?")
        ```
    """

    model_config = ConfigDict(extra="forbid")

    k: int = Field(default=4, gt=0)
    namespace: str | None = None
    filter: dict[str, Any] | None = None
    types: Sequence[str] | None = Field(default=None, min_length=1)
    min_score: float | None = None
    mode: str | None = None

    _memory: Tenant = PrivateAttr()

    def __init__(self, memory: Tenant, **fields: Any) -> None:
        super().__init__(**fields)
        self._memory = memory

    def generation(self) -> int:
        """Return a figure that grows with every change of what can be found."""
        return self._memory.memory.generation()

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - LangChain passes it
        k: int | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name that callers give
    ) -> list[Document]:
        return self._found(query, k, filter)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002 - LangChain passes it
        k: int | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name that callers give
    ) -> list[Document]:
        return await self._memory.pool.run(self._found, query, k, filter)

    def _found(
        self, query: str, k: int | None, restriction: dict[str, Any] | None
    ) -> list[Document]:
        wanted = self.k if k is None else k
        if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
            raise InvalidInputError("k", "must be a whole number above 0")
        asked = MemoryQuery(
            text=query,
            mode=self.mode,  # type: ignore[arg-type]  # checked by the core
            namespace=self.namespace,
            filter=self.filter if restriction is None else restriction,
            type=self._only_type,  # type: ignore[arg-type]  # checked by the core
            threshold=self.min_score,
        )
        return [document_of(hit) for hit in islice(self._hits(asked, wanted), wanted)]

    @property
    def _only_type(self) -> str | None:
        types = set(self.types or ())
        return types.pop() if len(types) == 1 else None

    def _hits(self, asked: MemoryQuery, wanted: int) -> Iterator[Hit]:
        """Yield hits of the right types, page by page; the core restricts to one type at most."""
        types = None if self.types is None or self._only_type is not None else set(self.types)
        offset = 0
        size = min(_PAGE, wanted)
        while page := self._memory.memory.search(asked, limit=size, offset=offset):
            yield from (hit for hit in page if types is None or hit.type in types)
            if len(page) < size:
                return
            offset += len(page)
            size = min(_PAGE, 2 * size)


class WorkingMemoryRetriever(BaseRetriever):
    """Any retriever, asked once for what is asked again or at once.

    Repeated calls are answered from what is kept, equal calls at one time share one, sync or async,
    in any mix of threads and event loops. An answer has the shape of the retriever's own and is a
    copy. The retriever's callbacks, under this one's, run where it is asked; on other calls only
    this one's do. The retriever itself stays as it is. An error is not kept.

    A call counts by its text, its keyword arguments, what is `configurable` where it runs, what
    the retriever's fields are set to, and the retriever's `generation()` where it has one, as
    `HierMemRetriever` has: so a write, in any process, is never missed. What else decides an
    answer belongs in `scope`, such as the tenant of a retriever that finds it out by itself.

    Args:
        retriever: A `BaseRetriever`, or a runnable from text to documents.
        scope: Part of every key.
        ttl_seconds: How old an answer may get; 0 keeps nothing and still shares calls.
        max_entries: Answers kept at most; the least recently used one leaves first.
        enabled: `False`: ask each time.
        normalize: Returns what of a text counts; by default all of it.
        observer: Is told a `RecallServed` of each call.

    Raises:
        ConfigurationError: An option is out of range; raised by the constructor.

    Example:
        Setup: `pip install "hiermem-core[langchain]"`. Instantiate:
        ```python
        cached = WorkingMemoryRetriever(HierMemRetriever(hiermem.tenant("alice")))
        ```
        Use:
        ```python
        cached.invoke("When should we meet?")
        cached.invoke("When should we meet?")  # from memory
        assert cached.stats().hits == 1
        ```
        Async:
        ```python
        await cached.ainvoke("When should we meet?")
        ```
    """

    model_config = ConfigDict(extra="forbid")

    _working: WorkingMemory = PrivateAttr()

    def __init__(
        self,
        retriever: Runnable[str, list[Document]],
        *,
        scope: Sequence[Hashable] = (),
        ttl_seconds: float = 60.0,
        max_entries: int = 100,
        enabled: bool = True,
        normalize: Callable[[str], Any] | None = None,
        observer: Observer | None = None,
        **fields: Any,
    ) -> None:
        super().__init__(**fields)
        self._working = WorkingMemory(
            retriever,
            scope=scope,
            ttl_seconds=ttl_seconds,
            max_entries=max_entries,
            enabled=enabled,
            normalize=normalize,
            observer=observer,
        )

    def invalidate(self, query: str | None = None) -> int:
        """Drop every answer to a query, whatever else was asked, or all; return how many."""
        return self._working.invalidate(query)

    def pin(self, query: str, **kwargs: Any) -> None:
        """Keep the answer to a call whatever its age and use, and ask for it if it is absent.

        Raises:
            LimitExceededError: Half of `max_entries` is pinned. Nothing changed.
        """
        self._working.pin(query, _configured(), **kwargs)

    async def apin(self, query: str, **kwargs: Any) -> None:
        """Do `pin` without blocking the loop."""
        await self._working.apin(query, _configured(), **kwargs)

    def unpin(self, query: str, **kwargs: Any) -> bool:
        """Have an answer age like others again; say whether it was pinned."""
        return self._working.unpin(query, _configured(), **kwargs)

    def clear(self) -> None:
        """Drop all answers and all pins, and count from 0."""
        self._working.clear()

    def stats(self) -> WorkingMemoryStats:
        """Return how it served, as figures of one moment."""
        return self._working.stats()

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        found: list[Document] = self._working.search(
            query, _configured(run_manager.get_child()), **kwargs
        )
        return found

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        found: list[Document] = await self._working.asearch(
            query, _configured(run_manager.get_child()), **kwargs
        )
        return found


def _configured(callbacks: BaseCallbackManager | None = None) -> RunnableConfig:
    """Return the config that the wrapped retriever runs by, in whichever thread it runs."""
    return {"callbacks": callbacks, "configurable": ensure_config().get("configurable") or {}}


def document_of(hit: Hit) -> Document:
    """Return a hit as a document."""
    facts = {
        "hiermem_score": hit.score,
        "hiermem_namespace": hit.namespace,
        "hiermem_type": hit.type,
        "hiermem_created_at": hit.created_at,
    }
    if hit.expires_at is not None:
        facts["hiermem_expires_at"] = hit.expires_at
    return Document(id=hit.id, page_content=hit.content, metadata={**hit.metadata, **facts})
