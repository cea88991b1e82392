"""How long an answer holds, which one is a failure, and what a write says."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from core.working.values import Point, a_hit

from hiermem_core import ContextWarning, SearchResult
from hiermem_core.working.answers import (
    Answer,
    Answers,
    first_expiry,
    hits_in,
    is_current,
    is_weak,
    tells_of_failure,
)
from hiermem_core.working.values import Counters
from hiermem_core.working.writes import (
    adds,
    content_of,
    searches,
    words_of,
    writes,
    writing_methods,
)


def test_a_result_expires_with_its_first_entry():
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)

    assert first_expiry(SearchResult([a_hit(expires_at=late), a_hit(expires_at=early)])) == early
    assert first_expiry(SearchResult([a_hit()])) is None
    assert first_expiry([{"expires_at": early}]) is None


class Document:
    def __init__(self, expires_at=None):
        self.metadata = {} if expires_at is None else {"hiermem_expires_at": expires_at}


def test_documents_expire_with_the_entries_behind_them():
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)

    assert first_expiry([Document(), Document(late), Document(early)]) == early
    assert first_expiry([Document(late.isoformat()), Document(early.isoformat())]) == early
    assert first_expiry([Document("soon"), Document(7), Document(datetime(2026, 1, 1))]) is None  # noqa: DTZ001 - of no zone
    assert first_expiry([Document(), None, {}]) is None


@pytest.mark.parametrize(
    ("kept", "now", "holds"),
    [(1, 1, True), (2, 1, True), (1, 2, False), ("b", "a", False), (None, None, True)],
)
def test_an_answer_of_a_later_generation_is_as_good(kept, now, holds):
    assert is_current(kept, now) is holds


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        ({"success": False}, True),
        ({"error": "no"}, True),
        ('{"success": false, "results": []}', True),
        ({"success": True, "error": None}, False),
        ({"success": 0}, False),
        ('{"error": null}', False),
        ("{not json", False),
        ('{"a":' + "[" * 5000, False),
        ("error", False),
        ([], False),
        (None, False),
    ],
)
def test_d8_only_what_says_so_is_a_failure(result, failed):
    assert tells_of_failure(result) is failed


def test_the_hits_of_an_answer_are_counted_where_it_says_what_they_are():
    assert hits_in([1, 2]) == hits_in({"results": [1, 2], "count": 9}) == 2
    assert hits_in("text") is hits_in({"a": 1}) is hits_in(None) is None
    assert is_weak(SearchResult([], warnings=[ContextWarning("w")]))
    assert not is_weak(SearchResult())


def test_names_tell_what_a_tool_does():
    assert words_of("searchMemories2HTTPTool") == ["search", "memories", "2", "http", "tool"]
    for name in ("search", "searchMemories", "recall_memory", "find-notes", "knowledge_retriever"):
        assert searches(name), name
        assert not writes(name), name
    for name in (
        "addMemory",
        "store",
        "bulk_delete",
        "clear_namespace",
        "remember",
        "update_entry",
    ):
        assert writes(name), name
        assert not searches(name), name
    for name in ("get_memory", "list_stored", "weather", "get_update"):
        assert not writes(name), name
        assert not searches(name), name
    assert adds("add_memory")
    assert not adds("delete_memory")


def test_methods_that_write_are_found_in_both_colours():
    class Store:
        def add(self): ...
        def aadd(self): ...
        def bulk_delete(self): ...
        def get_stored(self): ...
        def search(self): ...
        def address(self): ...
        def _store(self): ...

    assert writing_methods(Store()) == {"aadd": True, "add": True, "bulk_delete": False}


@pytest.mark.parametrize(
    ("args", "kwargs", "content"),
    [
        (("tea",), {}, "tea"),
        ((), {"content": "tea"}, "tea"),
        (({"content": "tea"},), {}, "tea"),
        ((Point(1),), {}, None),
        ((), {"other": "tea"}, None),
        ((["tea"],), {}, None),
    ],
)
def test_what_a_write_adds_is_read_where_it_is_plain(args, kwargs, content):
    assert content_of(args, kwargs) == content


class Ticking:
    """A clock that goes on by one each time it is read, as far as `stands_at`."""

    def __init__(self, *, stands_at):
        self.now, self.stands_at = 0, stands_at

    def __call__(self):
        self.now = min(self.now + 1, self.stands_at)
        return self.now


def answer_until(moment):
    return Answer(str, generation=0, started=0, stale_at=moment, ends_at=moment)


@pytest.mark.parametrize("ends_at", range(2, 12))
def test_an_answer_may_grow_too_old_while_room_is_made_for_another(ends_at):
    counters = Counters()
    clock = Ticking(stands_at=ends_at + 1)
    answers = Answers(1, clock)
    answers.keep("first", answer_until(ends_at), counters)

    answers.keep("second", answer_until(1000), counters)

    assert answers.keys() == ["second"]
