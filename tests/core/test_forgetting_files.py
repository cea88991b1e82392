"""Forgetting, to the last byte in the files, whatever fails on the way."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
from core.children import run, run_until_killed, start
from sqlalchemy import select

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.backends.ownership import LOCK_NAME, Ownership
from hiermem_core.errors import BackendError
from hiermem_core.models.notes import Fact, Mark, ThreadState
from hiermem_core.storage.tables import metadata, participants, searchable
from hiermem_core.testing import FakeClock, FakeEmbedder, FaultPlan, InjectedFault

SENTINEL = "zqxjkv"
CONTENTS = [f"note {SENTINEL} number {number}" for number in range(6)]
SAID = f"Did you say {SENTINEL} yesterday?"
EMBEDDER = FakeEmbedder(32)
SECONDS = 60

OPEN = """
from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import FakeEmbedder, FaultPlan
def opened(location, **options):
    given = {"backend": "hybrid", "index_threshold": 0} | options
    return HierMem.open(
        location, counter=ApproximateCounter(), embedder=FakeEmbedder(32), **given
    )
"""

FORGET_AND_DIE = (
    OPEN
    + """
tenant = opened(sys.argv[1]).tenant("acme")
with FaultPlan(sys.argv[2], action="kill", count=int(sys.argv[3])):
    tenant.forget(user_id="bob")
"""
)

LOCK_THE_INDEX = """
from pathlib import Path
from hiermem_core.backends.ownership import Ownership
ownership = Ownership(Path(sys.argv[1]))
assert ownership.try_own()
print("owned", flush=True)
sys.stdin.readline()
"""

HOLD_A_SNAPSHOT = """
import sqlite3
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM memory_entries").fetchall()
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def location(tmp_path):
    return tmp_path / "memory"


def opened(location, **options):
    given = {"backend": "hybrid", "index_threshold": 0, "busy_seconds": 0.2, "clock": FakeClock()}
    return HierMem.open(
        location, counter=ApproximateCounter(), embedder=EMBEDDER, **given | options
    )


def fill(hiermem, *, user="bob", sentinel=SENTINEL):
    """Store a sentinel in everything that is kept of a user, and other things beside it."""
    tenant = hiermem.tenant("acme")
    for number in range(10):
        tenant.remember(f"ordinary note {number}", user_id="eve", namespace="n")
    for number, content in enumerate(CONTENTS):
        tenant.remember(
            content,
            key=f"{sentinel} {number}",
            tags=[sentinel, "common"],
            metadata={f"field {sentinel}": [sentinel]},
            namespace=f"private/{sentinel}",
            user_id=user,
        )
    first = tenant.memory.search(namespace="private", key=f"{sentinel} 0")[0].id
    tenant.memory.update(first, content=f"changed {sentinel}")
    tenant.memory.delete(namespace=f"private/{sentinel}", key=f"{sentinel} 1")
    thread = tenant.thread("t1")
    metadata_of_turn = {"about": sentinel}
    said = {"role": "user", "content": SAID, "user_id": user, "name": f"Bob {sentinel}"}
    thread.append([said | {"id": f"a {sentinel}", "metadata": metadata_of_turn}])
    thread.append([{"role": "assistant", "content": "Why do you ask?"}])
    thread.append([said | {"id": f"b {sentinel}"}])
    thread.append([{"role": "user", "content": "Never mind.", "name": "Eve"}], removing=[])
    thread.append([], removing=[f"b {sentinel}"])
    facts = (Fact(f"The fact is {sentinel}.", 1, (1,)),)
    state = ThreadState(f"They spoke of {sentinel}.", facts, 2)
    assert hiermem._services.notes.commit("acme", "t1", state, onto=Mark())
    assert tenant.memory.wait_for_index(SECONDS)
    return tenant


def files_of(location):
    return [path for path in Path(location).rglob("*") if path.is_file()]


def texts_in(location, *texts):
    """Return the files that hold one of these texts, in UTF-8 or UTF-16, in any letter case."""
    wanted = [text.encode(code) for text in texts for code in ("utf-8", "utf-16-le", "utf-16-be")]
    return [
        path.relative_to(location).as_posix()
        for path in files_of(location)
        if any(text in path.read_bytes().lower() for text in wanted)
    ]


def vectors_in(location, texts=(*CONTENTS, f"changed {SENTINEL}")):
    """Return the files that hold three numbers in a row of a vector of one of these texts."""
    vectors = np.asarray(EMBEDDER.embed(list(texts)), dtype="<f4")
    parts = {row[place : place + 3].tobytes() for row in vectors for place in range(30)}
    return [
        path.relative_to(location).as_posix()
        for path in files_of(location)
        if any(part in path.read_bytes() for part in parts)
    ]


def marks_in(hiermem):
    with hiermem._services.database.read() as connection:
        keys = connection.execute(select(metadata.c.key)).scalars()
        return [key for key in keys if key.startswith("forget:")]


@contextmanager
def child_that(script, *arguments):
    """Run a child that says when it is ready, and ends with the block."""
    child = start(script, *arguments)
    try:
        assert child.stdout.readline().strip()
        yield
    finally:
        child.communicate("\n", timeout=SECONDS)


@pytest.mark.parametrize(
    "backend", ["in_memory", "sqlite", "chroma", "hybrid"], ids=lambda name: name
)
def test_a50_no_byte_of_what_is_forgotten_is_left_in_any_file(location, backend):
    if backend in {"chroma", "hybrid"}:
        pytest.importorskip("chromadb")
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
    pytest.importorskip("chromadb")
    with opened(location, exact_limit=0) as hiermem:
        tenant = fill(hiermem)

        receipt = tenant.forget(user_id="bob")
        left = tenant.memory.search_semantic("ordinary note", 50)
        index = tenant.memory.stats().engines["semantic"]

    assert receipt.complete
    assert receipt.counts == {"entries": 5, "turns": 2, "threads": 0, "notes": 1, "vectors": 7}
    assert (texts_in(location, SENTINEL), vectors_in(location)) == ([], [])
    assert {hit.user_id for hit in left} == {"eve"}
    assert len(left) == 10
    assert index.startswith("chroma")


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


def assert_it_is_not_read(tenant):
    for mode in ("keyword", "semantic", "hybrid"):
        found = tenant.memory.search(f"note {SENTINEL}", mode=mode, limit=50)
        assert all(hit.user_id == "eve" for hit in found), mode
    assert len(tenant.memory.search(user_id="bob")) == 0
    assert all(SENTINEL not in hit.content for hit in tenant.recall(f"note {SENTINEL}"))


@contextmanager
def locked_by_another_process(location):
    with child_that(LOCK_THE_INDEX, location / "chroma"):
        yield


@contextmanager
def replaced_by_a_file(location):
    folder, aside = location / "chroma", location.with_name("aside")
    folder.rename(aside)
    folder.write_bytes(b"no folder")
    yield
    folder.unlink()
    aside.rename(folder)


@contextmanager
def broken_while_built(location):
    with FaultPlan("index.before_swap"), pytest.raises(InjectedFault):
        with opened(location) as hiermem:
            hiermem.tenant("acme").forget(user_id="bob")
    yield


@pytest.mark.parametrize("trouble", [locked_by_another_process, replaced_by_a_file])
def test_a53_a_failing_index_leaves_an_incomplete_receipt_and_a_repeat_completes(
    location, trouble, caplog
):
    pytest.importorskip("chromadb")
    with opened(location) as hiermem:
        fill(hiermem)
    with trouble(location), opened(location, exact_limit=0) as hiermem:
        tenant = hiermem.tenant("acme")

        receipt = tenant.forget(user_id="bob")
        assert_it_is_not_read(tenant)
        again = tenant.forget(user_id="bob")

    assert (receipt.failed, receipt.complete) == ((("index", "IndexUnavailableError"),), False)
    assert receipt.remaining == receipt.counts["vectors"] == 7
    assert receipt.vacuumed
    assert (again.counts["entries"], again.complete) == (0, False)
    assert again.remaining > 0
    assert texts_in(location, SENTINEL) == []
    assert SENTINEL not in caplog.text
    with opened(location, index_threshold=None) as hiermem:
        tenant = hiermem.tenant("acme")
        last = tenant.forget(user_id="bob")
        marks = marks_in(hiermem)
        assert_it_is_not_read(tenant)

    assert last.complete
    assert marks == []
    assert (texts_in(location, SENTINEL), vectors_in(location)) == ([], [])


def test_opening_again_completes_what_a_failing_index_left(location):
    pytest.importorskip("chromadb")
    with opened(location) as hiermem:
        fill(hiermem)
    with locked_by_another_process(location):
        with opened(location) as hiermem:
            hiermem.tenant("acme").forget(user_id="bob")
            marks = marks_in(hiermem)
        left = vectors_in(location)

    with opened(location) as hiermem:
        done = marks_in(hiermem)

    assert len(marks) == 1
    assert any(name.startswith("chroma/") for name in left)
    assert (done, vectors_in(location)) == ([], [])


def test_an_index_that_was_away_is_built_anew_when_it_comes_back(location):
    pytest.importorskip("chromadb")
    with opened(location) as hiermem:
        fill(hiermem)
    folder, aside = location / "chroma", location.with_name("aside")
    folder.rename(aside)
    with opened(location, backend="sqlite") as hiermem:
        receipt = hiermem.tenant("acme").forget(user_id="bob")
    assert receipt.complete
    if folder.exists():
        (folder / LOCK_NAME).unlink(missing_ok=True)
        folder.rmdir()
    aside.rename(folder)

    with opened(location, exact_limit=0) as hiermem:
        tenant = hiermem.tenant("acme")
        tenant.remember("one more", user_id="eve")
        assert tenant.memory.wait_for_index(SECONDS)
        found = len(tenant.memory.search_semantic("ordinary note", 50))

    assert found == 11
    assert vectors_in(location) == []


def test_a_process_without_an_index_removes_the_files_of_one_that_was_used_before(location):
    pytest.importorskip("chromadb")
    with opened(location) as hiermem:
        fill(hiermem)
    with opened(location, backend="sqlite") as hiermem:
        receipt = hiermem.tenant("acme").forget(user_id="bob")
    at_once = vectors_in(location)
    with opened(location, exact_limit=0) as hiermem:
        tenant = hiermem.tenant("acme")
        tenant.remember("one more", user_id="eve")
        assert tenant.memory.wait_for_index(SECONDS)
        found = tenant.memory.search_semantic("ordinary note", 50)

    assert receipt.complete
    assert at_once == []
    assert len(found) == 11


def test_a_process_without_an_index_leaves_one_that_is_in_use_alone(location):
    pytest.importorskip("chromadb")
    with opened(location) as owner:
        tenant = fill(owner)
        with opened(location, backend="sqlite") as other:
            receipt = other.tenant("acme").forget(user_id="bob")
        assert_it_is_not_read(tenant)
        last = tenant.forget(user_id="bob")

    assert receipt.failed == (("index", "IndexUnavailableError"),)
    assert not receipt.complete
    assert last.complete
    assert vectors_in(location) == []


def test_a_reader_of_an_old_snapshot_delays_the_cleaning_and_nothing_else(location):
    with opened(location, backend="sqlite") as hiermem:
        tenant = fill(hiermem)
        with child_that(HOLD_A_SNAPSHOT, location / "memory.db"):
            receipt = tenant.forget(user_id="bob")
            tenant.remember("others write meanwhile")
            left = texts_in(location, SENTINEL)
            assert len(tenant.memory.search(user_id="bob")) == 0
        again = tenant.forget(user_id="bob")

    assert receipt.failed == (("files", "BackendUnavailableError"),)
    assert (receipt.vacuumed, receipt.complete) == (False, False)
    assert receipt.remaining == sum(receipt.counts.values())
    assert left
    assert again.complete
    assert texts_in(location, SENTINEL) == []


def test_opening_does_not_wait_long_for_a_reader_of_an_old_snapshot(location):
    with opened(location, backend="sqlite") as hiermem:
        tenant = fill(hiermem)
        with child_that(HOLD_A_SNAPSHOT, location / "memory.db"):
            tenant.forget(user_id="bob")
            with opened(location, backend="sqlite", busy_seconds=30.0) as another:
                still = marks_in(another)
        with opened(location, backend="sqlite") as another:
            done = marks_in(another)

    assert len(still) == 1
    assert done == []
    assert texts_in(location, SENTINEL) == []


def test_a_database_that_cannot_be_written_forgets_nothing(location):
    with opened(location, backend="sqlite") as hiermem:
        tenant = fill(hiermem)
        with closing(sqlite3.connect(location / "memory.db", isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            with pytest.raises(BackendError):
                tenant.forget(user_id="bob")
        assert len(tenant.memory.search(user_id="bob")) == 5
        assert marks_in(hiermem) == []


def test_a_forget_that_fails_before_its_commit_forgets_nothing(location):
    with opened(location, backend="in_memory") as hiermem:
        tenant = fill(hiermem)
        with FaultPlan("rows.before_commit"), pytest.raises(InjectedFault):
            tenant.forget(user_id="bob")

        assert len(tenant.memory.search(user_id="bob")) == 5
        assert len(tenant.thread("t1").turns()) == 3
        assert marks_in(hiermem) == []


KILLS = [
    ("rows.after_commit", 1),
    ("rows.before_commit", 2),
    ("rows.after_commit", 2),
    ("index.before_swap", 1),
    ("index.after_swap", 1),
    ("rows.before_commit", 3),
    ("rows.after_commit", 3),
    ("rows.after_commit", 4),
]


@pytest.mark.parametrize(("point", "count"), KILLS)
def test_a_killed_forget_is_completed_by_the_next_opening(location, point, count):
    pytest.importorskip("chromadb")
    with opened(location) as hiermem:
        fill(hiermem)
    run_until_killed(FORGET_AND_DIE, location, point, count)
    left = texts_in(location, SENTINEL) + vectors_in(location)

    with opened(location) as hiermem:
        tenant = hiermem.tenant("acme")
        marks = marks_in(hiermem)
        assert_it_is_not_read(tenant)
        turns = [turn.content for turn in tenant.thread("t1").turns()]
        ordinary = len(tenant.memory.search(user_id="eve", limit=50))

    assert left or count > 2
    assert marks == []
    assert (texts_in(location, SENTINEL), vectors_in(location)) == ([], [])
    assert turns == ["Why do you ask?", "Never mind."]
    assert ordinary == 10


def test_a_forget_killed_before_its_commit_has_forgotten_nothing(location):
    with opened(location, backend="sqlite") as hiermem:
        fill(hiermem)
    run_until_killed(FORGET_AND_DIE, location, "rows.before_commit", 1)

    with opened(location, backend="sqlite") as hiermem:
        assert len(hiermem.tenant("acme").memory.search(user_id="bob")) == 5
        assert marks_in(hiermem) == []


def test_two_processes_forget_and_write_at_once(location):
    script = (
        OPEN
        + """
with opened(sys.argv[1], backend="sqlite") as hiermem:
    tenant = hiermem.tenant("acme")
    print("ready", flush=True)
    for number in range(10):
        tenant.remember(f"kept {number} in the child", user_id="eve")
        tenant.remember(f"note zqxjkv {number}", user_id=f"child {number}")
        tenant.forget(user_id=f"child {number}")
"""
    )
    with opened(location, backend="sqlite", busy_seconds=30.0) as hiermem:
        tenant = hiermem.tenant("acme")
        child = start(script, location)
        assert child.stdout.readline().strip() == "ready"
        for number in range(10):
            tenant.remember(f"kept {number} in the parent", user_id="eve")
            tenant.remember(f"note {SENTINEL} {number}", user_id=f"parent {number}")
            tenant.forget(user_id=f"parent {number}")
        _, complaints = child.communicate(timeout=SECONDS)
        last = tenant.forget(ids=["none"])
        found = tenant.memory.search(limit=100)
        marks = marks_in(hiermem)

    assert child.returncode == 0, complaints
    assert last.complete
    assert marks == []
    assert {hit.user_id for hit in found} == {"eve"}
    assert len(found) == 20
    assert texts_in(location, SENTINEL) == []


def test_forgetting_leaves_the_index_and_its_folder_to_their_owner(location):
    pytest.importorskip("chromadb")
    with opened(location) as hiermem:
        fill(hiermem).forget(user_id="bob")
        second = Ownership(location / "chroma")
        is_owned = second.try_own()
    again = run(
        OPEN + 'print(len(opened(sys.argv[1]).tenant("acme").memory.search(limit=50)))', location
    )

    assert not is_owned
    assert int(again) == 10


def test_a_memory_without_files_forgets(tmp_path):
    with opened(":memory:", backend="sqlite") as hiermem:
        tenant = fill(hiermem)

        receipt = tenant.forget(everything=True)

        assert receipt.complete
        assert len(tenant.memory.search()) == 0
    assert files_of(tmp_path) == []
