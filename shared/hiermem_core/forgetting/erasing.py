"""Erasing the chosen rows, in one transaction."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from sqlalchemy import case, func, select

from hiermem_core.backends.restrictions import Restrictions
from hiermem_core.forgetting.derivation import descendants, fallout
from hiermem_core.models.plain import dump_json
from hiermem_core.storage.tables import threads, turns
from hiermem_core.threads import reading
from hiermem_core.threads.notes import erase_notes, stored_notes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from hiermem_core.forgetting.selectors import Selector
    from hiermem_core.protocols import EntryWriter
    from hiermem_core.threads.reading import Head
    from hiermem_core.threads.store import ThreadStore

_T, _H = turns.c, threads.c

_PAGE = 500

STORES = ("entries", "turns", "threads", "notes", "vectors")
"""What a receipt counts."""


def erase_entries(writer: EntryWriter, selector: Selector) -> int:
    """Erase the entries that are chosen, and those derived from nothing else; return how many."""
    if selector.entries is None:
        return 0
    chosen = dict(writer.traces(selector.entries, selector.ids))
    derived = writer.derivations() if chosen else {}
    sources = {name: one.sources for name, one in derived.items()}
    forgotten = set(chosen.values())
    touched = descendants(forgotten, sources)
    asked = {source for name in touched for source in sources[name]}
    existing = set(writer.traces(Restrictions(), asked).values()) if asked else set()
    fallen = fallout(forgotten, sources, existing)
    numbers = {*chosen, *(derived[name].number for name in fallen.gone)}
    writer.remove(sorted(numbers))
    writer.rederive({derived[name].number: left for name, left in fallen.kept.items()})
    return len(numbers)


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
    state, _ = stored_notes(connection, head.number)
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
    is_mine = case(
        (func.json_valid(_T.body) == 1, func.json_extract(_T.body, "$.user_id") == user_id),
        else_=func.instr(_T.body, said) > 0,
    )
    query = (
        select(_H.thread_id, _T.seq)
        .join(turns, _T.thread == _H.number)
        .where(_H.tenant == tenant, _T.body.is_not(None), is_mine)
        .order_by(_H.number, _T.seq)
    )
    found: dict[str, list[int]] = defaultdict(list)
    for thread_id, seq in connection.execute(query):
        found[thread_id].append(seq)
    yield from found.items()
