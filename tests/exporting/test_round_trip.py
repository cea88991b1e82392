"""An export, imported and exported again, is the same."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from exporting.conftest import BACKENDS, body_of, fill, opened
from hypothesis import given, settings
from hypothesis import strategies as st

from hiermem_core import Fact, Origin, ThreadState, TurnDraft
from hiermem_core.testing import FakeEmbedder
from hiermem_core.testing.contracts.samples import RICH_TURNS
from hiermem_core.testing.contracts.transcripts import texts, transcripts

NAMES = st.sampled_from(("a", "größe", "日本", "x/y", "אב", " ", "👍🏽", "\u202e", "a'b\"c", "%_"))
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | texts()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis adds it
VECTORS = st.lists(
    st.floats(-1, 1, width=32).filter(lambda x: abs(x) > 1e-3), min_size=32, max_size=32
)


@st.composite
def entries(draw):
    """Give the fields of an entry, of all kinds."""
    content = draw(texts().filter(lambda text: not text.isspace()))
    passages = draw(st.none() | st.lists(st.just(content), max_size=2))
    given = {
        "namespace": draw(st.sampled_from(("default", "a", "a/b", "größe/日本"))),
        "type": draw(st.sampled_from(("episodic", "semantic", "procedural", "working"))),
        "tags": draw(st.lists(NAMES, max_size=3)),
        "metadata": draw(st.dictionaries(NAMES, VALUES, max_size=3)),
        "passages": passages,
        "created_at": draw(st.none() | MOMENTS),
        "ttl": draw(st.none() | st.floats(1, 3e9)),
        "source": draw(st.sampled_from(("user", "assistant", "tool", "import", "system"))),
        "trust": draw(st.none() | st.floats(0, 1)),
        "derived_from": draw(st.lists(NAMES, max_size=2)),
        "user_id": draw(st.none() | NAMES),
        "id": draw(st.none() | NAMES),
    }
    if given["id"] is None:
        given["key"] = draw(st.none() | NAMES)
    if passages is None:
        given["embedding"] = draw(st.none() | VECTORS)
    return {"content": content} | given


@st.composite
def tenants(draw):
    """Give what a tenant has: entries, and threads with archived turns, edits and notes."""
    threads = {}
    for name in draw(st.lists(NAMES, max_size=2, unique=True)):
        threads[name] = (draw(transcripts()), draw(transcripts()), draw(st.none() | texts()))
    return draw(st.lists(entries(), max_size=4)), threads, draw(runs())


@st.composite
def runs(draw):
    """Give patterns with the outcomes of their uses, and sessions with steps."""
    data = st.dictionaries(NAMES, VALUES, max_size=3)
    users = st.none() | NAMES
    pattern = st.tuples(data, st.none() | st.floats(0, 1), users, st.lists(st.booleans()))
    step = st.tuples(NAMES, VALUES, st.none() | st.floats(-9, 9), VALUES)
    status = st.none() | st.sampled_from(("paused", "completed", "failed", "expired"))
    session = st.tuples(data, users, st.lists(step, max_size=3), status)
    patterns = draw(st.dictionaries(NAMES, pattern, max_size=2))
    return patterns, draw(st.dictionaries(NAMES, session, max_size=2))


def store(tenant, content):
    given, threads, (patterns, sessions) = content
    for fields in given:
        tenant.remember(fields)
    for name, (old, new, summary) in threads.items():
        thread = tenant.thread(name)
        thread.append(old)
        thread.replace(new)
        thread.append([TurnDraft(role="assistant", content="so", origin=DUMP, metadata={"a": 1})])
        if summary is not None:
            newest = thread.info().last_seq
            fact = Fact(summary, newest, ((newest,),))
            thread.learn(lambda state, turns, n=newest, f=fact: ThreadState("s", (f,), n))
    for name, (data, confidence, user, outcomes) in patterns.items():
        tenant.patterns.learn(name, data, confidence=confidence, user_id=user)
        for success in outcomes:
            tenant.patterns.reinforce(name, success=success)
    for name, (data, user, steps, status) in sessions.items():
        session = tenant.session(name)
        session.start(data, user_id=user)
        for action, state, reward, next_state in steps:
            session.log(f"do {action}", state=state, reward=reward, next_state=next_state)
        if status is not None:
            session.end(status)


def everything(tenant):
    """Return all that a tenant has, as it is read."""
    threads = [tenant.thread(info.thread_id) for info in tenant.threads()]
    turns = [
        [thread.turns(status=status) for status in ("active", "archived")] for thread in threads
    ]
    notes = [(thread.info(), thread.state()) for thread in threads]
    sessions = tenant.sessions()
    steps = [tenant.session(session.id).steps() for session in sessions]
    entries = list(tenant.memory.search(limit=1000))
    return entries, turns, notes, tenant.patterns.list(), sessions, steps


DUMP = Origin("langchain", "AIMessage", '{"n": 1.0, "text": "é"}')


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=12)
@given(content=tenants(), with_vectors=st.booleans())
def test_i53_what_is_exported_imported_and_exported_again_has_an_equal_body(
    backend, content, with_vectors
):
    with (
        TemporaryDirectory() as folder,
        opened(backend=backend) as one,
        opened(backend=backend) as other,
    ):
        first, second = Path(folder, "one.jsonl"), Path(folder, "two.jsonl")
        store(one.tenant("alice"), content)
        one.tenant("alice").memory.wait_for_index()
        told = one.tenant("alice").export(first, vectors=with_vectors)

        report = other.tenant("bob").import_export(first)
        again = other.tenant("bob").import_export(first)
        other.tenant("bob").export(second, vectors=with_vectors)

        assert report.failed == report.skipped == 0, str(report)
        assert report.found == told.entries + told.turns + told.sessions + told.steps
        assert sum(report.counts.get("pattern", {}).values()) == told.patterns
        assert body_of(first) == body_of(second)
        assert everything(one.tenant("alice")) == everything(other.tenant("bob"))
        assert again.reasons.get("unchanged", 0) == again.found == report.found


@pytest.mark.parametrize("backend", BACKENDS)
def test_turns_of_every_shape_come_back_equal(backend, tmp_path):
    with opened(backend=backend) as one, opened(backend=backend) as other:
        thread = one.tenant("alice").thread("all")
        stored = thread.append(RICH_TURNS)
        one.tenant("alice").export(tmp_path / "all.jsonl")

        other.tenant("alice").import_export(tmp_path / "all.jsonl")

        assert other.tenant("alice").thread("all").turns() == stored
        assert other.tenant("alice").thread("all").info() == thread.info()


def test_entries_come_back_with_times_versions_and_expiry(alice, export):
    with opened() as other:
        other.tenant("bob").import_export(export)

        found = other.tenant("bob").memory.search(limit=10)
        assert list(found) == list(alice.memory.search(limit=10))
        assert (
            other.tenant("bob").memory.retrieve(namespace="profile/food", key="drink").ttl == 3600
        )


def test_an_entry_said_again_after_the_import_is_counted_there(export):
    with opened() as other:
        bob = other.tenant("bob")
        bob.import_export(export)

        bob.remember("said twice")

        assert bob.memory.stats().entries == 3


def test_threads_come_back_with_archived_turns_and_what_was_deleted(export, alice):
    with opened() as other:
        bob = other.tenant("bob")
        bob.import_export(export)

        assert [info.thread_id for info in bob.threads()] == ["chat 1", "empty"]
        for name in ("chat 1", "empty"):
            assert bob.thread(name).info() == alice.thread(name).info()
            for status in ("active", "archived"):
                turns = bob.thread(name).turns(status=status)
                assert turns == alice.thread(name).turns(status=status)
        placed = bob.thread("empty").append([{"role": "user", "content": "next"}])
        assert placed[0].seq == 2


def test_notes_come_back_and_nothing_new_is_due(tmp_path):
    with opened() as one, opened() as other:
        thread = one.tenant("alice").thread("t")
        thread.append([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}])
        state = ThreadState("they met", (Fact("tea", 2, ((1, 2),)),), 2)
        thread.learn(lambda before, turns: state)
        one.tenant("alice").export(tmp_path / "t.jsonl")

        other.tenant("bob").import_export(tmp_path / "t.jsonl")

        assert other.tenant("bob").thread("t").state() == state


def test_what_is_imported_is_found_by_words_and_by_meaning(export):
    with opened() as other:
        bob = other.tenant("bob")
        bob.import_export(export)
        bob.memory.wait_for_index()

        assert bob.memory.search("tea", mode="keyword")[0].id == "e1"
        assert bob.memory.search_semantic("likes tea", 1)[0].id == "e1"
        assert bob.recall("regnade")[0].content == "Det regnade"
        assert other.doctor().is_sound


def test_vectors_are_taken_over_where_the_embedder_is_the_same(alice, tmp_path):
    alice.memory.wait_for_index()
    report = alice.export(tmp_path / "v.jsonl", vectors=True)
    embedder = FakeEmbedder()

    with opened(embedder=embedder) as other:
        other.tenant("bob").remember("first")
        calls = embedder.calls
        other.tenant("bob").import_export(tmp_path / "v.jsonl")
        other.tenant("bob").memory.wait_for_index()

        assert embedder.calls == calls
        assert other.tenant("bob").memory.stats().index.indexed >= report.vectors
        found = other.tenant("bob").memory.retrieve("e1", include_embedding=True)
        assert found == alice.memory.retrieve("e1", include_embedding=True)


def test_vectors_of_another_embedder_are_made_anew(alice, tmp_path):
    alice.memory.wait_for_index()
    alice.export(tmp_path / "v.jsonl", vectors=True)

    with opened(embedder=FakeEmbedder(48)) as other:
        other.tenant("bob").import_export(tmp_path / "v.jsonl")
        other.tenant("bob").memory.wait_for_index()

        found = other.tenant("bob").memory.retrieve("e1", include_embedding=True)
        assert len(found.embedding) == 48


def test_a_location_without_embedder_keeps_the_vectors_and_knows_whose_they_are(alice, tmp_path):
    alice.memory.wait_for_index()
    alice.export(tmp_path / "v.jsonl", vectors=True)

    with opened(tmp_path / "b", embedder=None, local_embedder=False) as other:
        other.tenant("bob").import_export(tmp_path / "v.jsonl")
        other.tenant("bob").export(tmp_path / "w.jsonl", vectors=True)
    with opened(tmp_path / "b") as other:
        assert other.tenant("bob").memory.search_semantic("likes tea", 1)[0].id == "e1"

    assert body_of(tmp_path / "v.jsonl") == body_of(tmp_path / "w.jsonl")


def test_what_has_expired_is_in_no_export_and_comes_back_from_none(tmp_path):
    with opened() as one, opened() as other:
        alice = one.tenant("alice")
        alice.remember("short", ttl=10)
        alice.export(tmp_path / "one.jsonl")
        one._services.clock.advance(11)
        other._services.clock.advance(11)

        assert alice.export(tmp_path / "two.jsonl").entries == 0
        report = other.tenant("bob").import_export(tmp_path / "one.jsonl")
        assert (report.status, report.exit_code, report.reasons) == ("empty", 3, {"expired": 1})


def test_an_export_is_of_one_moment_and_one_tenant(hiermem, tmp_path):
    fill(hiermem.tenant("alice"))
    hiermem.tenant("bob").remember("a secret of bob")

    hiermem.tenant("alice").export(tmp_path / "a.jsonl", progress=lambda n: None)

    assert "bob" not in (tmp_path / "a.jsonl").read_text()


def test_the_lines_can_be_read_by_anyone(export):
    lines = [json.loads(line) for line in export.read_text().splitlines()]

    assert [line["kind"] for line in lines] == [
        *("header", "entry", "entry", "entry", "thread", "turn", "turn", "turn", "thread", "end")
    ]
    assert lines[0]["tenant"] == "alice"
    tea = next(line for line in lines if line.get("id") == "e1")
    assert tea["expires_at"] == "2026-01-01T01:00:00.000Z"
    assert [line.get("status") for line in lines if line["kind"] == "turn"] == [
        "archived",
        None,
        None,
    ]


def test_turns_that_are_damaged_are_left_out_and_told(alice, hiermem, tmp_path):
    with hiermem._services.database.write() as connection:
        connection.exec_driver_sql("UPDATE turns SET body = '{broken' WHERE id = 'a1'")

    report = alice.export(tmp_path / "a.jsonl")

    assert (report.unreadable, report.exit_code) == ((("chat 1", 3),), 1)
    assert "turn 3 is damaged; left out" in str(report)


def test_more_than_a_page_of_everything(tmp_path):
    with opened() as one, opened() as other:
        alice = one.tenant("alice")
        alice.memory.bulk_insert([f"entry {n}" for n in range(1203)])
        thread = alice.thread("long")
        thread.append([{"role": "user", "content": f"old {n}"} for n in range(601)])
        thread.replace([{"role": "user", "content": f"new {n}"} for n in range(1203)])
        alice.export(tmp_path / "a.jsonl")

        report = other.tenant("alice").import_export(tmp_path / "a.jsonl", batch_size=100)
        other.tenant("alice").export(tmp_path / "b.jsonl")

        assert report.imported == 1203 + 601 + 1203
        assert body_of(tmp_path / "a.jsonl") == body_of(tmp_path / "b.jsonl")
        assert other.tenant("alice").thread("long").info() == thread.info()
        assert other.doctor().is_sound


def test_a_time_to_live_is_not_begun_anew(tmp_path):
    with opened() as one, opened() as other:
        one.tenant("a").remember("an hour", id="e", ttl=3600)
        one.tenant("a").export(tmp_path / "a.jsonl")
        other._services.clock.advance(1800)

        other.tenant("a").import_export(tmp_path / "a.jsonl")

        entry = other.tenant("a").memory.retrieve("e")
        assert entry.expires_at - entry.created_at == timedelta(hours=1)
        other._services.clock.advance(1800)
        assert other.tenant("a").memory.retrieve("e") is None


def test_exports_go_from_backend_to_backend_on_disk(tmp_path):
    bodies = []
    with opened(tmp_path / "first") as one:
        fill(one.tenant("a"))
        one.tenant("a").memory.wait_for_index()
        one.tenant("a").export(tmp_path / "0.jsonl", vectors=True)
    for place, backend in enumerate(BACKENDS):
        with opened(tmp_path / backend, backend=backend) as other:
            other.tenant("a").import_export(tmp_path / f"{place}.jsonl")
            other.tenant("a").memory.wait_for_index()
            other.tenant("a").export(tmp_path / f"{place + 1}.jsonl", vectors=True)
            assert other.tenant("a").memory.retrieve("e1").content == "likes tea"
            bodies.append(body_of(tmp_path / f"{place + 1}.jsonl"))

    assert set(bodies) == {body_of(tmp_path / "0.jsonl")}


def test_an_export_can_go_into_an_open_file(alice, tmp_path):
    with (tmp_path / "a.jsonl").open("wb") as file:
        alice.export(file)

    with opened() as other:
        assert other.tenant("b").import_export(tmp_path / "a.jsonl").status == "complete"
