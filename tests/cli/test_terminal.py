"""What reaches a terminal, a pipe or a file."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from terminals import drained

from hiermem_core.displays.printing import printable, table

ESCAPE = "\x1b[31mred\x1b[0m \x9b2J \x07 \r over \u202egnirts\u202c [bold]markup[/bold] :smile:"


def finished(process, **options):
    out, err = process.communicate(timeout=60, **options)
    return process.returncode, out.decode(), err.decode()


@given(st.text())
def test_printable_text_holds_no_control_characters_and_loses_nothing(text):
    shown = printable(text)

    assert not any((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 for c in shown)
    assert shown.isascii() or set(shown) <= set(text) | set(map(chr, range(128)))
    assert printable(shown) == shown


@given(st.text("abc\n日本 \t,.", max_size=80))
def test_harmless_text_is_printed_as_it_is(text):
    assert printable(text) == text


def test_content_never_steers_the_terminal_and_is_never_markup(hiermem, conversation):
    message = {"role": "user", "content": ESCAPE, "name": "\x1b]0;owned\x07", "thread_id": "[red]"}
    hiermem("import", conversation(message))

    for words in (("show", "[red]"), ("context", "[red]"), ("threads",)):
        run = hiermem(*words)
        assert not set("\x1b\x9b\x07\r\u202e") & set(run.out)
    assert "[bold]markup[/bold] :smile:" in hiermem("show", "[red]").out
    assert r"\x1b[31mred\x1b[0m \x9b2J \x07 \x0d over \u202egnirts" in hiermem("show", "[red]").out
    assert "[red]" in hiermem("threads").out


def test_content_cannot_forge_the_line_of_a_turn(hiermem, conversation):
    hiermem("import", conversation({"role": "user", "content": "hi\n#2 assistant\n  I agree"}))

    lines = hiermem("show", "talk").out.splitlines()

    assert [line for line in lines if not line.startswith("  ")] == lines[:1]


def test_long_names_and_turns_are_neither_cut_nor_wrapped_outside_a_terminal(hiermem, conversation):
    name, text = "n" * 300, "word " * 20_000
    hiermem("import", conversation({"role": "user", "content": text, "thread_id": name}))

    assert name in hiermem("threads").out
    assert text in hiermem("show", name).out
    assert "…" not in hiermem("threads").out


def test_columns_line_up_by_what_they_take_on_the_screen():
    assert table(("name", "count"), [("日本", "1"), ("x", "1,000")]) == (
        "name  count\n日本      1\nx     1,000"
    )


def test_a_reader_that_leaves_early_ends_the_command_quietly(spawn, hiermem, conversation):
    hiermem("import", conversation(*[{"role": "user", "content": "x" * 1000}] * 2000))
    process = spawn("show", "talk")

    process.stdout.readline()
    process.stdout.close()

    assert (process.wait(60), process.stderr.read()) == (0, b"")
    process.stderr.close()


def test_a_reader_that_never_reads_does_not_hide_the_result_of_an_import(spawn, tmp_path):
    (tmp_path / "talk.jsonl").write_text("not JSON\nnot JSON\n")
    process = spawn("import", "talk.jsonl", "--quiet")
    process.stdout.close()

    assert (process.wait(60), process.stderr.read()) == (1, b"")
    process.stderr.close()


def test_a_full_disk_behind_the_output_is_a_failure(spawn, talk):
    with Path("/dev/full").open("wb") as full:
        process = spawn("show", talk, stdout=full)
        err = process.communicate(timeout=60)[1].decode()

    assert process.returncode == 1
    assert err == "error: No space left on device: standard output\n"


def test_an_output_that_knows_only_ascii_gets_escapes(spawn, talk, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")

    code, out, err = finished(spawn("show", talk))

    assert (code, err) == (0, "")
    assert r"\u6628\u65e5" in out


def test_closed_outputs_are_no_error(talk):
    command = f"'{sys.executable}' -m hiermem_core.cli show {talk}"

    assert exit_code(f"{command} >&- 2>&-") == 0
    assert exit_code(f"{command}x >&- 2>&-") == 1


def exit_code(line):
    return subprocess.run(line, shell=True, check=False).returncode


def test_i50_without_a_terminal_there_is_no_bar_and_stdout_is_one_object(spawn, conversation):
    conversation({"role": "user", "content": "hi"})

    code, out, err = finished(spawn("import", "talk.jsonl", "--json"))

    assert code == 0
    assert out.startswith("{")
    assert "\x1b" not in out + err
    assert len(err.splitlines()) == 1


def test_on_a_terminal_there_is_a_bar_on_stderr_only(spawn, conversation, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    conversation(*[{"role": "user", "content": str(n)} for n in range(500)])
    parent, child = pty.openpty()
    process = spawn("import", "talk.jsonl", "--batch-size", 100, stderr=child)
    os.close(child)
    out = process.stdout.read().decode()
    shown = drained(parent)

    assert process.wait(60) == 0
    assert "━" in shown
    assert "\x1b" not in out
    assert out.endswith("imported 500, skipped 0, failed 0 of 500\n")
    process.stdout.close()


def test_a_narrow_terminal_folds_a_table_and_loses_nothing_of_it(spawn, hiermem, conversation):
    hiermem("import", conversation({"role": "user", "content": "x", "thread_id": "q" * 200}))
    parent, child = pty.openpty()
    termios.tcsetwinsize(child, (24, 90))
    process = spawn("threads", stdin=child, stdout=child)
    os.close(child)
    shown = drained(parent)

    assert process.wait(60) == 0
    assert shown.count("q") == 200
    assert max(map(len, shown.splitlines())) <= 90
    assert not set("\x1b…") & set(shown)
    process.stderr.close()


def test_an_interrupted_import_exits_130_and_goes_on_when_repeated(spawn, hiermem, conversation):
    messages = [{"role": "user", "content": f"turn {n} " + "x " * 200} for n in range(3000)]
    path = conversation(*messages)
    process = spawn("import", path, "--batch-size", 5)  # so that it takes a while
    assert process.stderr.readline().startswith(b"importing into")
    process.send_signal(signal.SIGINT)

    code, out, err = finished(process)

    assert (code, out) == (130, "")
    assert err.endswith("interrupted; what is stored stays, and the same command goes on\n")
    assert hiermem("import", path).code == 0
    assert hiermem("threads", "--json").json["threads"][0]["turns"] == 3000


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from hiermem_core.cli import main; main(['--help'])\n"
        "heavy = {'sqlalchemy', 'pydantic', 'tiktoken', 'numpy'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (run.returncode, run.stderr) == (0, "")


def test_a_fresh_home_holds_the_memory_in_the_users_data_folder(
    spawn, environment, monkeypatch, tmp_path, conversation
):
    monkeypatch.delenv("HIERMEM_LOCATION")
    (tmp_path / "home").mkdir()
    conversation({"role": "user", "content": "hi"})

    before = finished(spawn("threads"))
    imported = finished(spawn("import", "talk.jsonl"))
    after = finished(spawn("threads", "--json"))

    assert before[0] == 2
    assert "run: hiermem init" in before[2]
    assert (imported[0], after[0]) == (0, 0)
    assert list((tmp_path / "home").rglob("memory.db"))


def test_a_home_that_is_no_name_ends_without_a_traceback(spawn, monkeypatch):
    monkeypatch.delenv("HIERMEM_LOCATION")
    monkeypatch.setenv("HOME", "")

    code, _, err = finished(spawn("threads"))

    assert code == 2
    assert len(err.splitlines()) == 1
