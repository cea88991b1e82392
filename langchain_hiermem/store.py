"""A LangGraph store on the long-term entries of HierMem."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from langgraph.store.base import (
    BaseStore,
    GetOp,
    ListNamespacesOp,
    PutOp,
    SearchOp,
)

from hiermem_core import InvalidInputError, MissingIdentityError
from langchain_hiermem.finding import find, namespaces
from langchain_hiermem.indexing import Index, Texts, aembed, embed
from langchain_hiermem.items import draft_of, item_of, of_value, search_item_of
from langchain_hiermem.labels import (
    check_labels,
    common_prefix,
    meets,
    page_of,
)
from langchain_hiermem.operands import core_filter
from langchain_hiermem.places import OneTenant, TenantByLabel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_core.embeddings import Embeddings
    from langgraph.store.base import (
        IndexConfig,
        Item,
        Op,
        Result,
        SearchItem,
        TTLConfig,
    )

    from hiermem_core import EntryDraft, HierMem, MemoryEntry, MemoryService, Tenant
    from langchain_hiermem.indexing import Vectors
    from langchain_hiermem.labels import Labels
    from langchain_hiermem.places import Place, Places

_Name = tuple[str, str]
"""Namespace and key."""


class HierMemStore(BaseStore):
    """Items of LangGraph, each an entry of HierMem: on disk, shared by processes, found by meaning.

    A view: it opens and closes nothing, and does nothing when made. An item is an entry with a
    key; its value is the entry's metadata, held to the same limits and readable whatever the codec,
    since filters ask for it. Labels are compared whole, a filter takes a key literally, and nothing
    raises because of what is stored. Expired items are absent at once; no thread sweeps.

    The HierMem's embedder makes the vectors. Without one `index["embed"]` does, and where there is
    none either, a query ranks by its words. Every text that an index path yields has a vector of
    its own, and the best of them is the score, a cosine cut at 0. An item that is not indexed, and
    one whose vector is not made yet, follow the ranked ones with the score `None`.

    Reads of a batch see what was stored before it, and all that a batch changes in a tenant is one
    transaction. A read that refreshes an item with a time to live writes its new expiry.

    Args:
        tenant: Whose items these are.
        root: Labels that every namespace begins with, and that are not shown.
        index: LangGraph's `IndexConfig`; `fields` default to the whole value. Without it the whole
            value is indexed.
        ttl: LangGraph's `TTLConfig`, in minutes. `omit_expired` is always in force, and
            `sweep_interval_minutes` has no effect; call `sweep_ttl` from a job of your own.

    Raises:
        EmbedderMismatchError: `index["embed"]` is another model than the HierMem's.

    Example:
        Setup: `pip install "hiermem-core[langgraph]"`. Instantiate:
        ```python
        store = HierMemStore(hiermem.tenant("alice"))
        ```
        Use:
        ```python
        store.put(("notes",), "tea", {"text": "Likes green tea"})
        store.search(("notes",), query="what to drink")
        ```
        Async:
        ```python
        await store.aget(("notes",), "tea")
        ```
    """

    __slots__ = ("_index", "_places", "embeddings", "index_config", "ttl_config")

    supports_ttl = True

    def __init__(
        self,
        tenant: Tenant,
        *,
        root: tuple[str, ...] = (),
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        check_labels(SearchOp(tuple(root)))
        self._configure(OneTenant(tenant, tuple(root)), index, ttl)

    @classmethod
    def per_tenant(
        cls,
        hiermem: HierMem,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> Self:
        """Return the store of every tenant: the first label of each namespace is the tenant.

        For a graph that serves all users with templates such as `("{user_id}", "memories")`. What
        has no first label has no tenant: a search or listing without one raises
        `MissingIdentityError`. A batch is one transaction in each tenant.

        Example:
            ```python
            store = HierMemStore.per_tenant(hiermem)
            store.put(("alice", "memories"), "tea", {"text": "Likes green tea"})
            ```
        """
        store = cls.__new__(cls)
        store._configure(TenantByLabel(hiermem), index, ttl)  # noqa: SLF001 - its own class
        return store

    def _configure(self, places: Places, index: IndexConfig | None, ttl: TTLConfig | None) -> None:
        self._places = places
        self._index = Index.of(index, places.embedder if index else None)
        self.index_config: IndexConfig | None = index.copy() if index else None
        self.ttl_config: TTLConfig | None = ttl.copy() if ttl else None
        self.embeddings: Embeddings | None = self._index.given

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations; results are in their order.

        Raises:
            InvalidNamespaceError: A label is none. Nothing was changed, as with every error.
            InvalidInputError: A value is no JSON object, or a figure is out of range.
            InvalidFilterError: A filter cannot be understood.
            MissingIdentityError: The store is `per_tenant`, and a namespace names no tenant.
        """
        planned = self._planned(ops)
        return self._run(planned, embed(self._index.own, planned.texts))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do `batch` without blocking the loop."""
        planned = self._planned(ops)
        vectors = await aembed(self._index.own, planned.texts)
        return await self._places.pool.run(self._run, planned, vectors)

    def sweep_ttl(self, tenant: str | None = None) -> int:
        """Remove expired items from the disk; return how many. They are absent already.

        Args:
            tenant: Whose; needed where the store is `per_tenant`.

        Raises:
            MissingIdentityError: The store is `per_tenant`, and none is named.
        """
        memory = self._memory_of(tenant)
        removed = 0
        while True:
            purged = memory.purge_expired()
            removed += purged.removed
            if not purged.remaining:
                return removed

    async def asweep_ttl(self, tenant: str | None = None) -> int:
        """Do `sweep_ttl` without blocking the loop."""
        return await self._places.pool.run(self.sweep_ttl, tenant)

    def _memory_of(self, tenant: str | None) -> MemoryService:
        if isinstance(self._places, OneTenant):
            return self._places.tenant.memory
        if tenant is None:
            raise MissingIdentityError("tenant")
        return self._places.of((tenant,)).memory

    def _planned(self, ops: Iterable[Op]) -> _Planned:
        """Return what operations ask, checked; nothing was read yet."""
        planned = _Planned(list(ops))
        for number, op in enumerate(planned.ops):
            if not isinstance(op, GetOp | SearchOp | PutOp | ListNamespacesOp):
                raise InvalidInputError("ops", f"holds a {type(op).__name__}; pass operations")
            check_labels(op)
            planned.places[number] = self._places.of(_labels_of(op))
            if isinstance(op, PutOp):
                self._plan_put(planned, planned.places[number], op)
        drafts = [draft for one in planned.changes.values() for draft in one.drafts]
        questions = [op.query or "" for op in planned.ops if isinstance(op, SearchOp)]
        planned.texts = Texts(drafts, questions)
        return planned

    def _plan_put(self, planned: _Planned, place: Place, put: PutOp) -> None:
        name = (place.name, str(put.key))
        is_deleted = put.value is None
        draft = None if is_deleted else draft_of(put, place.name, self._index.fields)
        planned.changes_of(place).puts[name] = draft

    def _run(self, planned: _Planned, vectors: Vectors) -> list[Result]:
        results: list[Result] = []
        for number, op in enumerate(planned.ops):
            place = planned.places[number]
            if isinstance(op, GetOp):
                results.append(_get(planned, place, op))
            elif isinstance(op, SearchOp):
                results.append(_search(planned, place, op, vectors))
            elif isinstance(op, ListNamespacesOp):
                results.append(_list(place, op))
            else:
                results.append(None)
        for changes in planned.changes.values():
            changes.write(vectors)
        return results


@dataclass(slots=True)
class _Changes:
    """What a batch changes in one tenant: the last put of each item counts, `None` deletes."""

    memory: MemoryService
    puts: dict[_Name, EntryDraft | None] = field(default_factory=dict)
    refreshed: dict[_Name, None] = field(default_factory=dict)

    @property
    def drafts(self) -> list[EntryDraft]:
        """What is put."""
        return [draft for draft in self.puts.values() if draft is not None]

    def write(self, vectors: Vectors) -> None:
        """Write it in one transaction."""
        gone = [name for name, draft in self.puts.items() if draft is None]
        if not (self.puts or self.refreshed):
            return
        try:
            self.memory.write(
                [vectors.given_to(draft) for draft in self.drafts],
                deleting=gone,
                refreshing=list(self.refreshed),
            )
        except InvalidInputError as error:
            raise of_value(error) from None


@dataclass(slots=True)
class _Planned:
    """A batch: its operations, where each of them looks, and what it changes by tenant."""

    ops: Sequence[Op]
    places: dict[int, Place] = field(default_factory=dict)
    changes: dict[str, _Changes] = field(default_factory=dict)
    texts: Texts = field(default_factory=lambda: Texts((), ()))

    def changes_of(self, place: Place) -> _Changes:
        """Return the changes in a place's tenant."""
        return self.changes.setdefault(place.tenant, _Changes(place.memory))

    def refresh(self, place: Place, entries: Iterable[MemoryEntry]) -> None:
        """Have the entries that expire live as long again."""
        expiring = {(one.namespace, str(one.key)): None for one in entries if one.expires_at}
        if expiring:
            self.changes_of(place).refreshed |= expiring


def _labels_of(op: Op) -> Labels:
    if isinstance(op, SearchOp):
        return tuple(op.namespace_prefix)
    if isinstance(op, ListNamespacesOp):
        return common_prefix(op.match_conditions or ())
    return tuple(op.namespace)


def _get(planned: _Planned, place: Place, op: GetOp) -> Item | None:
    entry = place.memory.retrieve(namespace=place.name, key=str(op.key))
    if entry is None:
        return None
    if op.refresh_ttl:
        planned.refresh(place, [entry])
    return item_of(entry, place.shown(entry.namespace))


def _search(planned: _Planned, place: Place, op: SearchOp, vectors: Vectors) -> list[SearchItem]:
    question = op.query or ""
    found = find(
        place.memory,
        namespace=place.below,
        given=core_filter(op.filter),
        limit=op.limit,
        offset=op.offset,
        question=question,
        vector=vectors.questions.get(question),
    )
    if op.refresh_ttl:
        planned.refresh(place, (entry for entry, _ in found))
    return [search_item_of(entry, place.shown(entry.namespace), score) for entry, score in found]


def _list(place: Place, op: ListNamespacesOp) -> list[Labels]:
    conditions = op.match_conditions or ()
    every = map(place.shown, namespaces(place.memory, place.below))
    fitting = (labels for labels in every if meets(labels, conditions))
    return page_of(fitting, max_depth=op.max_depth, limit=op.limit, offset=op.offset)
