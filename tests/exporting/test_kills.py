"""A process killed at any moment of a backup, a restore or an export loses nothing."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from exporting.conftest import body_of, fill, opened

from hiermem_core import HierMemError, restore_backup
from hiermem_core.exporting.reader import is_export

PROGRAM = """
import os, signal, sys
from hiermem_core import HierMem, restore_backup
from hiermem_core.exporting.restoring import start_anew

what, place, other, moment = *sys.argv[1:4], int(sys.argv[4])
WATCHED = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.listdir",
           "shutil.move", "shutil.rmtree", "sqlite3.connect", "sqlite3.connect/handle"}
seen = 0

def watch(event, arguments):
    global seen
    if event in WATCHED:
        seen += 1
        if seen == moment:
            os.kill(os.getpid(), signal.SIGKILL)

if what == "restore":
    work = lambda: restore_backup(other, place, replace=True)
elif what == "init":
    work = lambda: start_anew(place, now_ms=0)
else:
    memory = HierMem.open(place, local_embedder=False)
    memory.tenant("alice").stats()
    work = {
        "backup": lambda: memory.backup(other, replace=True),
        "export": lambda: memory.tenant("alice").export(other, replace=True),
    }[what]
sys.addaudithook(watch)
work()
"""


@pytest.fixture
def location(tmp_path):
    with opened(tmp_path / "memory") as memory:
        fill(memory.tenant("alice"))
        memory.backup(tmp_path / "backup")
        memory.tenant("alice").remember("later")
        memory.tenant("alice").memory.wait_for_index()
    return tmp_path / "memory"


def run(what, place, other, moment):
    """Run until killed at a moment; tell whether it was."""
    command = [sys.executable, "-c", PROGRAM, what, place, other, str(moment)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode in {0, -signal.SIGKILL}, ended.stderr
    return ended.returncode != 0


def exported(location, path):
    with opened(location) as memory:
        memory.tenant("alice").export(path, replace=True)
    return body_of(path)


def kept_in(folder, path):
    """Return the exports of everything restorable that is kept in a folder."""
    found = []
    for number, kept in enumerate(sorted(folder.glob("[!.]*.before-*"))):
        place = path / f"{folder.name} {number}"
        restore_backup(kept, place, replace=True)
        found.append(exported(place, path / "kept.jsonl"))
    return found


MOMENTS = range(1, 40, 3)


@pytest.mark.parametrize("what", ["restore", "init"])
def test_a_kill_while_a_location_is_replaced_leaves_the_old_or_the_new(location, tmp_path, what):
    later = exported(location, tmp_path / "later.jsonl")
    new = exported_backup(tmp_path) if what == "restore" else empty(tmp_path)
    kills = 0
    for moment in MOMENTS:
        kills += run(what, location, tmp_path / "backup", moment)

        now = exported(location, tmp_path / "now.jsonl")
        assert now in {later, new}, moment
        if now != later:
            assert later in kept_in(location, tmp_path), moment
            break

    assert kills > 3


def exported_backup(tmp_path):
    restore_backup(tmp_path / "backup", tmp_path / "as backed up")
    return exported(tmp_path / "as backed up", tmp_path / "backup.jsonl")


def empty(tmp_path):
    return exported(tmp_path / "nothing", tmp_path / "nothing.jsonl")


def test_a_kill_during_a_backup_leaves_the_location_and_what_bore_the_name(location, tmp_path):
    before = exported(location, tmp_path / "a.jsonl")
    (tmp_path / "to").mkdir()
    with opened(location) as memory:
        first = memory.backup(tmp_path / "to" / "backup").sha256
    kills = []
    for moment in MOMENTS:
        kills.append(run("backup", location, tmp_path / "to" / "backup", moment))

        assert exported(location, tmp_path / "b.jsonl") == before
        whole = [folder for folder in (tmp_path / "to").iterdir() if sound(folder, tmp_path)]
        assert any(first in (folder / "backup.json").read_text() for folder in whole)

    assert {True, False} == set(kills)


def sound(folder, tmp_path):
    """Tell whether a folder is a whole backup; a draft is hidden."""
    if folder.name.startswith("."):
        return False
    try:
        restore_backup(folder, tmp_path / "tried", replace=True, dry_run=True)
    except HierMemError:
        raise AssertionError(folder) from None
    return True


def test_a_kill_during_an_export_leaves_a_whole_file_or_what_was_there(location, tmp_path):
    target = tmp_path / "to" / "a.jsonl"
    target.parent.mkdir()
    target.write_text("mine")
    kills, whole = [], 0
    for moment in MOMENTS:
        kills.append(run("export", location, target, moment))

        kept = [path for path in target.parent.iterdir() if not path.name.startswith(".")]
        assert any(path.read_bytes() == b"mine" for path in kept)
        for path in kept:
            if is_export(path):
                whole += 1
                with opened() as other:
                    assert other.tenant("b").import_export(path).status == "complete"
    assert kills[0]
    assert whole
