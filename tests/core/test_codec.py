"""A codec: what is on disk without it, and what opens with it."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest
from core.children import finish, start
from core.memory_backends import CODEC
from sqlalchemy import Text

from hiermem_core import (
    BackendError,
    ConfigurationError,
    EntryDraft,
    FernetCodec,
    HierMem,
    InvalidInputError,
    UnsupportedSearchError,
    move_memories,
    restore_backup,
)
from hiermem_core.storage.tables import schema
from hiermem_core.testing import FakeEmbedder, ScriptedModel
from hiermem_core.testing.contracts.learning_base import reply

WORD = "Zebrafisch"
SAID = f"{WORD}, größer als 象 🦓"
KEY = FernetCodec.generate_key()


def opened(location, codec=CODEC, **options):
    return HierMem.open(location, codec=codec, embedder=FakeEmbedder(), **options)


def use(hiermem):
    """Say the word wherever something is said."""
    alice = hiermem.tenant("alice")
    thread = alice.thread("t1")
    thread.append(
        [
            {"role": "user", "content": SAID, "metadata": {"mood": WORD}},
            {
                "role": "assistant",
                "content": SAID,
                "tool_calls": [{"id": "c1", "name": WORD, "args": {"q": WORD}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": WORD},
            {
                "role": "user",
                "content": "look",
                "parts": [{"type": "media", "kind": "image", "url": f"x:{WORD}", "title": WORD}],
            },
            {"role": "assistant", "content": f"it is a {WORD}"},
        ]
    )
    thread.edit_turn(thread.turns()[0].id, f"{SAID} again")
    thread.save_context()
    alice.memory.store(EntryDraft(content=SAID, type="semantic", passages=(WORD, f"a {WORD}")))
    alice.memory.bulk_insert([f"{SAID} {number}" for number in range(5)])
    alice.patterns.learn("way", {"step": WORD}, text=SAID)
    session = alice.session("run")
    session.start({"goal": WORD})
    session.log(WORD, state={"saw": WORD}, next_state=WORD)
    assert len(alice.recall(SAID)) > 0
    assert hiermem.when_idle(30)


def learned():
    return {
        "chat_model": ScriptedModel([reply(summary=f"{WORD} it is", facts=[f"likes {WORD}"])]),
        "inline_updates": True,
        "update_every_turns": 1,
    }


def contents_of(folder):
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_no_file_of_a_location_holds_a_word_of_what_was_said(tmp_path):
    place = tmp_path / "memory"
    with opened(place, **learned(), index_threshold=0, exact_limit=0, audit=True) as hiermem:
        use(hiermem)
        assert hiermem.tenant("alice").memory.wait_for_index(30)
        assert WORD in hiermem.tenant("alice").thread("t1").state().summary
        hiermem.backup(tmp_path / "backup")
        files = contents_of(tmp_path)  # with the write-ahead log, which goes at the end
    files |= {f"{name} after": content for name, content in contents_of(tmp_path).items()}

    assert any(name.endswith("-wal") and content for name, content in files.items())
    assert len(files) > 8
    traces = re.compile(b"|".join(part.encode() for part in (WORD, WORD.lower(), "象", "größer")))
    assert [name for name, content in files.items() if traces.search(content)] == []


def test_everything_is_read_as_it_was_said(tmp_path):
    with opened(tmp_path, **learned()) as hiermem:
        use(hiermem)
    with opened(tmp_path) as sealed, opened(tmp_path / "plain", None, **learned()) as plain:
        use(plain)
        facts = []
        for alice in (sealed.tenant("alice"), plain.tenant("alice")):
            turns = [(t.role, t.content, t.parts, t.tool_calls) for t in alice.thread("t1").turns()]
            entries = {hit.content for hit in alice.memory.search(limit=100)}
            stats = alice.memory.stats()
            steps = [(step.action, step.state) for step in alice.session("run").steps()]
            notes = alice.thread("t1").state()
            facts.append((turns, entries, stats.entries, stats.bytes, steps, notes))

    assert facts[0] == facts[1]


@pytest.mark.parametrize("empty", [False, True])
def test_a_location_opens_with_the_codec_it_was_made_with_and_no_other(tmp_path, empty):
    with opened(tmp_path) as hiermem:
        if not empty:
            hiermem.tenant("alice").remember(SAID)

    with pytest.raises(ConfigurationError, match="open it with the codec"):
        HierMem.open(tmp_path)
    with pytest.raises(ConfigurationError, match="give the key") as raised:
        opened(tmp_path, FernetCodec(KEY))
    assert KEY not in str(raised.value) + repr(FernetCodec(KEY))
    assert KEY not in repr(raised.value.__cause__) + repr(raised.value.__context__)


def test_a_location_that_was_made_without_one_takes_none(tmp_path):
    HierMem.open(tmp_path, local_embedder=False).close()

    with pytest.raises(ConfigurationError, match="made without one"):
        opened(tmp_path)
    HierMem.open(tmp_path, local_embedder=False).close()


def test_a_new_key_writes_and_the_old_one_still_reads(tmp_path):
    old = FernetCodec.generate_key()
    with opened(tmp_path, FernetCodec(old)) as hiermem:
        hiermem.tenant("alice").thread("t").append([{"role": "user", "content": "before"}])
    with opened(tmp_path, FernetCodec(KEY, old)) as hiermem:
        thread = hiermem.tenant("alice").thread("t")
        thread.append([{"role": "user", "content": "after"}])
        assert [turn.content for turn in thread.turns()] == ["before", "after"]

    move_memories(
        tmp_path,
        tmp_path / "moved",
        source_codec=FernetCodec(KEY, old),
        target_codec=FernetCodec(KEY),
    )
    with opened(tmp_path / "moved", FernetCodec(KEY)) as hiermem:
        turns = hiermem.tenant("alice").thread("t").turns()
    assert [turn.content for turn in turns] == ["before", "after"]


def test_a_plain_location_is_moved_into_a_sealed_one_and_back(tmp_path):
    with opened(tmp_path / "plain", None, **learned()) as hiermem:
        use(hiermem)
    ways = [("plain", None, "sealed", CODEC), ("sealed", CODEC, "back", None)]
    for source, before, target, after in ways:
        places = tmp_path / source, tmp_path / target
        move_memories(*places, source_codec=before, target_codec=after)

    exports = []
    for name, codec in (("plain", None), ("sealed", CODEC), ("back", None)):
        with opened(tmp_path / name, codec) as hiermem:
            file = tmp_path / f"{name}.jsonl"
            hiermem.tenant("alice").export(file)
            exports.append(file.read_bytes().split(b"\n", 1)[1])
    assert exports[0] == exports[1] == exports[2]


def test_a_setting_holds_the_keys(tmp_path, monkeypatch):
    monkeypatch.setenv("HIERMEM_ENCRYPTION_KEY", f"{KEY},{FernetCodec.generate_key()}")
    with HierMem.open(tmp_path, local_embedder=False) as hiermem:
        hiermem.tenant("alice").remember(SAID)
    monkeypatch.delenv("HIERMEM_ENCRYPTION_KEY")

    with opened(tmp_path, FernetCodec(KEY)) as hiermem:
        assert [hit.content for hit in hiermem.tenant("alice").memory.search()] == [SAID]


@pytest.mark.parametrize("codec", [object(), str.upper])
def test_what_cannot_encode_and_decode_is_refused(tmp_path, codec):
    with pytest.raises(InvalidInputError, match="encode and decode"):
        HierMem.open(tmp_path, codec=codec)


@pytest.mark.parametrize("keys", [(), ("no key at all",), ("",), (KEY, "no key at all")])
def test_what_is_no_key_is_refused(keys):
    with pytest.raises(ConfigurationError, match="generate_key") as raised:
        FernetCodec(*keys)

    assert "no key at all" not in str(raised.value)


class Failing:
    """Encodes by reversing, until it is broken."""

    broken = False

    def encode(self, text):
        if self.broken:
            raise RuntimeError(text)
        return text[::-1]

    def decode(self, text):
        return text[::-1]


def test_a_codec_that_fails_stores_nothing_and_tells_no_content(tmp_path):
    codec = Failing()
    with opened(tmp_path, codec) as hiermem:
        alice = hiermem.tenant("alice")
        alice.thread("t").append([{"role": "user", "content": "before"}])
        codec.broken = True
        with pytest.raises(BackendError, match="RuntimeError") as raised:
            alice.thread("t").append([{"role": "user", "content": WORD}])
        with pytest.raises(BackendError, match="RuntimeError"):
            alice.memory.store(WORD)
        codec.broken = False

        assert WORD not in str(raised.value) + repr(raised.value.__cause__)
        assert [turn.content for turn in alice.thread("t").turns()] == ["before"]
        assert alice.memory.stats().entries == 0


def test_a_damaged_turn_is_a_placeholder_and_a_damaged_entry_an_error(tmp_path):
    with opened(tmp_path) as hiermem:
        alice = hiermem.tenant("alice")
        alice.thread("t").append([{"role": "user", "content": text} for text in ("one", "two")])
        kept = alice.memory.store("an entry")
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection, connection:
        connection.execute("UPDATE turns SET content = substr(content, 1, 40) WHERE seq = 1")
        connection.execute("UPDATE memory_entries SET value = 'not sealed'")

    with opened(tmp_path) as hiermem:
        alice = hiermem.tenant("alice")
        turns = alice.thread("t").turns()
        assert [turn.unreadable is None for turn in turns] == [False, True]
        assert turns[1].content == "two"
        with pytest.raises(BackendError, match="decoding"):
            alice.memory.retrieve(kept)


def test_nothing_is_searched_by_keywords(tmp_path):
    with opened(tmp_path) as hiermem:
        memory = hiermem.tenant("alice").memory
        memory.store(SAID)
        with pytest.raises(UnsupportedSearchError, match="use one of the modes exact, prefix, sem"):
            memory.search(WORD, mode="keyword")
        assert len(memory.search(WORD)) == 1
        assert hiermem.health().status == "healthy"
        assert hiermem.doctor().is_sound
    with HierMem.open(tmp_path, codec=CODEC, local_embedder=False) as hiermem:
        found = hiermem.tenant("alice").recall(WORD)
        assert list(found) == []
        assert [warning.code for warning in found.warnings] == ["semantic_unavailable"]


def test_equal_entries_are_known_and_their_digests_tell_nothing(tmp_path):
    with opened(tmp_path / "sealed") as sealed, opened(tmp_path / "plain", None) as plain:
        for hiermem in (sealed, plain):
            memory = hiermem.tenant("alice").memory
            ids = {memory.store(EntryDraft(content=SAID, type="semantic")) for _ in range(2)}
            assert len(ids) == 1
    digests = []
    for name in ("sealed", "plain"):
        with closing(sqlite3.connect(tmp_path / name / "memory.db")) as connection:
            digests.append(connection.execute("SELECT digest FROM memory_entries").fetchone()[0])
    assert digests[0] != digests[1]


def test_a_backup_is_restored_by_the_same_codec(tmp_path):
    with opened(tmp_path / "memory") as hiermem:
        hiermem.tenant("alice").remember(SAID)
        hiermem.backup(tmp_path / "backup")
    restore_backup(tmp_path / "backup", tmp_path / "again")

    with opened(tmp_path / "again") as hiermem:
        assert [hit.content for hit in hiermem.tenant("alice").memory.search()] == [SAID]


@pytest.mark.parametrize("text", ["", "[]", "{}", "7:x", "\n", SAID * 20_000])
def test_any_text_is_kept(tmp_path, text):
    with opened(tmp_path) as hiermem:
        thread = hiermem.tenant("alice").thread("t")
        thread.append([{"role": "user", "content": text}, {"role": "assistant", "content": text}])
        assert [turn.content for turn in thread.turns()] == [text, text]


WRITER = """
from hiermem_core import FernetCodec, HierMem
with HierMem.open(sys.argv[1], codec=FernetCodec(sys.argv[2]), local_embedder=False) as hiermem:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(50):
        hiermem.tenant("alice").thread("t").append([{"role": "user", "content": f"n{number}"}])
"""


def test_two_processes_write_to_a_location_that_neither_has_made(tmp_path):
    children = [start(WRITER, tmp_path / "memory", KEY) for _ in range(2)]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        assert finish(child)[0] == 0

    with opened(tmp_path / "memory", FernetCodec(KEY)) as hiermem:
        turns = hiermem.tenant("alice").thread("t").turns()
    assert sorted(turn.content for turn in turns) == sorted(2 * [f"n{n}" for n in range(50)])


PLAIN = {
    "audit": {"actor", "ids", "operation", "outcome", "tenant", "thread_id"},
    "calls": {"call_id"},
    "entry_tags": {"tag", "tenant"},
    "memory_entries": {
        *("derived_from", "id", "key", "metadata", "namespace", "source", "tags", "tenant"),
        *("type", "user_id"),
    },
    "metadata": {"key", "value"},
    "outbox": {"change", "error", "tenant"},
    "participants": {"author", "tenant"},
    "patterns": {"id", "name", "tenant", "user_id"},
    "searchable": {"author", "tenant"},
    "sessions": {"id", "status", "tenant", "user_id"},
    "tenants": {"tenant"},
    "threads": {"tally", "tenant", "thread_id"},
    "trajectories": {"id", "session_id", "tenant"},
    "turns": {"id", "role", "tokens"},
    "vectors": {"embedder", "tenant"},
}
"""Columns of text that stay readable: names, ids, figures, and what filters ask for."""


def test_who_adds_a_column_of_text_says_whether_it_is_sealed():
    plain = {
        table.name: {column.name for column in table.columns if isinstance(column.type, Text)}
        for table in schema.sorted_tables
    }

    assert {name: columns for name, columns in plain.items() if columns} == PLAIN
