"""What each command prints."""

from __future__ import annotations

import pytest

from hiermem_core import HierMem


def test_init_creates_the_memory_once(hiermem, tmp_path):
    assert "memory.db: created" in hiermem("init").out
    assert "is there already" in hiermem("init").out
    assert (tmp_path / "memory" / "memory.db").is_file()
    assert hiermem("init", "--location", tmp_path / "other.db", "--json").json["created"] is True


def test_import_reports_and_says_where_it_stores(hiermem, conversation, tmp_path):
    run = hiermem("import", conversation({"role": "user", "content": "hi"}))

    assert run.out.splitlines()[-1] == "imported 1, skipped 0, failed 0 of 1"
    assert f"importing into {tmp_path / 'memory' / 'memory.db'}, tenant alice" in run.err
    assert hiermem("import", tmp_path / "talk.jsonl").out.endswith("of 1 (unchanged 1)\n")


def test_import_can_name_the_thread_and_size_its_batches(hiermem, conversation):
    path = conversation(*[{"role": "user", "content": str(n)} for n in range(5)])

    assert hiermem("import", path, "--thread", "new", "--batch-size", 2).code == 0
    assert hiermem("threads", "--json").json["threads"][0]["thread"] == "new"


def test_threads_lists_every_thread_with_its_figures(hiermem, talk):
    head, line = hiermem("threads").out.splitlines()

    assert head.split() == ["thread", "turns", "tokens", "created", "updated"]
    assert line.split()[:2] == ["talk", "8"]


def test_threads_lists_more_threads_than_a_page_holds(hiermem, conversation):
    names = [f"thread {n:04}" for n in range(1001)]
    hiermem(
        "import",
        conversation(*[{"role": "user", "content": "x", "thread_id": name} for name in names]),
    )

    found = hiermem("threads", "--json").json["threads"]

    assert [info["thread"] for info in found] == names


def test_a_tenant_without_threads_is_no_error(hiermem):
    hiermem("init")

    run = hiermem("threads", "--tenant", "bob")

    assert (run.code, run.out, run.err) == (0, "", "tenant bob has no threads\n")


def test_show_prints_every_turn_whole_with_calls_and_their_answers(hiermem, talk):
    out = hiermem("show", talk).out

    assert out.startswith("#1 user, Mara, ")
    assert "  Hello there\n" in out
    assert '  calls look {"at":"sky"} (c1)\n' in out
    assert "#5 tool, answers c1, " in out
    assert "blue " * 49 + "blue" in out
    assert "昨日は雨でした" in out


def test_show_prints_the_newest_turns_in_their_order(hiermem, talk):
    assert [turn["seq"] for turn in hiermem("show", talk, "--last", 2, "--json").json["turns"]] == [
        7,
        8,
    ]
    assert hiermem("show", talk, "--last", 0).out == ""


def test_show_reads_threads_longer_than_a_page(hiermem, conversation):
    path = conversation(*[{"role": "user", "content": str(n)} for n in range(1203)])
    hiermem("import", path)

    turns = hiermem("show", "talk", "--json").json["turns"]

    assert [turn["content"] for turn in turns] == [str(n) for n in range(1203)]


def test_show_prints_archived_turns_when_asked(hiermem, talk, tmp_path):
    with HierMem.open(tmp_path / "memory") as memory:
        memory.tenant("alice").thread(talk).replace([{"role": "user", "content": "new"}])

    assert "new" in hiermem("show", talk).out
    archived = hiermem("show", talk, "--archived")
    assert "archived\n  Hello there" in archived.out
    assert "new" not in archived.out


def test_show_names_media_that_text_cannot_show(hiermem, conversation):
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    text = {"type": "text", "text": "see"}
    hiermem("import", conversation({"role": "user", "content": [text, image]}))

    assert "  see\n  [media image]\n" in hiermem("show", "talk").out


def test_context_prints_tokens_per_section_and_the_messages(hiermem, talk):
    run = hiermem("context", talk, "--question", "And tomorrow?", "--system", "Be brief")

    assert " of 4,000 tokens, by " in run.out
    assert {"section", "system", "window", "current", "framing"} <= set(run.out.split())
    assert "system\n  Be brief\n" in run.out
    assert "  And tomorrow?\n" in run.out


def test_context_says_what_was_left_out_and_why(hiermem, talk):
    run = hiermem("context", talk, "--budget", 60)

    assert "turns_trimmed: 6 turns left out to fit the budget (" in run.out
    assert "seq 1 to 6" in run.out
    assert "Hello there" not in run.out


def test_context_as_json_adds_up(hiermem, talk):
    value = hiermem("context", talk, "--budget", 60, "--json").json

    assert sum(value["sections"].values()) == value["tokens"] <= value["budget"] == 60
    assert value["warnings"][0]["code"] == "turns_trimmed"
    assert [message["role"] for message in value["messages"]] == ["user", "assistant"]


def test_stats_tells_figures_and_health(hiermem, talk):
    out = hiermem("stats").out

    assert ["turns", "8"] in [line.split() for line in out.splitlines()]
    assert ["health", "healthy"] in [line.split() for line in out.splitlines()]


def test_tenants_see_their_own_threads_only(hiermem, talk):
    assert hiermem("threads", "--tenant", "bob", "--json").json["threads"] == []
    assert hiermem("show", talk, "--tenant", "bob").code == 1


def test_estimated_counts_say_how_to_get_exact_ones(hiermem, monkeypatch):
    monkeypatch.setattr("hiermem_core.tokens.tiktoken_counter.rank_folders", lambda folder: [])

    run = hiermem("tokens", "count", "hello world")

    assert "tokens by approximate" in run.out
    assert "run: hiermem tokens fetch" in run.err
    assert hiermem("tokens", "count", "hello world", "--quiet").err == ""


@pytest.mark.parametrize(
    "words",
    [
        ("init",),
        ("import", "talk.jsonl"),
        ("threads",),
        ("show", "talk"),
        ("context", "talk"),
        ("stats",),
        ("tokens", "count", "some text"),
        ("demo", "--file", "talk.jsonl"),
    ],
)
def test_quiet_leaves_stderr_empty_and_json_is_one_object(hiermem, talk, words):
    run = hiermem(*words, "--json", "--quiet")

    assert isinstance(run.json, dict)
    assert (run.code, run.err) == (0, "")
    assert run.out.isascii()
