"""Odd values, odd hosts, odd moments: nothing breaks, nothing is silent."""

import contextlib
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core import (
    ClosedError,
    ConfigurationError,
    FunctionCounter,
    HierMem,
    HierMemSettings,
    InvalidInputError,
    ModelInfo,
    NotFoundError,
    ThreadLoad,
    ThreadNotFoundError,
    TurnDraft,
    VersionConflictError,
)
from hiermem_core.models.moments import from_milliseconds, to_milliseconds
from hiermem_core.models.notes import ThreadState
from hiermem_core.testing.contracts.probes import reads_of
from hiermem_core.tokens.counters import ApproximateCounter

IMAGE = {"type": "media", "kind": "image", "uri": "https://example.com/a.png"}


@pytest.fixture
def hiermem():
    with HierMem.open(":memory:", counter=ApproximateCounter()) as opened:
        yield opened


@pytest.fixture
def thread(hiermem):
    return hiermem.tenant("alice").thread("t1")


@given(st.integers(-60_000_000_000_000, 200_000_000_000_000))
def test_a_time_in_whole_milliseconds_is_kept_to_the_millisecond(milliseconds):
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)

    assert from_milliseconds(to_milliseconds(moment)) == moment


def test_text_beside_parts_is_one_of_them_and_counts(thread):
    thread.append([{"role": "user", "content": "word " * 5000, "parts": [IMAGE]}])

    context = thread.context(budget_tokens=2000)

    assert [part["type"] for part in thread.turns()[0].parts] == ["text", "media"]
    assert context.receipt.total <= 2000
    assert "over_budget" in [warning.code for warning in context.warnings]


def test_text_in_parts_alone_is_the_content(thread):
    thread.append([TurnDraft(role="user", parts=[{"type": "text", "text": "hello there"}])])

    assert thread.context(budget_tokens=100).messages[0].content == "hello there"


def test_an_unknown_part_counts_by_its_text_whatever_else_is_in_it(hiermem, thread):
    words = "many words " * 1000
    odd = {"type": "newkind", "text": "", "data": words, "image": "data:image/png;base64,AAAA"}
    thread.append([{"role": "user", "content": "see", "parts": [odd]}])

    assert thread.info().tokens["approximate"] > hiermem.counter.count(words)


class Host:
    """A thread memory that returns whatever it is given."""

    def __init__(self, *turns):
        self.turns = turns

    def load(self, *, tenant_id, thread_id, budget_tokens, model, profile):
        if not self.turns:
            raise ThreadNotFoundError(thread_id)
        return ThreadLoad(self.turns)

    def save_context(self, **answered):
        """Learn nothing."""

    def get_state(self, *, tenant_id, thread_id):
        return ThreadState()

    def reset(self, *, tenant_id, thread_id):
        """Have nothing to clear."""


def test_a_host_that_repeats_and_miscounts_turns_breaks_nothing(hiermem, tmp_path):
    with HierMem.open(tmp_path, counter=ApproximateCounter()) as opened:
        thread = opened.tenant("alice").thread("t1")
        thread.append(
            [
                {"role": "user", "content": "keep", "pinned": True},
                {"role": "user", "content": "question"},
                {"role": "assistant", "content": "answer"},
            ]
        )
        turns = thread.turns()
    long = replace(turns[2], content="answer " * 5000)
    host = Host(*turns[:2], long, turns[1])
    with HierMem.open(tmp_path, counter=ApproximateCounter(), thread_memory=host) as opened:
        context = opened.tenant("alice").thread("t1").context(current="now", budget_tokens=500)

    assert [turn.content for turn in context.messages].count("keep") == 1
    assert context.receipt.total <= 500
    assert sum(opened.counter.count_turn(turn) for turn in context.messages) + 3 <= 500


def test_a_thread_that_only_the_host_knows_is_loaded():
    question = TurnDraft(role="user", content="from elsewhere")
    with HierMem.open(":memory:", counter=ApproximateCounter()) as source:
        stored = source.tenant("bob").thread("x").append([question])
    with HierMem.open(":memory:", counter=ApproximateCounter(), thread_memory=Host(*stored)) as one:
        context = one.tenant("alice").thread("t1").context(budget_tokens=100)

    assert [turn.content for turn in context.messages] == ["from elsewhere"]


def test_a_removal_may_be_repeated_and_minds_the_expected_seq(thread):
    thread.append([{"role": "user", "content": "a", "id": "1"}])
    final = {"role": "user", "content": "b", "id": "2"}
    thread.append([final], removing=["1"])

    thread.append([final], removing=["1"])
    with pytest.raises(VersionConflictError):
        thread.append([], removing=["2"], expected_seq=99)
    with pytest.raises(NotFoundError):
        thread.append([], removing=["ghost"])

    assert [turn.id for turn in thread.turns()] == ["2"]


@pytest.mark.parametrize("depth", [600, 2000, 100_000])
def test_what_is_nested_too_deeply_is_refused_or_kept_as_text(thread, depth):
    metadata: dict = {}
    for _ in range(depth):
        metadata = {"a": metadata}
    call = {"id": "c", "function": {"name": "f", "arguments": "[" * depth}}

    with pytest.raises(InvalidInputError):
        thread.append([{"role": "user", "content": "x", "metadata": metadata}])
    thread.append([{"role": "assistant", "content": None, "tool_calls": [call]}])

    assert thread.turns()[0].tool_calls[0].args == "[" * depth


def test_equal_means_equal_in_type_too(thread):
    def calling(flag):
        call = {"id": "c", "function": {"name": "f", "arguments": {"flag": flag}}}
        return {"role": "assistant", "content": None, "tool_calls": [call], "id": "1"}

    thread.append([calling(flag=True)])

    with pytest.raises(Exception, match="other content"):
        thread.append([calling(flag=1)])


def test_ids_that_cannot_be_stored_are_not_there(thread):
    thread.append([{"role": "user", "content": "a", "id": "1"}])

    assert thread.delete_turns(["\ud800"]) == {"\ud800": False}
    with pytest.raises(InvalidInputError):
        thread.delete_turns("1")


def test_another_counter_does_not_have_the_thread_read_whole(tmp_path):
    with HierMem.open(tmp_path, counter=ApproximateCounter()) as hiermem:
        hiermem.tenant("alice").thread("t1").append(
            [{"role": "user", "content": f"{number} " + "word " * 50} for number in range(3000)]
        )
    words = FunctionCounter(lambda text: len(text.split()), id="words")
    with HierMem.open(tmp_path, counter=words) as hiermem, reads_of(hiermem) as reads:
        context = hiermem.tenant("alice").thread("t1").context(budget_tokens=1000, recall=False)

    assert context.receipt.total > 900
    assert reads.rows < 400


def test_a_plain_function_counts():
    with HierMem.open(":memory:", counter=len) as hiermem:
        hiermem.tenant("alice").thread("t1").append([{"role": "user", "content": "four"}])

        assert hiermem.counter.id == "len"
        assert hiermem.counter.count("four") == 4


def test_a_model_of_unknown_output_keeps_a_quarter_for_it(thread):
    context = thread.context(current="hi", model=ModelInfo("m", 8192))

    assert (context.receipt.budget, context.receipt.reserve) == (6144, 2048)


def test_settings_fail_in_the_words_of_hiermem():
    with pytest.raises(ConfigurationError, match="busy_seconds"):
        HierMemSettings(busy_seconds=-1)


@pytest.mark.parametrize("location", ["a\0b", "~nosuchuser/x", "x" * 5000])
def test_a_location_that_is_no_path_is_a_configuration_error(location):
    with pytest.raises(ConfigurationError):
        HierMem.open(location)


def test_the_open_hiermem_of_a_location_is_found_by_any_spelling(tmp_path):
    first, second = HierMem.open(tmp_path / "m"), HierMem.open(tmp_path / "m")
    (tmp_path / "link").symlink_to(tmp_path / "m")
    second.close()

    found = [HierMem.opened(tmp_path / path) for path in ("m", "m/sub/..", "link", "m/memory.db")]
    first.close()

    assert all(found)
    assert HierMem.opened(tmp_path / "m") is None


def test_close_lets_open_transactions_end_and_leaves_no_file_open(tmp_path):
    process = psutil.Process()
    before = len(process.open_files())
    for round_ in range(5):
        hiermem = HierMem.open(tmp_path, counter=ApproximateCounter())
        threads = [hiermem.tenant("alice").thread(f"{round_}-{number}") for number in range(6)]

        def write(thread):
            with contextlib.suppress(ClosedError):
                while True:
                    thread.append([{"role": "user", "content": "x"}])

        workers = [threading.Thread(target=write, args=(thread,)) for thread in threads]
        for worker in workers:
            worker.start()
        hiermem.close(timeout=30)
        for worker in workers:
            worker.join()

    assert len(process.open_files()) == before


def test_an_observer_is_told_of_removals_and_resets():
    told = []
    with HierMem.open(":memory:", observer=told.append) as hiermem:
        thread = hiermem.tenant("alice").thread("t1")
        thread.append([{"role": "user", "content": "a", "id": "1"}])
        thread.append([], removing=["1"])
        thread.append([], removing=["1"], expected_seq=7)
        thread.reset()

    assert [type(event).__name__ for event in told] == [
        "TurnsAppended",
        "TurnsArchived",
        "NotesReset",
    ]
