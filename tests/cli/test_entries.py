"""Remembering, reading, changing and deleting entries."""

from __future__ import annotations

import io
import sys

import pytest

from hiermem_core import HierMem

CITY = ("The office is in Lund", "--namespace", "profile/work", "--key", "city")


@pytest.fixture
def stdin(monkeypatch):
    """Give bytes on standard input."""

    def give(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return give


def test_remember_prints_the_id_that_get_takes(hiermem, remember):
    entry_id = remember("Prefers morning meetings")

    out = hiermem("get", entry_id).out

    assert out.endswith("\n  Prefers morning meetings\n")
    assert ["id", entry_id] in [line.split() for line in out.splitlines()]


def test_remember_says_where_it_stores(hiermem, tmp_path):
    run = hiermem("remember", "x", "--namespace", "a/b")

    place = f"{tmp_path / 'memory' / 'memory.db'}, tenant alice, namespace a/b"
    assert run.err == f"remembered in {place}\n"


def test_every_field_given_is_stored_and_in_the_json(hiermem):
    words = ("--type", "episodic", "--ttl", "60", "--source", "tool", "--user", "bob")
    tags = ("--tag", "größe", "--tag", "日本")

    value = hiermem(
        "remember", *CITY, *words, *tags, "--metadata", '{"n": 1, "f": 1.0, "o": null}', "--json"
    ).json

    entry = value["entry"]
    assert value["tenant"] == "alice"
    assert (entry["content"], entry["namespace"], entry["key"]) == (
        "The office is in Lund",
        "profile/work",
        "city",
    )
    assert (entry["type"], entry["ttl"], entry["source"], entry["user_id"]) == (
        "episodic",
        60.0,
        "tool",
        "bob",
    )
    assert entry["tags"] == ["größe", "日本"]
    assert entry["metadata"] == {"n": 1, "f": 1.0, "o": None}
    assert entry["expires_at"] > entry["created_at"]
    assert entry == hiermem("get", entry["id"], "--json").json["entry"]


def test_a_key_that_is_taken_is_replaced_and_that_is_told(hiermem, remember):
    first = remember(*CITY)

    run = hiermem("remember", "The office is in Malmö", *CITY[1:])

    assert run.out.strip() == first
    assert run.err.startswith("replaced, version 2, in ")
    assert "Malmö" in hiermem("get", "--namespace", "profile/work", "--key", "city").out


def test_the_same_text_again_is_counted_and_that_is_told(hiermem, remember):
    first = remember("Likes tea")

    run = hiermem("remember", "Likes  tea")

    assert run.out.strip() == first
    assert run.err.startswith("was there already, stored 2 times in ")


@pytest.mark.parametrize(
    ("data", "content"),
    [
        (b"zwei\nZeilen\n", "zwei\nZeilen"),
        (b"windows\r\n", "windows"),
        ("\ufeff日本".encode(), "日本"),
        (b"two ends\n\n", "two ends\n"),
    ],
)
def test_a_text_comes_from_standard_input(hiermem, stdin, data, content):
    stdin(data)

    assert hiermem("remember", "-", "--json").json["entry"]["content"] == content


def test_standard_input_that_is_no_text_is_refused(hiermem, stdin):
    stdin(b"caf\xe9")

    run = hiermem("remember", "-")

    assert run.code == 2
    assert "no UTF-8" in run.err


def test_an_update_changes_what_is_given_and_nothing_else(hiermem, remember):
    entry_id = remember(*CITY, "--tag", "old", "--ttl", "60", "--metadata", '{"a": 1}')
    before = hiermem("get", entry_id, "--json").json["entry"]

    run = hiermem("update", entry_id, "--tag", "new")

    after = hiermem("get", entry_id, "--json").json["entry"]
    changed = {name for name in after if after[name] != before[name]}
    assert run.out == f"{entry_id}: version 2\n"
    assert changed <= {"tags", "version", "updated_at"}
    assert after["tags"] == ["new"]


def test_an_update_can_clear_fields(hiermem, remember):
    given = ("--tag", "t", "--ttl", "60", "--metadata", '{"a": 1}', "--user", "bob")
    entry_id = remember(*CITY, *given)
    cleared = [
        word for name in ("key", "tags", "metadata", "ttl", "user") for word in ("--clear", name)
    ]

    entry = hiermem("update", entry_id, *cleared, "--json").json["entry"]

    assert [
        entry[name] for name in ("key", "tags", "metadata", "ttl", "expires_at", "user_id")
    ] == [
        None,
        [],
        {},
        None,
        None,
        None,
    ]


def test_another_version_than_expected_changes_nothing(hiermem, remember):
    entry_id = remember("x")

    run = hiermem("update", entry_id, "--content", "y", "--expected-version", "7")

    assert run.code == 1
    assert "expected 7, found 1" in run.err
    assert hiermem("get", entry_id, "--json").json["entry"]["content"] == "x"


def test_list_shows_the_newest_change_first_and_pages(hiermem, remember):
    for n in range(5):
        remember(f"fact {n}")

    run = hiermem("list", "--limit", "2", "--offset", "1", "--json")

    assert [entry["content"] for entry in run.json["entries"]] == ["fact 3", "fact 2"]
    assert run.err == "there may be more; to go on: --offset 3\n"
    assert "score" not in run.json["entries"][0]


def test_list_restricts_by_namespace_type_tag_user_and_filter(hiermem, remember):
    wanted = remember(
        *CITY, "--tag", "t", "--type", "working", "--user", "bob", "--metadata", '{"year": 2025}'
    )
    remember("elsewhere", "--namespace", "profile/workshop")

    for words in (
        ("--namespace", "profile/work"),
        ("--tag", "t"),
        ("--type", "working"),
        ("--user", "bob"),
        ("--filter", '{"year": {"$gte": 2024}}'),
    ):
        found = hiermem("list", *words, "--json").json["entries"]
        assert [entry["id"] for entry in found] == [wanted]


def test_a_mistyped_namespace_names_the_right_one(hiermem, remember):
    remember(*CITY)

    run = hiermem("list", "--namespace", "profile/wrk")

    assert (run.code, run.out) == (0, "")
    assert "did you mean profile/work" in run.err


def test_namespaces_lists_more_than_a_page_and_those_below_one(hiermem, tmp_path):
    with HierMem.open(tmp_path / "memory") as memory:
        names = [f"n{n:04}/sub" for n in range(1003)]
        memory.tenant("alice").memory.bulk_insert(
            [{"content": name, "namespace": name} for name in names], batch_size=1000
        )

    assert hiermem("namespaces", "--json").json["namespaces"] == names
    assert hiermem("namespaces", "n0007").out == "n0007/sub\n"
    assert "no entries there" in hiermem("namespaces", "ghost").err


def test_delete_by_id_and_by_key(hiermem, remember):
    by_id = remember("x")
    remember(*CITY)

    assert hiermem("delete", by_id, "--yes").out == f"{by_id}: deleted\n"
    assert hiermem("delete", "--namespace", "profile/work", "--key", "city", "--yes").code == 0
    assert hiermem("list", "--json").json["entries"] == []


def test_purge_removes_what_has_expired_until_none_remains(hiermem, tmp_path, remember):
    from datetime import UTC, datetime

    from hiermem_core.testing import FakeClock

    long_ago = FakeClock(datetime(2020, 1, 1, tzinfo=UTC))
    with HierMem.open(tmp_path / "memory", clock=long_ago) as memory:
        drafts = [{"content": f"note {n}", "ttl": 1} for n in range(2500)]
        memory.tenant("alice").memory.bulk_insert(drafts, batch_size=1000)
    kept = remember("stays")

    run = hiermem("purge", "--yes")

    assert run.out == "removed 2,500 expired entries\n"
    again = hiermem("purge", "--yes", "--json").json
    assert again == {"tenant": "alice", "removed": 0, "dry_run": False}
    assert hiermem("get", kept).code == 0


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("get", "nothing"), 1, "entry 'nothing' not found"),
        (("get", "--key", "nothing"), 1, "entry 'default/nothing' not found"),
        (("get",), 2, "give either ID, or --key"),
        (("get", "a", "--key", "b"), 2, "give either ID, or --key"),
        (("get", "a", "--namespace", "b"), 2, "an id needs none"),
        (("delete", "nothing", "--yes"), 1, "entry 'nothing' not found"),
        (("delete",), 2, "give either ID, or --key"),
        (("update", "nothing", "--tag", "x"), 1, "entry 'nothing' not found"),
        (("update", "nothing"), 2, "name a field"),
        (("update", "nothing", "--ttl", "5", "--clear", "ttl"), 2, "given and cleared"),
        (("update", "nothing", "--clear", "id"), 2, "--clear"),
        (("remember", " "), 2, "is blank"),
        (("remember", "x", "--type", "odd"), 2, "use one of episodic"),
        (("remember", "x", "--source", "odd"), 2, "use one of user"),
        (("remember", "x", "--ttl", "0"), 2, "more than 0 seconds"),
        (("remember", "x", "--namespace", "a//b"), 2, "empty segment"),
        (("remember", "x", "--metadata", "{'a': 1}"), 2, "quote it for the shell"),
        (("remember", "x", "--metadata", "[1]"), 2, "must be a JSON object"),
        (("remember", "x", "--metadata", '{"a": NaN}'), 2, "metadata"),
        (("remember", "x", "--metadata", "[" * 100_000), 2, "simpler"),
        (("list", "--filter", '{"a": {"$odd": 1}}'), 2, "is no operator"),
        (("list", "--limit", "1001"), 2, "exceeds the limit of 1000"),
        (("namespaces", "/a"), 2, "empty segment"),
    ],
)
def test_wrong_words_end_in_one_line_that_says_what_to_do(hiermem, talk, words, code, told):
    run = hiermem(*words)

    assert (run.code, run.out) == (code, "")
    assert told in run.err
    assert "Traceback" not in run.err


def test_a_memory_that_would_be_gone_at_once_is_refused(hiermem, monkeypatch):
    monkeypatch.setenv("HIERMEM_BACKEND", "in_memory")

    run = hiermem("remember", "x")

    assert run.code == 2
    assert "unset HIERMEM_BACKEND" in run.err


def test_an_error_holds_no_content(hiermem):
    for words in (
        ("remember", "s3cret", "--ttl", "-1"),
        ("remember", "s3cret", "--metadata", '{"a": "s3cret"'),
        ("remember", "s3cret" + "x" * 2**20),
    ):
        run = hiermem(*words)
        assert run.code == 2
        assert "s3cret" not in run.err


@pytest.mark.parametrize(
    "words",
    [
        ("get", "x"),
        ("list",),
        ("namespaces",),
        ("delete", "x", "--yes"),
        ("purge", "--yes"),
        ("recall", "x"),
    ],
)
def test_commands_that_store_nothing_never_create_a_location(hiermem, words, tmp_path):
    run = hiermem(*words)

    assert run.code == 2
    assert "run: hiermem init" in run.err
    assert not (tmp_path / "memory").exists()


def test_another_tenants_entries_are_not_there(hiermem, remember):
    entry_id = remember(*CITY)

    foreign, missing = (
        hiermem("get", name, "--tenant", "bob").err.replace(name, "ID")
        for name in (entry_id, "missing")
    )

    assert foreign == missing
    assert hiermem("list", "--tenant", "bob").out == ""
    assert hiermem("recall", "office", "--tenant", "bob").out == ""


def test_content_never_steers_the_terminal_and_cannot_forge_a_line(hiermem, remember):
    content = "\x1b[31mred\nprofile, semantic, user\n  \u202eback [bold]"
    entry_id = remember(content, "--tag", "a\x1bb", "--metadata", '{"k": "\\u001b[2J"}')

    for words in (("list",), ("get", entry_id), ("recall", "back")):
        out = hiermem(*words).out
        assert not set("\x1b\u202e") & set(out)
        assert "  profile, semantic, user\n" in out
        assert "[bold]" in out
