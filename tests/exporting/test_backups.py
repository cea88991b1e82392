"""Backups of a location in use, and their way back."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from exporting.conftest import body_of, fill, opened

from hiermem_core import (
    BackendUnavailableError,
    ConfigurationError,
    ConflictError,
    InvalidInputError,
    MigrationError,
    restore_backup,
)
from hiermem_core.exporting.restoring import start_anew
from hiermem_core.vector_index.ownership import Ownership


@pytest.fixture
def location(tmp_path):
    """Return a location with something in it, that is closed."""
    with opened(tmp_path / "memory") as memory:
        fill(memory.tenant("alice"))
        memory.tenant("alice").memory.wait_for_index()
    return tmp_path / "memory"


@pytest.fixture
def backup(location, tmp_path):
    with opened(location) as memory:
        memory.backup(tmp_path / "backup")
    return tmp_path / "backup"


def exported(location, path):
    with opened(location) as memory:
        memory.tenant("alice").export(path, vectors=True)
    return body_of(path)


def test_a_backup_holds_everything_as_of_one_moment(location, tmp_path):
    before = exported(location, tmp_path / "a.jsonl")
    with opened(location) as memory:
        report = memory.backup(tmp_path / "backup")
        memory.tenant("alice").remember("later")

    assert exported(tmp_path / "backup", tmp_path / "b.jsonl") == before
    there = {name: count for name, count in report.counts.items() if count}
    assert there == {"tenants": 1, "entries": 3, "threads": 2, "turns": 3, "vectors": 6}
    assert report.kept is None


def test_a_backup_says_what_it_is_and_bears_a_checksum(backup):
    manifest = json.loads((backup / "backup.json").read_text())

    data = (backup / "memory.db").read_bytes()
    assert manifest["sha256"] == hashlib.sha256(data).hexdigest()
    assert manifest["bytes"] == len(data)
    assert manifest["format"] == "hiermem/backup"
    assert sorted(path.name for path in backup.iterdir()) == ["backup.json", "memory.db"]


def test_a_backup_is_made_while_others_write(location, tmp_path):
    with opened(location) as memory:
        alice = memory.tenant("alice")
        stop = threading.Event()

        def write():
            while not stop.is_set():
                alice.remember("one more", id=f"n{alice.memory.stats().entries}")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for number in range(3):
                memory.backup(tmp_path / f"backup {number}")
        finally:
            stop.set()
            writer.join()

    for number in range(3):
        restore_backup(tmp_path / f"backup {number}", tmp_path / f"restored {number}")
        with opened(tmp_path / f"restored {number}") as memory:
            memory.doctor(repair=True)
            assert memory.doctor().is_sound
            assert memory.tenant("alice").memory.retrieve("e1").content == "likes tea"


def test_a_memory_of_one_process_can_be_backed_up(tmp_path):
    with opened() as memory:
        fill(memory.tenant("alice"))
        memory.backup(tmp_path / "backup")

    restore_backup(tmp_path / "backup", tmp_path / "restored")
    with opened(tmp_path / "restored") as memory:
        assert memory.tenant("alice").memory.stats().entries == 3


def test_entries_that_are_in_no_file_are_not_lost_silently(tmp_path):
    with opened(backend="in_memory") as memory, pytest.raises(ConfigurationError, match="export"):
        memory.backup(tmp_path / "backup")


def test_a_name_that_is_taken_is_kept_when_asked_and_refused_else(location, backup):
    with opened(location) as memory:
        with pytest.raises(ConfigurationError, match="is there"):
            memory.backup(backup)
        report = memory.backup(backup, replace=True)

    assert (report.kept / "backup.json").is_file()
    assert report.kept.name.startswith("backup.before-")


def test_a_second_backup_to_the_same_name_waits_its_turn(location, tmp_path):
    other = Ownership(tmp_path / ".backup.partial")
    assert other.try_own()
    try:
        with opened(location) as memory, pytest.raises(ConflictError, match="is being written"):
            memory.backup(tmp_path / "backup")
    finally:
        other.release()


def test_what_a_killed_backup_left_is_in_no_ones_way(location, tmp_path):
    draft = tmp_path / ".backup.partial"
    draft.mkdir()
    (draft / "memory.db").write_bytes(b"half")

    with opened(location) as memory:
        memory.backup(tmp_path / "backup")

    restore_backup(tmp_path / "backup", tmp_path / "restored")
    assert not draft.exists()


def test_a_backup_is_restored_where_nothing_is(location, backup, tmp_path):
    report = restore_backup(backup, tmp_path / "restored")

    assert (report.replaced, report.kept) == (None, None)
    assert exported(tmp_path / "restored", tmp_path / "a.jsonl") == exported(
        location, tmp_path / "b.jsonl"
    )
    assert [path.name for path in (tmp_path / "restored").iterdir()] == ["memory.db"]


def test_what_is_there_is_not_replaced_unasked(location, backup, tmp_path):
    before = exported(location, tmp_path / "a.jsonl")

    with pytest.raises(ConfigurationError, match=r"1 tenant, 3 entries, 2 threads, 3 turns"):
        restore_backup(backup, location)

    assert exported(location, tmp_path / "b.jsonl") == before


def test_what_is_replaced_is_kept_and_can_be_restored_in_turn(location, backup, tmp_path):
    with opened(location) as memory:
        memory.tenant("alice").remember("later")
    later = exported(location, tmp_path / "later.jsonl")

    report = restore_backup(backup, location, replace=True)
    assert "4 entries" in report.replaced
    assert exported(location, tmp_path / "now.jsonl") != later

    restore_backup(report.kept, location, replace=True)
    assert exported(location, tmp_path / "again.jsonl") == later


def test_an_empty_memory_is_replaced_without_a_word(backup, tmp_path):
    opened(tmp_path / "fresh").close()

    report = restore_backup(backup, tmp_path / "fresh")

    assert report.kept is None
    with opened(tmp_path / "fresh") as memory:
        assert memory.tenant("alice").memory.stats().entries == 3


def test_a_dry_run_says_what_would_be_replaced_and_changes_nothing(location, backup):
    before = {path: path.read_bytes() for path in location.iterdir() if path.is_file()}

    report = restore_backup(backup, location, replace=True, dry_run=True)

    assert "3 entries" in report.replaced
    assert {path: path.read_bytes() for path in location.iterdir() if path.is_file()} == before


def test_a_location_in_use_is_not_replaced(location, backup):
    with opened(location) as memory:
        memory.tenant("alice").stats()
        with pytest.raises(BackendUnavailableError, match="is in use"):
            restore_backup(backup, location, replace=True)

        assert memory.tenant("alice").memory.stats().entries == 3


HOLDING = """
import sys
from hiermem_core import HierMem

with HierMem.open(sys.argv[1], local_embedder=False) as memory:
    memory.tenant("alice").stats()
    print("open", flush=True)
    sys.stdin.read()
"""


def test_a_location_in_use_by_another_process_is_not_replaced(location, backup):
    command = [sys.executable, "-c", HOLDING, location]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(BackendUnavailableError, match="is in use"):
            restore_backup(backup, location, replace=True)
        other.stdin.close()

    restore_backup(backup, location, replace=True)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: data[:5000] + bytes([data[5000] ^ 1]) + data[5001:],
    ],
    ids=["cut", "longer", "one bit"],
)
def test_a_backup_that_was_changed_is_refused(backup, tmp_path, damage):
    file = backup / "memory.db"
    file.write_bytes(damage(file.read_bytes()))

    with pytest.raises(InvalidInputError, match="was changed"):
        restore_backup(backup, tmp_path / "restored")
    assert not (tmp_path / "restored" / "memory.db").exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "x", "version": 1}', "\udcff"])
def test_what_is_no_backup_is_refused(backup, tmp_path, text):
    (backup / "backup.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InvalidInputError, match="cannot be understood"):
        restore_backup(backup, tmp_path / "restored")

    with pytest.raises(InvalidInputError, match="is no backup"):
        restore_backup(tmp_path, tmp_path / "restored")


def test_a_backup_by_a_newer_version_is_refused(backup, tmp_path):
    manifest = json.loads((backup / "backup.json").read_text())
    (backup / "backup.json").write_text(json.dumps(manifest | {"schema": 999}))

    with pytest.raises(MigrationError, match="schema 999"):
        restore_backup(backup, tmp_path / "restored")


def test_a_damaged_database_is_kept_as_it_is(location, backup):
    (location / "memory.db").write_bytes(b"garbage" * 1000)

    with pytest.raises(ConfigurationError, match="a damaged database"):
        restore_backup(backup, location)
    report = restore_backup(backup, location, replace=True)

    assert (report.kept / "memory.db").read_bytes() == b"garbage" * 1000
    with opened(location) as memory:
        assert memory.tenant("alice").memory.stats().entries == 3


def test_a_database_that_is_damaged_inside_is_kept_as_it_is(location, backup):
    file = location / "memory.db"
    data = bytearray(file.read_bytes())
    with closing(sqlite3.connect(file)) as database:
        page = database.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'memory_entries'"
        ).fetchone()[0]
    data[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    file.write_bytes(data)

    report = restore_backup(backup, location, replace=True)

    assert report.replaced == "a damaged database"
    assert (report.kept / "memory.db").read_bytes() == data
    with opened(location) as memory:
        assert memory.tenant("alice").memory.stats().entries == 3


def test_an_empty_file_is_nothing(backup, tmp_path):
    (tmp_path / "empty.db").touch()

    assert restore_backup(backup, tmp_path / "empty.db").replaced is None
    with opened(tmp_path / "empty.db") as memory:
        assert memory.tenant("alice").memory.stats().entries == 3


def test_another_programs_database_is_never_replaced(backup, tmp_path):
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE mine (x)")

    with pytest.raises(ConfigurationError, match="another program's"):
        restore_backup(backup, path, replace=True)
    with pytest.raises(ConfigurationError, match="another program's"):
        start_anew(path, now_ms=0)


def test_a_log_that_was_left_behind_is_not_taken_for_the_backups(location, backup, tmp_path):
    folder = tmp_path / "restored"
    folder.mkdir()
    (folder / "memory.db-wal").write_bytes(b"another database's log" * 300)

    report = restore_backup(backup, folder)

    assert report.kept is not None
    assert exported(folder, tmp_path / "a.jsonl") == exported(location, tmp_path / "b.jsonl")


def test_what_a_killed_restore_left_goes_with_the_next(location, backup):
    (location / ".memory.db.0a1b.partial").write_bytes(b"half")
    (location / ".memory.db.before-restore-x.partial").mkdir()

    restore_backup(backup, location, replace=True)

    assert [path.name for path in location.iterdir() if path.name.startswith(".")] == []


def test_a_memory_in_memory_is_no_place(backup):
    with pytest.raises(ConfigurationError, match="in memory"):
        restore_backup(backup, ":memory:")


def test_an_index_of_before_is_not_trusted(tmp_path):
    place = tmp_path / "memory"
    with opened(place, backend="chroma") as memory:
        alice = memory.tenant("alice")
        alice.memory.bulk_insert([{"content": f"old {n}", "id": f"o{n}"} for n in range(40)])
        alice.memory.wait_for_index()
        memory.backup(tmp_path / "backup")
        alice.memory.bulk_insert([{"content": f"new {n}", "id": f"n{n}"} for n in range(40)])
        alice.memory.wait_for_index()

    restore_backup(tmp_path / "backup", place, replace=True)

    with opened(place, backend="chroma") as memory:
        alice = memory.tenant("alice")
        alice.memory.wait_for_index()
        found = alice.memory.search_semantic("new 7", 100)
        assert {hit.id for hit in found} == {f"o{n}" for n in range(40)}
        assert memory.doctor().is_sound


def test_starting_anew_keeps_what_was_there(location, tmp_path):
    before = exported(location, tmp_path / "a.jsonl")

    report = start_anew(location, now_ms=0)

    with opened(location) as memory:
        assert memory.tenant("alice").memory.stats().entries == 0
        assert memory.tenant("alice").threads() == []
    restore_backup(report.kept, location)
    assert exported(location, tmp_path / "b.jsonl") == before


def test_a_location_of_an_older_schema_is_kept_as_such_and_its_backup_migrated(backup, tmp_path):
    script = Path(__file__).parents[1] / "core" / "schema_1.sql"
    old = tmp_path / "old"
    old.mkdir()
    with closing(sqlite3.connect(old / "memory.db")) as database:
        database.executescript(script.read_text(encoding="utf-8"))

    kept = restore_backup(backup, old, replace=True).kept
    assert json.loads((kept / "backup.json").read_text())["schema"] == 1
    restore_backup(kept, tmp_path / "again")

    with opened(tmp_path / "again") as memory:
        assert memory.tenant("acme").recall("samovar")
        assert memory.doctor().is_sound
