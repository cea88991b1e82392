"""The memory service: the long-term entries of one tenant."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import InvalidInputError
from hiermem_core.models import events
from hiermem_core.models.entries import copy_of
from hiermem_core.models.namespaces import format_namespace
from hiermem_core.models.results import BulkInsertResult, BulkResult, PurgeResult
from hiermem_core.operations import watched
from hiermem_core.service.bulk import (
    change_of,
    delete_all,
    distinct_ids,
    insert_all,
    one_name,
    places_of,
    update_all,
)
from hiermem_core.service.checking import (
    as_entry_draft,
    as_query,
    checked_count,
    checked_items,
    checked_timeout,
    restrictions_of,
)
from hiermem_core.service.searching import EntrySearch, embedding_of, needs_vectors
from hiermem_core.service.statistics import stats_of
from hiermem_core.service.writing import EntryWriting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from hiermem_core.models.entries import EntryDraft, EntryUpdate, MemoryEntry
    from hiermem_core.models.health import Health
    from hiermem_core.models.queries import MemoryQuery, SearchResult
    from hiermem_core.models.results import ForgetReceipt, MemoryStats
    from hiermem_core.protocols import Embedder
    from hiermem_core.service.collaborators import Collaborators

    Forget = Callable[..., ForgetReceipt]


@watched(
    writes="store update delete write bulk_insert bulk_update bulk_delete clear_namespace"
    " purge_expired forget",
    reads="retrieve search bulk_get list_namespaces",
)
class MemoryService:
    """The entries of one tenant: store, find, change and forget them.

    The same rules hold on every backend. Everything is safe to call from several threads and
    inside a running event loop. No transaction is open while an embedder runs.
    """

    def __init__(
        self, shared: Collaborators, tenant_id: str, actor: str | None, *, forget: Forget
    ) -> None:
        self._watch = (shared.operations, tenant_id, None, actor)
        self._shared = shared
        self._forget = forget
        self._tenant = tenant_id
        self._cleaner = partial(shared.redaction.cleaner, "query", tenant_id)
        self._writing = EntryWriting(shared, tenant_id)
        self._searching = EntrySearch(shared, tenant_id)

    @property
    def tenant_id(self) -> str:
        """Whose entries these are."""
        return self._tenant

    @property
    def embedder(self) -> Embedder | None:
        """The embedder that makes the vectors; `None` where there is none."""
        return self._shared.vectoriser.embedder

    def store(
        self, entry: EntryDraft | MemoryEntry | str | Mapping[str, Any], /, **fields: Any
    ) -> str:
        """Store an entry and return its id.

        Under an id or key that exists it replaces everything but id and creation time. A semantic
        or procedural entry without id and key that says what a living one says is counted there.

        Raises:
            InvalidInputError: The entry cannot be stored. Nothing was.
            LimitExceededError: A field is too large. Nothing was stored.
            KeyConflictError: Id and key name two entries. Nothing was stored.
            EmbedderMismatchError: The location's vectors are by another embedder.
        """
        self._shared.check_open()
        return self._writing.store_one(as_entry_draft(entry, fields)).id

    def retrieve(
        self,
        entry_id: str | None = None,
        /,
        *,
        namespace: str | Sequence[str] | None = None,
        key: str | None = None,
        include_embedding: bool = False,
    ) -> MemoryEntry | None:
        """Return the entry of an id, or of a namespace and key; `None` where there is none.

        Raises:
            InvalidInputError: Neither an id nor a key was given, or both.
        """
        self._shared.check_open()
        shared, now = self._shared, self._shared.clock.now()
        entry_id, place = one_name(entry_id, namespace, key, self._cleaner())
        generation = 0 if entry_id is None else shared.backend.generation(self._tenant)
        if entry_id is not None and not include_embedding:
            cached = shared.cache.get(self._tenant, entry_id, generation, now)
            if cached is not None:
                return copy_of(cached)
        with shared.backend.read(self._tenant, now) as reader:
            if entry_id is not None:
                kept = reader.by_id({entry_id}).get(entry_id)
            else:
                kept = reader.by_key({place}).get(place)
            if kept is None:
                return None
            vector = embedding_of(reader, kept) if include_embedding else None
        if entry_id is not None:
            shared.cache.put(self._tenant, kept.entry, generation)
        return replace(copy_of(kept.entry), embedding=vector)

    def update(
        self,
        entry_id: str,
        changes: EntryUpdate | None = None,
        /,
        *,
        expected_version: int | None = None,
        **fields: Any,
    ) -> MemoryEntry | None:
        """Change exactly the given fields; `None` is a value. An absent id gives `None`.

        Without a field nothing changes, not even the version.

        Raises:
            InvalidInputError: A field cannot be changed, or not to this. Nothing was changed.
            VersionConflictError: `expected_version` is not the entry's. Nothing was changed.
            KeyConflictError: Another entry of the namespace bears the new key.
        """
        self._shared.check_open()
        change = change_of(entry_id, {} if changes is None else changes, expected_version)
        change = change._replace(fields={**change.fields, **fields})
        answers, failed = self._writing.change([change])
        if failed:
            raise failed[0].error
        changed = answers[entry_id]
        return None if changed is None else copy_of(changed)

    def delete(
        self,
        entry_id: str | None = None,
        /,
        *,
        namespace: str | Sequence[str] | None = None,
        key: str | None = None,
    ) -> bool:
        """Delete the entry of an id, or of a namespace and key; say whether there was one.

        Raises:
            InvalidInputError: Neither an id nor a key was given, or both.
        """
        self._shared.check_open()
        entry_id, place = one_name(entry_id, namespace, key, self._cleaner())
        if entry_id is None:
            return self._writing.remove_key(*place)
        return self._writing.remove([entry_id])[entry_id]

    def search(self, query: MemoryQuery | str | None = None, /, **fields: Any) -> SearchResult:
        """Return the entries that answer a query, best first.

        Without text it lists, newest change first. See `MemoryQuery` for the fields. Only semantic
        and hybrid mode call the embedder.

        Raises:
            InvalidInputError: A field is unknown or out of range, a filter cannot be understood.
            UnsupportedSearchError: The backend has no index for the mode.
            IndexUnavailableError: Semantic search waits for a reindex.
            EmbedderMismatchError: The location's vectors are by another embedder.
        """
        self._shared.check_open()
        cleaner = self._cleaner()
        asked = as_query(query, fields, cleaner)
        restrictions = restrictions_of(asked, cleaner)
        mode = self._searching.mode_of(asked)
        if needs_vectors(asked, mode):
            self._shared.before_search(self._tenant)
        result = self._searching.run(asked, mode, restrictions)
        self._shared.tell(events.SearchServed(self._tenant, mode, len(result)))
        return result

    def search_semantic(self, text: str, k: int = 10, /, **fields: Any) -> SearchResult:
        """Return the `k` entries nearest in meaning; `search` in semantic mode.

        Raises:
            InvalidInputError: `mode` or `limit` is given besides; otherwise as `search`.
        """
        for name in ("mode", "limit"):
            if name in fields:
                raise InvalidInputError(name, "is set here already; leave it out, or use search")
        return self.search(text, mode="semantic", limit=k, **fields)

    def list_namespaces(
        self, under: str | Sequence[str] | None = None, *, limit: int = 1000, offset: int = 0
    ) -> list[str]:
        """Return, sorted, the namespaces at or below `under` that hold an entry now."""
        self._shared.check_open()
        page = as_query(None, {"limit": limit, "offset": offset})
        path = None if under is None else format_namespace(under)
        with self._shared.backend.read(self._tenant, self._shared.clock.now()) as reader:
            return list(reader.namespaces(path, limit=page.limit, offset=page.offset))

    def clear_namespace(self, namespace: str | Sequence[str], *, subtree: bool = True) -> int:
        """Remove every entry of a namespace, and with `subtree` below it; return how many.

        Raises:
            InvalidNamespaceError: It names no namespace; `forget(everything=True)` empties all.
        """
        self._shared.check_open()
        path = format_namespace(namespace)
        query = as_query(None, {"namespace": path, "subtree": subtree})
        removed = self._writing.clear(restrictions_of(query))
        if removed:
            self._shared.tell(events.NamespaceCleared(self._tenant, path, removed))
        return removed

    def write(
        self,
        entries: Iterable[EntryDraft | MemoryEntry | str | Mapping[str, Any]] = (),
        /,
        *,
        deleting: Iterable[tuple[str | Sequence[str], str]] = (),
        refreshing: Iterable[tuple[str | Sequence[str], str]] = (),
    ) -> list[str]:
        """Store entries, delete others and renew the expiry of others, all or nothing.

        One transaction. What is stored is neither deleted nor refreshed, what is deleted is not
        refreshed. A refresh lets an entry with a time to live live as long again from now; its
        version and time of change stay. Returns the ids of what was stored, in order.

        Args:
            deleting: Namespace and key of each; one that is not there is passed over.
            refreshing: As `deleting`.

        Raises:
            InvalidInputError: An entry cannot be stored, or a name is none. Nothing was changed.
            KeyConflictError: Id and key name two entries. Nothing was changed.
            EmbedderMismatchError: The location's vectors are by another embedder.
        """
        self._shared.check_open()
        items = checked_items(entries)
        cleaner = self._cleaner()
        gone, living = places_of(deleting, cleaner), places_of(refreshing, cleaner)
        if not (items or gone or living):
            return []
        return self._writing.write(items, deleting=gone, refreshing=living)

    def bulk_insert(
        self,
        entries: Iterable[EntryDraft | MemoryEntry | str | Mapping[str, Any]],
        *,
        batch_size: int = 100,
    ) -> BulkInsertResult:
        """Store many entries, a transaction a batch; a bad item never fails another.

        What fails a whole batch, such as a store that cannot be written or an embedder that is not
        the location's, is the failure of its items and of all after them; what came before is
        stored, and in the result.

        Raises:
            InvalidInputError: The items are no list, or `batch_size` is no number above 0.
            LimitExceededError: There are more than 10,000.
        """
        self._shared.check_open()
        items = checked_items(entries)
        size = checked_count("batch_size", batch_size, least=1)
        return insert_all(self._writing, items, batch_size=size)

    def bulk_get(self, ids: Iterable[str]) -> dict[str, MemoryEntry | None]:
        """Return for each id its entry, or `None`.

        Raises:
            InvalidInputError: An id is no text, or empty.
        """
        self._shared.check_open()
        wanted = distinct_ids(ids)
        if not wanted:
            return {}
        with self._shared.backend.read(self._tenant, self._shared.clock.now()) as reader:
            found = reader.by_id(wanted)
        return {i: copy_of(found[i].entry) if i in found else None for i in wanted}

    def bulk_update(
        self, updates: Iterable[tuple[str, EntryUpdate] | Mapping[str, Any]]
    ) -> BulkResult[MemoryEntry | None]:
        """Change many entries, given as `(id, changes)` or `{"id": ..., "update": {...}}`.

        A bad item is its own failure, and never fails another.
        """
        self._shared.check_open()
        result = update_all(self._writing, updates)
        answers = {i: None if entry is None else copy_of(entry) for i, entry in result.items()}
        return BulkResult(answers, result.failed)

    def bulk_delete(self, ids: Iterable[str]) -> BulkResult[bool]:
        """Delete many entries; say for each id whether there was one. A bad id fails alone."""
        self._shared.check_open()
        return delete_all(self._writing, ids)

    def purge_expired(self, *, limit: int = 1000) -> PurgeResult:
        """Remove up to `limit` expired entries; repeat until none remains.

        Raises:
            InvalidInputError: `limit` is no whole number, or below 0.
        """
        self._shared.check_open()
        most = checked_count("limit", limit)
        with self._shared.backend.write(self._tenant, self._shared.clock.now()) as writer:
            removed, remaining = writer.remove_expired(limit=most)
        if removed:
            self._shared.tell(events.EntriesPurged(self._tenant, removed))
            self._shared.after_write(self._tenant)
        return PurgeResult(removed, remaining)

    def forget(
        self,
        *,
        ids: Iterable[str] | None = None,
        namespace: str | Sequence[str] | None = None,
        thread_id: str | None = None,
        user_id: str | None = None,
        everything: bool = False,
        dry_run: bool = False,
    ) -> ForgetReceipt:
        """Erase what exactly one selector chooses, rows at once and then the bytes in the files.

        Nothing of it is read again from the first commit on, whatever fails after that. Entries
        derived only from forgotten ones go too. The files are cleaned of everything removed or
        replaced before as well, which takes as long as writing them anew; forget many ids in one
        call. A receipt with `remaining` above 0 says that bytes are left: repeat the call, or open
        the location again. Copies made earlier are not touched.

        Args:
            ids: Of entries, up to 10,000.
            namespace: Its entries, and those below it.
            thread_id: The thread with its turns and notes, and the session of its name.
            user_id: Entries, patterns, sessions and turns stored with it, and the notes of the
                threads these stood in, which are learned anew from what is left.
            everything: All that the tenant has.
            dry_run: Count, and change nothing.

        Raises:
            InvalidInputError: No selector is given, or several, or one that names nothing.
            LimitExceededError: There are more than 10,000 ids.
            BackendError: The database cannot be written. Nothing was forgotten.
        """
        return self._forget(
            self._tenant,
            ids=ids,
            namespace=namespace,
            thread_id=thread_id,
            user_id=user_id,
            everything=everything,
            dry_run=dry_run,
        )

    def generation(self) -> int:
        """Return a figure that grows with every committed change of the tenant's entries."""
        self._shared.check_open()
        return self._shared.backend.generation(self._tenant)

    def wait_for_index(self, timeout: float | None = None) -> bool:
        """Make the vectors that rows wait for, and tell whether none waits any more.

        Args:
            timeout: Seconds to wait at most; `None`: until it is done.

        Raises:
            InvalidInputError: `timeout` is no finite number.
            EmbedderMismatchError: The location's vectors are by another embedder.
        """
        return self._shared.catch_up(self._tenant, checked_timeout(timeout))

    def health(self) -> Health:
        """Say what works, by canaries that no tenant sees; figures are of this tenant."""
        return self._shared.health(self._tenant)

    def stats(self) -> MemoryStats:
        """Return what is kept of this tenant, and what answers each search mode."""
        return stats_of(self._shared, self._tenant)
