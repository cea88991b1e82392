"""What a report says."""

from __future__ import annotations

import json

import pytest

from hiermem_core.importing import ImportItem, ImportReport, import_memories

FAILED = ImportItem("line 7", "failed", "invalid_json", "is cut; mend it")
UNCHANGED = ImportItem("m1", "skipped", "unchanged")
CONFLICT = ImportItem("m2", "skipped", "conflict")


def report(imported=0, *items):
    return ImportReport("talk.jsonl", imported, ("talk",) if imported else (), items)


@pytest.mark.parametrize(
    ("made", "status", "exit_code"),
    [
        (report(1), "complete", 0),
        (report(0, UNCHANGED), "complete", 0),
        (report(1, CONFLICT), "complete", 0),
        (report(1, FAILED), "partial", 1),
        (report(0, UNCHANGED, FAILED), "partial", 1),
        (report(0, FAILED), "failed", 1),
        (report(0, CONFLICT, FAILED), "failed", 1),
        (report(0, CONFLICT), "empty", 3),
        (report(0), "empty", 3),
    ],
)
def test_status_and_exit_code_follow_from_the_outcomes(made, status, exit_code):
    assert (made.status, made.exit_code) == (status, exit_code)


def test_the_text_names_what_was_not_imported_and_ends_with_the_counts():
    text = str(report(3, FAILED, UNCHANGED))

    assert text.splitlines() == [
        "talk.jsonl: thread talk",
        "  line 7: invalid_json: is cut; mend it",
        "imported 3, skipped 1, failed 1 of 5 (invalid_json 1, unchanged 1)",
    ]


def test_the_text_of_many_failures_stays_short_and_the_items_hold_them_all():
    made = report(0, *[FAILED] * 1000)

    assert "and 980 more" in str(made)
    assert len(str(made).splitlines()) == 23
    assert len(made.to_dict()["items"]) == 1000


def test_the_dictionary_is_plain_json_with_every_figure():
    made = report(2, FAILED)

    assert json.loads(json.dumps(made.to_dict())) == {
        "source": "talk.jsonl",
        "status": "partial",
        "exit_code": 1,
        "dry_run": False,
        "found": 3,
        "imported": 2,
        "updated": 0,
        "skipped": 0,
        "failed": 1,
        "reasons": {"invalid_json": 1},
        "by_kind": {},
        "threads": ["talk"],
        "stores": [],
        "warnings": [],
        "started_at": None,
        "finished_at": None,
        "items": [
            {
                "ref": "line 7",
                "outcome": "failed",
                "reason": "invalid_json",
                "detail": "is cut; mend it",
                "store": "",
                "kind": "turn",
                "of": None,
            }
        ],
    }


def test_a_report_holds_no_content(alice, source):
    secret = "the launch code is 0000"
    bad = [
        {"role": "user", "content": {"a": secret}},
        {"role": secret * 20, "content": secret},
        {"role": "user", "content": secret, "metadata": [secret]},
        {"role": "user", "content": secret, "id": secret * 20, "tool_calls": 5},
        {"role": "user", "content": secret},
    ]
    path = source("".join(json.dumps(line) + "\n" for line in bad) + f'{{"content": "{secret}')

    made = import_memories(path, alice)

    assert made.failed == 5
    assert secret not in str(made) + json.dumps(made.to_dict())
