"""A LangChain retriever on the long-term entries of HierMem."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field, PrivateAttr

from hiermem_core import InvalidInputError, MemoryQuery, Tenant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )

    from hiermem_core import Hit

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
        ```python
        retriever = HierMemRetriever(hiermem.tenant("alice"), k=3)
        retriever.invoke("When should we meet?")
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
