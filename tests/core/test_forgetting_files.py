"""Forgetting, to the last byte in the files."""

from __future__ import annotations

import pytest
from core.forgotten_files import (
    CONTENTS,
    EMBEDDER,
    SAID,
    SECONDS,
    SENTINEL,
    files_of,
    fill,
    opened,
    texts_in,
    vectors_in,
)
from sqlalchemy import select

from hiermem_core.storage.tables import participants, searchable


@pytest.fixture
def location(tmp_path):
    return tmp_path / "memory"


@pytest.mark.parametrize(
    "backend", ["in_memory", "sqlite", "chroma", "hybrid"], ids=lambda name: name
)
def test_a50_no_byte_of_what_is_forgotten_is_left_in_any_file(location, backend):
    with opened(location, backend=backend) as hiermem:
        tenant = fill(hiermem)
        texts, vectors = texts_in(location, SENTINEL), vectors_in(location)

        receipt = tenant.forget(everything=True)
        at_once = texts_in(location, SENTINEL), vectors_in(location)

    assert texts
    if backend != "in_memory":
        assert any(name.startswith("memory.db") for name in vectors)
    assert any(name.startswith("chroma/") for name in vectors) == (backend in {"chroma", "hybrid"})
    assert receipt.complete
    assert receipt.vacuumed
    assert at_once == ([], [])
    assert (texts_in(location, SENTINEL), vectors_in(location)) == ([], [])


def test_a50_no_byte_of_a_user_is_left_and_everything_else_is_found(location):
    with opened(location, exact_limit=0) as hiermem:
        tenant = fill(hiermem)

        receipt = tenant.forget(user_id="bob")
        left = tenant.memory.search_semantic("ordinary note", 50)
        index = tenant.memory.stats().engines["semantic"]

    assert receipt.complete
    counts = {name: count for name, count in receipt.counts.items() if count}
    assert counts == {"entries": 5, "turns": 2, "notes": 1, "vectors": 7}
    assert (texts_in(location, SENTINEL), vectors_in(location)) == ([], [])
    assert {hit.user_id for hit in left} == {"eve"}
    assert len(left) == 10
    assert index.startswith("chroma")


@pytest.mark.parametrize("selector", [{"user_id": "bob"}, {"everything": True}], ids=str)
@pytest.mark.parametrize("backend", ["in_memory", "sqlite"])
def test_a50_no_byte_of_patterns_and_sessions_is_left(location, backend, selector):
    with opened(location, backend=backend) as hiermem:
        tenant = hiermem.tenant("acme")
        tenant.patterns.learn(SENTINEL, {SENTINEL: [SENTINEL]}, user_id="bob")
        tenant.patterns.learn(SENTINEL, {SENTINEL: "changed"}, text=SENTINEL, user_id="bob")
        session = tenant.session(f"run {SENTINEL}")
        session.start({"task": SENTINEL}, user_id="bob")
        session.log(SENTINEL, state=[SENTINEL], next_state={SENTINEL: 1}, id=SENTINEL)
        before = texts_in(location, SENTINEL)

        receipt = tenant.forget(**selector)
        after = texts_in(location, SENTINEL)

    assert before
    assert receipt.complete
    counts = {name: receipt.counts[name] for name in ("patterns", "sessions", "steps")}
    assert counts == {"patterns": 1, "sessions": 1, "steps": 1}
    assert after == texts_in(location, SENTINEL) == []


@pytest.mark.parametrize("selector", ["ids", "namespace"])
def test_a50_no_byte_of_entries_is_left(location, selector):
    with opened(location, backend="sqlite") as hiermem:
        tenant = hiermem.tenant("acme")
        names = [tenant.remember(content, namespace="private/a") for content in CONTENTS]
        tenant.remember("ordinary note")
        before = texts_in(location, SENTINEL)

        receipt = tenant.forget(
            **{"ids": {"ids": names}, "namespace": {"namespace": "private"}}[selector]
        )

    assert before
    assert receipt.complete
    assert (texts_in(location, SENTINEL), vectors_in(location, CONTENTS)) == ([], [])
    assert texts_in(location, "ordinary note") == ["memory.db"]


def test_a50_no_byte_of_a_thread_is_left(location):
    with opened(location, backend="sqlite") as hiermem:
        tenant = fill(hiermem)
        tenant.forget(namespace="private")
        before = texts_in(location, SENTINEL)

        receipt = tenant.forget(thread_id="t1")

    assert before
    assert receipt.complete
    assert texts_in(location, SENTINEL) == []


def test_what_was_deleted_or_replaced_before_is_erased_too(location):
    with opened(location, backend="sqlite") as hiermem:
        tenant = hiermem.tenant("acme")
        entry_id = tenant.remember(CONTENTS[0])
        other = tenant.remember(CONTENTS[1], key="k")
        tenant.memory.update(other, content="changed")
        tenant.memory.delete(entry_id)
        before = texts_in(location, SENTINEL)

        receipt = tenant.forget(ids=[entry_id])

    assert before
    assert receipt.complete
    assert (texts_in(location, SENTINEL), vectors_in(location)) == ([], [])


def test_the_words_of_many_changes_leave_the_keyword_index(location):
    words = [f"q{number * 7919:08x}z" for number in range(900)]
    with opened(location, backend="sqlite", dedup="off") as hiermem:
        memory = hiermem.tenant("acme").memory
        for start_at in range(0, 900, 90):
            some = words[start_at : start_at + 90]
            ids = memory.bulk_insert(some).ids
            memory.bulk_delete(ids[:30])
            memory.bulk_update([(name, {"content": "changed"}) for name in ids[30:60]])
            memory.forget(ids=ids[60:61])
        memory.forget(ids=["none"])
        gone = [word for place, word in enumerate(words) if place % 90 <= 60]
        kept = [word for place, word in enumerate(words) if place % 90 > 60]

        assert texts_in(location, *gone) == []
        assert all(len(memory.search(word, mode="keyword")) == 1 for word in kept)
        assert texts_in(location, kept[0]) == ["memory.db"]


def test_a_turn_is_embedded_anew_when_the_turn_before_it_is_forgotten(location):
    with opened(location, backend="sqlite") as hiermem:
        tenant = hiermem.tenant("acme")
        thread = tenant.thread("t1")
        thread.append([{"role": "user", "content": SAID, "user_id": "bob"}])
        thread.append([{"role": "assistant", "content": "Why do you ask?"}])
        assert tenant.memory.wait_for_index(SECONDS)
        told = [text for call in EMBEDDER.calls for text in call if "Why do you ask" in text]

        tenant.forget(user_id="bob")
        pending = tenant.memory.stats().index.pending
        tenant.memory.wait_for_index(SECONDS)

    again = [text for call in EMBEDDER.calls for text in call if "Why do you ask" in text]
    assert SENTINEL in told[-1]
    assert pending <= 1
    assert SENTINEL not in again[-1]
    assert vectors_in(location, [told[-1]]) == []
    assert vectors_in(location, [again[-1]]) == ["memory.db"]


def test_the_name_of_a_forgotten_user_takes_part_in_no_thread(location):
    with opened(location, backend="sqlite") as hiermem:
        fill(hiermem).forget(user_id="bob")
        with hiermem._services.database.read() as connection:
            authors = connection.execute(select(participants.c.author)).scalars().all()
            rows = connection.execute(select(searchable.c.author)).scalars().all()

    assert authors == ["Eve"]
    assert set(rows) == {None, "Eve"}


def test_a_turn_that_cannot_be_decoded_is_forgotten_with_the_user_it_names(location):
    with opened(location, backend="sqlite") as hiermem:
        tenant = hiermem.tenant("acme")
        thread = tenant.thread("t1")
        thread.append([{"role": "user", "content": "mine", "user_id": 'b"ö'}])
        thread.append([{"role": "user", "content": "theirs", "metadata": {"user_id": 'b"ö'}}])
        thread.append([{"role": "user", "content": "named", "user_id": "eve"}])
        with hiermem._services.database.write() as connection:
            connection.exec_driver_sql("UPDATE turns SET body = body || '{' WHERE seq IN (1, 3)")

        receipt = tenant.forget(user_id='b"ö')

        assert receipt.counts["turns"] == 1
        assert [turn.seq for turn in thread.turns()] == [2, 3]


def test_a_memory_without_files_forgets(tmp_path):
    with opened(":memory:", backend="sqlite") as hiermem:
        tenant = fill(hiermem)

        receipt = tenant.forget(everything=True)

        assert receipt.complete
        assert len(tenant.memory.search()) == 0
    assert files_of(tmp_path) == []
