"""How runs end: exit codes, one-line errors, and a source that cannot be imported."""

from __future__ import annotations

import json

import pytest

from hiermem_core import BackendUnavailableError, HierMemError, InvalidInputError, NotFoundError
from hiermem_core.cli.ending import exit_code_of, text_of
from hiermem_core.version import __version__

GOOD = '{"role": "user", "content": "good"}\n'


def test_the_help_documents_every_exit_code(hiermem):
    run = hiermem("--help")

    assert run.code == 0
    for code, meaning in [
        (0, "success"),
        (1, "partial or failed"),
        (2, "wrong use"),
        (3, "nothing to import"),
        (130, "interrupted"),
    ]:
        assert f"{code}  {meaning}" in run.out


def test_the_version_is_that_of_the_package(hiermem):
    run = hiermem("--version")

    assert (run.code, run.out) == (0, f"hiermem-core {__version__}\n")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("import", "missing.jsonl"), 2, "does not exist"),
        (("show", "nothing"), 1, "thread 'nothing' not found"),
        (("context", "nothing"), 1, "thread 'nothing' not found"),
        (("context", "nothing", "--question", "hm?"), 1, "thread 'nothing' not found"),
        (("context", "talk", "--budget", "4"), 1, "raise the budget"),
        (("context", "talk", "--budget", "-1"), 2, "--budget"),
        (("context", "talk", "--question", " "), 2, "is blank"),
        (("show", "talk", "--last", "-1"), 2, "--last"),
        (("show", ""), 2, "no thread was given"),
        (("import", "talk.jsonl", "--batch-size", "0"), 2, "--batch-size"),
        (("threads", "--tenant", ""), 2, "add --tenant NAME"),
        (("threads", "--location", "elsewhere"), 2, "run: hiermem init"),
        (("threads", "--location", "mysql://host/db"), 2, "mysql is not supported"),
        (("threads", "--location", ""), 2, "is empty"),
        (("tokens", "fetch", "nonsense"), 2, "knows no 'nonsense'"),
        (("threads", "--nonsense"), 2, "No such option"),
        (("nonsense",), 2, "No such command"),
        (("show",), 2, "Missing argument"),
    ],
)
def test_errors_say_what_is_wrong_and_never_show_a_traceback(hiermem, talk, words, code, told):
    plain, as_json = hiermem(*words), hiermem(*words, "--json")

    assert (plain.code, plain.out) == (as_json.code, as_json.out) == (code, "")
    assert told in plain.err
    assert "Traceback" not in plain.err
    error = json.loads(as_json.err)
    assert set(error) == {"error", "type"}
    assert told in error["error"]


def test_no_tenant_says_how_to_name_one(hiermem, monkeypatch):
    monkeypatch.delenv("HIERMEM_TENANT")

    run = hiermem("threads")

    assert run.code == 2
    assert "add --tenant NAME or set HIERMEM_TENANT" in run.err


@pytest.mark.parametrize(
    ("name", "value"), [("HIERMEM_NONSENSE", "1"), ("HIERMEM_BUSY_SECONDS", "soon")]
)
def test_bad_settings_are_wrong_use(hiermem, monkeypatch, name, value):
    monkeypatch.setenv(name, value)

    assert hiermem("init").code == 2


@pytest.mark.parametrize("words", [("threads",), ("show", "x"), ("context", "x"), ("stats",)])
def test_commands_that_read_never_create_a_location(hiermem, words, tmp_path):
    run = hiermem(*words)

    assert run.code == 2
    assert f"nothing is stored at {tmp_path / 'memory'}" in run.err
    assert not (tmp_path / "memory").exists()


def test_an_import_of_nothing_creates_no_location(hiermem, tmp_path):
    assert hiermem("import", tmp_path / "missing.jsonl").code == 2
    assert not (tmp_path / "memory").exists()


@pytest.mark.parametrize(
    ("content", "code", "told"),
    [
        (GOOD, 0, "imported 1"),
        (GOOD * 2 + '{"role": "nobody", "content": ""}', 1, "line 3: unknown_role"),
        (GOOD + '{"role": "user", "cont', 1, "line 2: invalid_json"),
        (GOOD.encode() + b'{"role": "user", "content": "\xe9"}', 1, "line 2: not_text"),
        (b"\xef\xbb\xbf" + GOOD.encode(), 0, "imported 1"),
        ("no JSON\nat all\n", 1, "failed 2 of 2"),
        ('{"role": "user", "content": "cut off', 1, "line 1: invalid_json"),
        ('{"data": 1}', 2, "no conversation"),
        (b"\x89PNG\x00", 2, "is a binary file"),
        ("", 3, "nothing to import"),
        ("[]", 3, "nothing to import"),
    ],
)
def test_an_import_ends_with_the_code_of_its_report(hiermem, tmp_path, content, code, told):
    path = tmp_path / "talk.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())

    run = hiermem("import", path)

    assert run.code == code
    assert told in run.out + run.err


def test_a_file_that_is_no_database_is_a_storage_failure(hiermem, tmp_path):
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.db").write_text("this is no database" * 100)

    run = hiermem("threads")

    assert run.code == 1
    assert run.err.startswith("error: reading failed: ")


def test_a_location_that_cannot_be_made_is_wrong_use(hiermem, tmp_path):
    (tmp_path / "file").write_text("")

    run = hiermem("init", "--location", tmp_path / "file" / "below")

    assert run.code == 2
    assert "choose another location" in run.err


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (InvalidInputError("a", "is\nodd"), 2, "a: is\\x0aodd"),
        (NotFoundError("gone"), 1, "gone"),
        (BackendUnavailableError("writing", "away"), 1, "writing failed: away"),
        (HierMemError("odd"), 1, "odd"),
        (PermissionError(13, "Permission denied", "/x"), 1, "Permission denied: /x"),
        (OSError("odd"), 1, "odd"),
    ],
)
def test_every_error_has_a_code_and_one_line(error, code, text):
    assert (exit_code_of(error), text_of(error)) == (code, text)
