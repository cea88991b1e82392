"""A LlamaIndex retriever on the long-term entries of one tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from llamaindex_hiermem.entries import checked_k, entries_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.schema import QueryBundle

    from hiermem_core import Hit, Tenant


class HierMemRetriever(BaseRetriever):
    """The entries of one tenant that answer a question, best first.

    A view: it opens and closes nothing, writes nothing, and the tenant is fixed. A question that
    comes with an embedding is searched by that; without an embedder the search is by words.

    A node has the entry's id and content; its metadata are the entry's, with `hiermem_score`,
    `hiermem_namespace`, `hiermem_type` and `hiermem_created_at` besides, which models and
    embedders are not shown.

    Args:
        k: How many nodes at most.
        namespace: Entries there and below; `None`: everywhere.
        filter: On metadata, such as `{"year": {"$gte": 2024}}`.
        types: Only entries of these; `None`: of every type.
        min_score: The least score, 0 to 1.
        mode: `"keyword"`, `"semantic"`, `"hybrid"` or another mode of the core; `None`: the best
            the backend has.

    Example:
        ```python
        retriever = HierMemRetriever(hiermem.tenant("alice"), k=3)
        engine = ContextChatEngine.from_defaults(retriever, memory=memory)
        ```
    """

    def __init__(
        self,
        tenant: Tenant,
        *,
        k: int = 5,
        namespace: str | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - as in the core
        types: Sequence[str] | None = None,
        min_score: float | None = None,
        mode: str | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self._tenant = tenant
        self._options: dict[str, Any] = {
            "k": checked_k(k),
            "namespace": namespace,
            "filter": filter,
            "types": types,
            "min_score": min_score,
            "mode": mode,
        }

    def generation(self) -> int:
        """Return a figure that grows with every change of what can be found."""
        return self._tenant.memory.generation()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        vector = query_bundle.embedding
        found = entries_for(self._tenant, query_bundle.query_str, vector=vector, **self._options)
        return [node_of(hit) for hit in found]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await self._tenant.pool.run(self._retrieve, query_bundle)


def node_of(hit: Hit) -> NodeWithScore:
    """Return a hit as a node."""
    facts = {
        "hiermem_score": hit.score,
        "hiermem_namespace": hit.namespace,
        "hiermem_type": hit.type,
        "hiermem_created_at": hit.created_at.isoformat(),
    }
    if hit.expires_at is not None:
        facts["hiermem_expires_at"] = hit.expires_at.isoformat()
    node = TextNode(
        id_=hit.id,
        text=hit.content,
        metadata={**hit.metadata, **facts},
        excluded_llm_metadata_keys=list(facts),
        excluded_embed_metadata_keys=list(facts),
    )
    return NodeWithScore(node=node, score=hit.score)
