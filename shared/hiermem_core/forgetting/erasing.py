"""Erasing the chosen rows, in one transaction."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from hiermem_core.models.plain import dump_json, load_json
from hiermem_core.service.derivation import remove_with_derived
from hiermem_core.storage.database import slices
from hiermem_core.storage.sealing import seal_of
from hiermem_core.storage.tables import threads, turns
from hiermem_core.threads import reading
from hiermem_core.threads.notes import erase_notes, notes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from sqlalchemy import Connection

    from hiermem_core.forgetting.selectors import Selector
    from hiermem_core.protocols import EntryWriter
    from hiermem_core.threads.reading import Head
    from hiermem_core.threads.store import ThreadStore

_T, _H = turns.c, threads.c

_PAGE = 500

STORES = (
    *("entries", "turns", "threads", "notes", "vectors"),
    *("patterns", "sessions", "steps"),
)
"""What a receipt counts."""


def erase_entries(
    writer: EntryWriter,
    selector: Selector,
    turn_ids: Collection[str],
    existing_turns: Callable[[Collection[str]], set[str]],
) -> int:
    """Erase the entries that are chosen, and those derived from nothing else; return how many.

    Args:
        turn_ids: Of the turns that are erased too; what was derived from them only goes as well.
        existing_turns: Tells which of some ids are those of turns.
    """
    chosen: dict[int, str] = {}
    if selector.entries is not None:
        chosen = dict(writer.traces(selector.entries, selector.ids))
    return len(remove_with_derived(writer, chosen, turn_ids, existing_turns))


def chosen_turn_ids(connection: Connection, tenant: str, selector: Selector) -> set[str]:
    """Return the ids of the turns that are chosen, archived ones among them."""
    of_tenant = select(_T.id).join(threads, _H.number == _T.thread).where(_H.tenant == tenant)
    if selector.kind == "everything":
        return set(connection.execute(of_tenant).scalars())
    if selector.kind == "thread_id":
        of_thread = of_tenant.where(_H.thread_id == selector.names[0])
        return set(connection.execute(of_thread).scalars())
    found: set[str] = set()
    if selector.kind == "user_id":
        for thread_id, seqs in _turns_of_user(connection, tenant, selector.names[0]):
            of_thread = of_tenant.where(_H.thread_id == thread_id)
            for some in slices(seqs):
                found |= set(connection.execute(of_thread.where(_T.seq.in_(some))).scalars())
    return found


def existing_turn_ids(connection: Connection, tenant: str, ids: Collection[str]) -> set[str]:
    """Return those of some ids that turns of the tenant bear."""
    of_tenant = select(_T.id).join(threads, _H.number == _T.thread).where(_H.tenant == tenant)
    found: set[str] = set()
    for some in slices(list(ids)):
        found |= set(connection.execute(of_tenant.where(_T.id.in_(some))).scalars())
    return found


def erase_from_threads(
    connection: Connection, store: ThreadStore, tenant: str, selector: Selector
) -> dict[str, int]:
    """Erase the threads, turns and notes that are chosen; return how many of each."""
    counts: dict[str, int] = defaultdict(int)
    if selector.kind == "thread_id":
        head = reading.head_of(connection, tenant, selector.names[0])
        if head is not None:
            _erase_thread(connection, store, head, counts)
    elif selector.kind == "everything":
        while heads := reading.heads_of(connection, tenant, limit=_PAGE, offset=0):
            for head in heads:
                _erase_thread(connection, store, head, counts)
    elif selector.kind == "user_id":
        for thread_id, seqs in _turns_of_user(connection, tenant, selector.names[0]):
            head = reading.require_head(connection, tenant, thread_id)
            _erase_turns(connection, store, head, seqs, counts)
    return counts


def _erase_thread(
    connection: Connection, store: ThreadStore, head: Head, counts: dict[str, int]
) -> None:
    state = notes_of(connection, head.number).state
    every = select(func.count()).select_from(turns).where(_T.thread == head.number)
    counts["turns"] += connection.execute(every).scalar_one()
    counts["notes"] += bool(state.summary or state.facts)
    counts["threads"] += 1
    store.erase_thread(connection, head)


def _erase_turns(
    connection: Connection,
    store: ThreadStore,
    head: Head,
    seqs: list[int],
    counts: dict[str, int],
) -> None:
    """Erase turns, and the notes, which hold what was said; a thread without turns goes too."""
    counts["turns"] += len(seqs)
    counts["notes"] += erase_notes(connection, head)
    if not store.erase_turns(connection, head, seqs):
        store.erase_thread(connection, head)
        counts["threads"] += 1


def _turns_of_user(
    connection: Connection, tenant: str, user_id: str
) -> Iterator[tuple[str, list[int]]]:
    """Yield the threads with turns of a user, and their seqs, archived ones among them.

    A turn that cannot be decoded is the user's where its text says so.
    """
    said = dump_json({"user_id": user_id})[1:-1]
    query = (
        select(_H.thread_id, _T.seq, _T.body)
        .join(turns, _T.thread == _H.number)
        .where(_H.tenant == tenant, _T.body.is_not(None))
        .order_by(_H.number, _T.seq)
    )
    if seal_of(connection.dialect) is None:  # else each is looked at
        query = query.where(_T.body.contains(said, autoescape=True))
    found: dict[str, list[int]] = defaultdict(list)
    for thread_id, seq, body in connection.execute(query):
        if _is_of_user(body, user_id, said):
            found[thread_id].append(seq)
    yield from found.items()


def _is_of_user(body: str, user_id: str, said: str) -> bool:
    try:
        facts = load_json(body)
    except ValueError:  # it cannot be decoded
        return said in body
    return isinstance(facts, dict) and facts.get("user_id") == user_id
