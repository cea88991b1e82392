"""An import that is repeated, interrupted, run twice at once or beside edits."""

from __future__ import annotations

import sqlite3
import threading

import pytest
from importing.stores import row, store

from hiermem_core import ConflictError
from hiermem_core.importing import import_memories


def test_i37_an_entry_edited_since_stays_unless_it_is_to_be_overwritten(place):
    store(place, row("k1", "theirs"), row("k2", "other"))
    place.load()
    entry = place.entries()["default", "k1"]
    place.tenant.memory.update(entry.id, content="ours")

    assert place.load().reasons == {"conflict": 1, "unchanged": 1}
    with pytest.raises(ConflictError, match="nothing was stored"):
        place.load(on_conflict="fail")
    assert place.contents()["default", "k1"] == "ours"
    report = place.load(on_conflict="overwrite")
    assert (report.updated, report.imported, report.status) == (1, 0, "complete")
    assert place.contents()["default", "k1"] == "theirs"
    assert place.entries()["default", "k1"].version == 3


def test_a_conflict_keeps_an_import_that_is_to_fail_from_storing_anything(place):
    place.tenant.remember("ours", key="k900")
    store(place, *[row(f"k{n}", "theirs") for n in range(901)])

    with pytest.raises(ConflictError, match="default/k900"):
        place.load(on_conflict="fail", batch_size=100)
    assert place.contents() == {("default", "k900"): "ours"}


def test_i38_a_bad_row_fails_alone(place):
    rows = [row(f"k{n}") for n in range(1000)]
    rows[10] = (None, "x", "default", 1, 1)
    rows[20] = row("k20", "x" * (1024 * 1024 + 1))
    rows[30] = row("k30", sqlite3.Binary(b"\xff\xfe"))
    store(place, *rows)

    report = place.load()

    assert report.imported == 997
    assert [item.reason for item in report.items] == [
        *("missing_field", "limit_exceeded", "not_text")
    ]
    assert (report.status, report.failed) == ("partial", 3)


def test_an_entry_deleted_since_is_imported_again(place):
    store(place, row("k1"))
    place.load()
    (entry,) = place.entries().values()
    place.tenant.memory.delete(entry.id)

    assert place.load().imported == 1


def test_i6_two_imports_at_once_store_each_record_once(place):
    store(place, *[row(f"k{n}", f"text {n}") for n in range(300)])
    reports = []

    def work():
        reports.append(import_memories(place.folder, place.tenant, batch_size=20))

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert sum(report.imported for report in reports) == 300
    assert all(report.found == 300 and not report.failed for report in reports)
    assert {one.version for one in place.entries().values()} == {1}
    assert len(place.entries()) == 300


def test_i5_a_killed_import_goes_on_and_embeds_nothing_twice(place):
    from hiermem_core.testing import FaultPlan, InjectedFault

    store(place, *[row(f"k{n}", f"text {n}") for n in range(100)])
    with FaultPlan("rows.before_commit", count=5), pytest.raises(InjectedFault):
        import_memories(place.folder, place.tenant, batch_size=10)
    assert len(place.entries()) == 30
    place.embedder.calls.clear()

    report = place.load(batch_size=10)

    assert (report.imported, report.reasons) == (70, {"unchanged": 30})
    embedded = [text for call in place.embedder.calls for text in call_texts(call)]
    assert sorted(text for text in embedded if text.startswith("text")) == sorted(
        f"text {n}" for n in range(30, 100)
    )


def call_texts(call):
    return call if isinstance(call, list | tuple) else [call]


def test_what_an_import_stores_is_found_by_word_and_by_meaning(place):
    store(place, row("k1", "The harbour is closed on Sundays"))

    place.load()

    (hit, *_) = place.tenant.recall("harbour Sundays")
    assert hit.key == "k1"
