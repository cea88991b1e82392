"""Owning the index's folder, looking at what is in it, and trying again."""

from __future__ import annotations

import os
import sys

import numpy as np
import psutil
import pytest
from core.vector_index import vector_for
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core.vector_index import probing
from hiermem_core.vector_index.chroma import ChromaIndex
from hiermem_core.vector_index.connecting import embedded
from hiermem_core.vector_index.files import look_at_files
from hiermem_core.vector_index.ownership import LOCK_NAME, Ownership
from hiermem_core.vector_index.probing import Expected, Seen, judge
from hiermem_core.vector_index.retrying import MOST_ATTEMPTS, after_failure, pause_ms

VECTORS = np.stack([vector_for(seed) for seed in range(300)])


def test_one_owner_at_a_time(tmp_path):
    first, second = Ownership(tmp_path / "chroma"), Ownership(tmp_path / "chroma")

    assert first.try_own()
    assert first.try_own()
    assert not second.try_own()
    assert second.is_foreign
    assert second.owner == f"another HierMem in this process (pid {os.getpid()})"
    first.release()
    first.release()
    assert second.try_own()
    assert second.owner == "this process"
    second.release()


def test_whoever_removes_the_lock_file_ends_the_ownership(tmp_path):
    owner, next_owner = Ownership(tmp_path), Ownership(tmp_path)
    owner.try_own()
    (tmp_path / LOCK_NAME).unlink()

    assert not owner.is_held
    assert next_owner.try_own()
    assert not owner.try_own()
    next_owner.release()


def test_a_folder_that_cannot_be_made_has_no_owner(tmp_path):
    (tmp_path / "file").write_text("no folder")
    ownership = Ownership(tmp_path / "file" / "chroma")

    assert not ownership.try_own()
    assert not ownership.is_foreign
    assert "cannot be written" in ownership.owner


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_a_forked_child_is_no_owner_and_keeps_no_lock(tmp_path):
    ownership = Ownership(tmp_path)
    ownership.try_own()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        held = ownership.is_held or ownership.try_own()
        ownership.release()
        os.write(writing, b"1" if held else b"0")
        os._exit(0)
    told = os.read(reading, 1)
    os.waitpid(child, 0)

    assert told == b"0"
    assert ownership.is_held
    ownership.release()


def expected(**changes):
    facts = {"collection": "hm_a", "least": 10, "most": 10, "numbers": [], "vectors": []}
    return Expected(**(facts | changes))


@pytest.mark.parametrize(
    ("one", "seen", "verdict"),
    [
        (expected(), Seen(10, 20, 20), "good"),
        (expected(), Seen(9, 20, 20), "drifted"),
        (expected(most=11), Seen(10, 20, 20), "drifted"),
        (expected(), Seen(10, 20, 18), "good"),
        (expected(), Seen(10, 20, 17), "bad"),
        (expected(), None, "bad"),
    ],
)
def test_a_verdict_needs_every_vector_accounted_for(one, seen, verdict):
    assert judge([one], {} if seen is None else {"hm_a": seen}) == verdict


def probed(folder, **changes):
    certain = list(range(0, 300, 10))
    texts = [probing.encode(VECTORS[number].tobytes()) for number in certain]
    facts = {"least": 300, "most": 300, "numbers": certain, "vectors": texts}
    return probing.probe(folder, [expected(**(facts | changes))])


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "gen-1"
    index = ChromaIndex(embedded(path))
    index.add("hm_a", range(300), VECTORS)
    index.remove("hm_a", [])
    index.close()
    return path


def test_a_whole_index_is_good(folder):
    assert probed(folder) == "good"


def test_an_index_with_other_vectors_than_expected_is_bad(folder):
    others = [probing.encode(vector_for(seed + 5_000).tobytes()) for seed in range(30)]

    assert probed(folder, vectors=others) == "bad"


def test_a_missing_or_cut_off_index_is_bad(tmp_path, folder):
    (folder / "chroma.sqlite3").write_bytes(b"x" * 5_000)

    assert probed(tmp_path / "none") == "bad"
    assert probed(folder) == "bad"


@pytest.mark.parametrize(
    "script", ["import os; os.kill(os.getpid(), 11)", "import time; time.sleep(60)", "1 / 0"]
)
def test_a_child_that_dies_hangs_or_fails_makes_the_index_bad(folder, monkeypatch, script):
    monkeypatch.setattr(probing, "_BOOT", script)
    monkeypatch.setattr(probing, "_SECONDS", 0.5)

    assert probed(folder) == "bad"


def test_a_program_that_is_no_python_does_not_start_itself(folder, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/usr/bin/false")
    as_program = probed(folder)
    monkeypatch.setattr(sys, "executable", "/nowhere/python3")

    assert as_program == "bad"
    assert probed(folder) == "bad"


def test_a_cancelled_probe_knows_nothing_and_leaves_no_child(folder):
    before = len(psutil.Process().children())

    assert probing.probe(folder, [expected()], is_cancelled=lambda: True) is None
    assert len(psutil.Process().children()) == before


def test_files_that_were_touched_are_noticed(folder):
    segment = folder / "segment"
    segment.mkdir()
    (segment / "header.bin").write_bytes(b"1234")
    before = look_at_files(folder)
    os.utime(segment / "header.bin", ns=(1, 1))
    touched = look_at_files(folder)
    (segment / "header.bin").write_bytes(b"12345")

    assert touched.sizes == before.sizes
    assert touched.times != before.times
    assert look_at_files(folder).sizes != before.sizes


@given(st.integers(0, 1_000), st.integers(0, 2**40))
def test_pauses_grow_and_end(attempts, now):
    retry = after_failure(attempts, now_ms=now)

    assert retry.attempts == attempts + 1
    assert 0 < retry.due_at - now <= 600_000
    assert pause_ms(attempts) <= pause_ms(attempts + 1)
    assert retry.is_failed is (attempts + 1 >= MOST_ATTEMPTS)
