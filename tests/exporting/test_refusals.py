"""A file that was cut or changed is refused at its line, before anything is stored."""

from __future__ import annotations

import stat

import pytest
from exporting.conftest import opened

from hiermem_core import ConfigurationError, InvalidInputError
from hiermem_core.exporting.reader import is_export
from hiermem_core.exporting.sealing import FORMAT, Seal


def refused(path):
    with opened() as other:
        with pytest.raises(InvalidInputError) as raised:
            other.tenant("bob").import_export(path)
        assert other.tenant("bob").memory.stats().entries == 0
        assert other.tenant("bob").threads() == []
    return str(raised.value)


def lines_of(path):
    return path.read_bytes().splitlines(keepends=True)


def test_an_edit_of_any_line_is_refused_with_its_number(export):
    lines = lines_of(export)
    for place, line in enumerate(lines):
        changed = line.replace(b'"kind":"', b'"kind": "', 1)
        export.write_bytes(b"".join([*lines[:place], changed, *lines[place + 1 :]]))

        assert f"line {place + 1} was changed" in refused(export)


def test_an_edit_of_a_single_letter_is_refused(export):
    lines = lines_of(export)
    export.write_bytes(b"".join(lines).replace(b"likes tea", b"likes tee"))

    number = next(n for n, line in enumerate(lines, 1) if b"likes tea" in line)
    assert f"line {number} was changed" in refused(export)


def test_a_file_cut_anywhere_is_refused_with_the_line(export):
    lines = lines_of(export)
    whole = b"".join(lines)
    for size in {0, 1, 40, *range(0, len(whole) - 1, 97)}:
        export.write_bytes(whole[:size])
        number = len(whole[:size].splitlines()) + whole[:size].endswith(b"\n") or 1

        assert f"line {number} " in refused(export)


@pytest.mark.parametrize("place", range(1, 10))
def test_a_line_taken_out_is_missed_at_the_next(export, place):
    lines = lines_of(export)
    export.write_bytes(b"".join([*lines[:place], *lines[place + 1 :]]))

    assert f"line {place + 1} " in refused(export)


def test_lines_in_another_order_or_twice_are_refused(export):
    lines = lines_of(export)
    export.write_bytes(b"".join([lines[0], lines[2], lines[1], *lines[3:]]))
    assert "line 2 was changed" in refused(export)

    export.write_bytes(b"".join([*lines, lines[-1]]))
    assert f"line {len(lines) + 1} " in refused(export)


def test_other_line_ends_are_no_edit(export):
    export.write_bytes(export.read_bytes().replace(b"\n", b"\r\n"))

    with opened() as other:
        assert other.tenant("bob").import_export(export).status == "complete"


def test_a_newer_version_of_the_format_is_refused(tmp_path):
    header = {"kind": "header", "format": FORMAT, "version": 2, "tenant": "a"}
    path = tmp_path / "new.jsonl"
    path.write_bytes(Seal().line_of(header) + Seal().line_of({"kind": "end"}))

    assert "version 2" in refused(path)
    assert "upgrade" in refused(path)


def sealed(path, *forms):
    """Write a file whose seals are right, whatever is in it."""
    header = {"kind": "header", "format": FORMAT, "version": 1, "tenant": "a"}
    seal = Seal()
    body = [seal.line_of(form) for form in (*forms, {"kind": "end", "threads": 1})]
    path.write_bytes(b"".join([Seal().line_of(header), *body]))
    return path


ENTRY = {
    "kind": "entry",
    "id": "e",
    "namespace": "default",
    "type": "semantic",
    "content": "x",
    "created_at": "2026-01-01T00:00:00.000Z",
    "updated_at": "2026-01-01T00:00:00.000Z",
    "version": 1,
    "times_stored": 1,
    "source": "user",
    "trust": 0.5,
}
THREAD = {
    "kind": "thread",
    "id": "t",
    "last_seq": 9,
    **{k: ENTRY[k] for k in ("created_at", "updated_at")},
}
TURN = {
    "kind": "turn",
    "seq": 1,
    "id": "q",
    "role": "user",
    "content": "hi",
    "created_at": ENTRY["created_at"],
    "revision": 1,
}

BAD_ENTRIES = [
    {"content": ""},
    {"content": 7},
    {"id": None},
    {"namespace": "a//b"},
    {"type": "odd"},
    {"tags": "x"},
    {"tags": [1]},
    {"metadata": [1]},
    {"passages": 3},
    {"created_at": "yesterday"},
    {"created_at": "2026-01-01T00:00:00"},
    {"updated_at": 3},
    {"expires_at": "soon"},
    {"ttl": -1},
    {"version": 0},
    {"version": True},
    {"times_stored": 2**70},
    {"source": "nobody"},
    {"trust": 2},
    {"derived_from": "x"},
    {"vectors": ["%%"]},
    {"vectors": [3]},
    {"vectors": ["AAA="]},
    {"vectors": ["AAAAAA=="]},
]
BAD_TURNS = [
    {"role": "narrator"},
    {"content": 7},
    {"parts": [1]},
    {"tool_calls": 3},
    {"tool_calls": [{"name": "f"}]},
    {"dump": {"framework": "x"}},
    {"tokens": []},
    {"tokens": {"a": "b"}},
    {"seq": 0},
    {"revision": None},
    {"created_at": ""},
    {"call_seq": "x"},
    {"metadata": 3},
    {"vectors": 3},
]


@pytest.mark.parametrize("change", BAD_ENTRIES, ids=str)
def test_a_bad_entry_fails_alone_with_its_line(tmp_path, change):
    path = sealed(tmp_path / "x.jsonl", {**ENTRY, **change}, {**ENTRY, "id": "good"})

    with opened() as other:
        report = other.tenant("b").import_export(path)

        assert (report.imported, report.failed, report.exit_code) == (1, 1, 1)
        assert "line 2: " in report.items[0].detail
        assert other.tenant("b").memory.stats().entries == 1


@pytest.mark.parametrize("change", BAD_TURNS, ids=str)
def test_a_bad_turn_fails_alone_with_its_line(tmp_path, change):
    path = sealed(tmp_path / "x.jsonl", THREAD, {**TURN, **change}, {**TURN, "seq": 3, "id": "r"})

    with opened() as other:
        report = other.tenant("b").import_export(path)

        assert (report.imported, report.failed) == (1, 1)
        assert "line 3: " in report.items[0].detail
        assert [turn.seq for turn in other.tenant("b").thread("t").turns()] == [3]


@pytest.mark.parametrize("change", [{"id": ""}, {"last_seq": -1}, {"notes": 3}, {"created_at": 1}])
def test_a_bad_thread_fails_with_its_turns(tmp_path, change):
    path = sealed(tmp_path / "x.jsonl", {**THREAD, **change}, TURN)

    with opened() as other:
        report = other.tenant("b").import_export(path)

        assert (report.imported, report.failed, report.status) == (0, 2, "failed")
        assert other.tenant("b").threads() == []


def test_an_id_twice_in_a_file_is_stored_once(tmp_path):
    turns = [TURN, {**TURN, "seq": 2}]
    path = sealed(tmp_path / "x.jsonl", ENTRY, {**ENTRY, "content": "y"}, THREAD, *turns)

    with opened() as other:
        for choice in ("skip", "overwrite"):
            report = other.tenant(choice).import_export(path, on_conflict=choice)

            assert (report.imported, report.failed, report.skipped) == (2, 0, 2)


def test_kinds_that_are_unknown_or_out_of_place_are_refused(tmp_path):
    assert "line 2 is of a kind" in refused(sealed(tmp_path / "x.jsonl", {"kind": "pattern"}))
    assert "line 2 is of a kind" in refused(sealed(tmp_path / "y.jsonl", TURN))


def test_an_export_is_known_by_its_first_line(export, tmp_path):
    (tmp_path / "talk.jsonl").write_text('{"role": "user", "content": "hi"}\n')

    assert is_export(export)
    assert not is_export(tmp_path / "talk.jsonl")
    assert not is_export(tmp_path / "none")
    assert not is_export(tmp_path)


def test_a_missing_file_is_told(tmp_path, alice):
    with pytest.raises(InvalidInputError, match="cannot be read"):
        alice.import_export(tmp_path / "none.jsonl")


def test_what_is_there_is_not_overwritten_unasked(alice, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("mine")

    with pytest.raises(ConfigurationError, match="is there"):
        alice.export(path)
    assert path.read_text() == "mine"

    kept = alice.export(path, replace=True).kept
    assert kept.read_text() == "mine"
    assert is_export(path)


def test_an_export_is_readable_by_its_owner_alone(export):
    assert stat.S_IMODE(export.stat().st_mode) == 0o600


def test_an_export_that_fails_leaves_nothing(alice, tmp_path):
    def fail(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        alice.export(tmp_path / "a.jsonl", progress=fail)

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_told(alice, tmp_path):
    with pytest.raises(ConfigurationError, match="is no folder"):
        alice.export(tmp_path / "none" / "a.jsonl")
