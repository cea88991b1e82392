"""What an import stores, and what a second one does."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from hiermem_core import BackendError, BackendUnavailableError, InvalidInputError
from hiermem_core.importing import import_memories
from hiermem_core.testing import FaultPlan, InjectedFault

CONVERSATION = Path(__file__).parents[2] / "examples" / "conversation.jsonl"


def talk(count, **more):
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": f"turn {n}", **more} for n in range(count)]


def test_turns_arrive_in_the_source_s_order_with_its_times(alice, source, said):
    messages = talk(5, created_at="2026-03-02T09:14:05+01:00")

    report = import_memories(source(messages), alice, batch_size=2)

    assert said() == [(message["role"], message["content"]) for message in messages]
    assert {turn.created_at.isoformat() for turn in alice.thread("talk").turns()} == {
        "2026-03-02T08:14:05+00:00"
    }
    assert (report.found, report.imported, report.threads) == (5, 5, ("talk",))
    assert (report.status, report.exit_code) == ("complete", 0)


def test_a_second_import_stores_nothing_and_counts_unchanged(alice, source):
    path = source(talk(7))
    import_memories(path, alice, batch_size=3)
    before = alice.thread("talk").turns()

    report = import_memories(path, alice, batch_size=4)

    assert alice.thread("talk").turns() == before
    assert (report.imported, report.reasons) == (0, {"unchanged": 7})
    assert (report.status, report.exit_code, report.threads) == ("complete", 0, ("talk",))


def test_a_grown_source_gives_its_new_turns_only(alice, source, said):
    import_memories(source(talk(4)), alice)

    report = import_memories(source(talk(6)), alice)

    assert (report.imported, report.skipped) == (2, 4)
    assert len(said()) == 6


def test_changed_content_under_one_id_is_a_conflict_and_stops_nothing_else(alice, source, said):
    messages = [message | {"id": f"m{n}"} for n, message in enumerate(talk(6))]
    import_memories(source(messages[:4]), alice)
    messages[1]["content"] = "changed"

    report = import_memories(source(messages), alice)

    assert said()[1] == ("assistant", "turn 1")
    assert len(said()) == 6
    assert [(i.ref, i.outcome) for i in report.items if i.reason == "conflict"] == [
        ("m1", "skipped")
    ]
    assert report.reasons == {"unchanged": 3, "conflict": 1}
    assert (report.imported, report.exit_code) == (2, 0)


def test_one_id_twice_in_a_source_is_stored_once(alice, source, said):
    same = {"role": "user", "content": "a", "id": "m1"}

    report = import_memories(source([same, same, same | {"content": "b"}]), alice)

    assert said() == [("user", "a")]
    assert report.imported == 1
    assert report.reasons == {"unchanged": 1, "conflict": 1}


def test_a_source_of_conflicts_alone_is_no_success(alice, source):
    import_memories(source([{"role": "user", "content": "a", "id": 1}]), alice)

    report = import_memories(source([{"role": "user", "content": "b", "id": 1}]), alice)

    assert (report.status, report.exit_code) == ("empty", 3)


def test_i47_new_turns_of_a_source_do_not_follow_local_ones(alice, source, said):
    import_memories(source(talk(3)), alice)
    alice.thread("talk").append([{"role": "user", "content": "said here"}])

    report = import_memories(source(talk(5)), alice)

    assert said()[3:] == [("user", "said here")]
    assert report.reasons == {"unchanged": 3, "thread_continued": 2}
    assert all("line" in item.ref for item in report.items)


def test_interleaved_threads_are_not_mixed(alice, source, said):
    messages = [
        {"role": "user", "content": f"{name} {n}", "thread_id": name}
        for n in range(25)
        for name in ("red", "blue", "green")
    ]

    report = import_memories(source(messages), alice, batch_size=10)

    assert report.threads == ("red", "blue", "green")
    assert said("blue") == [("user", f"blue {n}") for n in range(25)]


def test_i40_tenants_import_one_source_side_by_side(memory, alice, source):
    path = source(talk(2))
    import_memories(path, alice)
    bob = memory.tenant("bob")

    assert bob.threads() == []
    assert import_memories(path, bob).imported == 2
    ids = [[turn.id for turn in who.thread("talk").turns()] for who in (alice, bob)]
    assert ids[0] == ids[1]


def test_two_imports_of_one_source_at_once_store_each_record_once(alice, source):
    path = source(talk(200))
    reports = []

    def work():
        reports.append(import_memories(path, alice, batch_size=7))

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [turn.content for turn in alice.thread("talk").turns()] == [
        message["content"] for message in talk(200)
    ]
    assert [(report.found, report.failed) for report in reports] == [(200, 0)] * 2


def test_a_thread_name_given_replaces_the_source_s(alice, source, said):
    report = import_memories(source(talk(2, thread_id="old")), alice, thread="new")

    assert report.threads == ("new",)
    assert len(said("new")) == 2


def test_a_thread_name_is_refused_for_several_threads_before_anything_is_stored(alice, source):
    path = source([*talk(600), *talk(1, thread_id="other")])

    with pytest.raises(InvalidInputError, match="several threads"):
        import_memories(path, alice, thread="new")
    assert alice.threads() == []


def test_progress_is_told_after_every_batch(alice, source):
    path = source(talk(5))
    steps = []

    import_memories(path, alice, batch_size=2, progress=steps.append)

    assert [(step.found, step.imported) for step in steps] == [(2, 2), (4, 4), (5, 5)]
    assert steps[-1].read_bytes == steps[-1].total_bytes == path.stat().st_size


@pytest.mark.parametrize("size", [0, -1, 10_001])
def test_a_batch_size_out_of_range_is_refused(alice, source, size):
    with pytest.raises(InvalidInputError, match="batch_size"):
        import_memories(source(talk(1)), alice, batch_size=size)


def test_what_a_fault_interrupts_leaves_whole_batches_and_the_same_import_goes_on(alice, source):
    path = source(talk(50))
    with FaultPlan("rows.before_commit", count=4), pytest.raises(InjectedFault):
        import_memories(path, alice, batch_size=10)

    assert alice.thread("talk").info().turns == 30
    assert import_memories(path, alice, batch_size=10).imported == 20


class Failing:
    """A thread whose storage refuses a word, or everything."""

    def __init__(self, thread, error, word):
        self._thread, self._error, self._word = thread, error, word

    def append(self, turns, **options):
        if any(self._word in turn.content for turn in turns):
            raise self._error
        return self._thread.append(turns, **options)

    def __getattr__(self, name):
        return getattr(self._thread, name)


@pytest.fixture
def failing(alice, monkeypatch):
    def install(error, word):
        open_thread = alice.thread
        monkeypatch.setattr(alice, "thread", lambda name: Failing(open_thread(name), error, word))

    return install


def test_a_record_that_the_storage_refuses_fails_alone(alice, source, failing):
    failing(BackendError("writing", "refused"), "turn 3")

    report = import_memories(source(talk(6)), alice)

    assert (report.imported, report.failed) == (5, 1)
    assert [(item.ref, item.reason) for item in report.items] == [("line 4", "store_error")]


def test_a_storage_that_is_away_ends_the_import(alice, source, failing):
    failing(BackendUnavailableError("writing", "the disk is full"), "")

    with pytest.raises(BackendUnavailableError):
        import_memories(source(talk(6)), alice)


def test_the_source_is_never_changed(alice, source):
    path = source(talk(3))
    path.chmod(0o444)
    before = (path.read_bytes(), path.stat().st_mtime_ns)

    import_memories(path, alice)

    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert sorted(other.name for other in path.parent.iterdir()) == ["memory", "talk.jsonl"]


def test_a_real_conversation_arrives_whole(alice):
    lines = [json.loads(line) for line in CONVERSATION.read_text(encoding="utf-8").splitlines()]

    report = import_memories(CONVERSATION, alice)

    turns = alice.thread("conversation").turns()
    assert report.imported == len(lines) == len(turns)
    assert [turn.content for turn in turns] == [line["content"] for line in lines]
    assert [json.loads(turn.origin.dump) for turn in turns] == lines
    assert all(turn.call_seq for turn in turns if turn.role == "tool")


@pytest.mark.parametrize("batch_size", [1, 2, 500])
def test_another_file_of_the_same_name_is_not_mixed_into_the_thread(alice, tmp_path, batch_size):
    for owner, texts in (("anna", ["my PIN?", "1111"]), ("bert", ["hi", "yes?", "what?", "bye"])):
        (tmp_path / owner).mkdir()
        lines = [json.dumps({"role": "user", "content": text}) for text in texts]
        (tmp_path / owner / "chat.jsonl").write_text("\n".join(lines), encoding="utf-8")

    import_memories(tmp_path / "anna" / "chat.jsonl", alice)
    report = import_memories(tmp_path / "bert" / "chat.jsonl", alice, batch_size=batch_size)

    assert [turn.content for turn in alice.thread("chat").turns()] == ["my PIN?", "1111"]
    assert [item.reason for item in report.items] == ["conflict"] * 4
    assert "--thread NAME" in report.items[-1].detail
    assert report.imported == 0
