"""Updates of notes where a process is killed, forked, or cannot write."""

from __future__ import annotations

import json
import os

import pytest
from core.children import finish, run, run_until_killed, start
from failing_databases import read_only

from hiermem_core import ApproximateCounter, HierMem, ThreadState
from hiermem_core.models.events import UpdateFailed
from hiermem_core.testing import ScriptedModel
from hiermem_core.testing.contracts.learning_base import reply, seqs, talk, talk_in

SECONDS = 30

LEARN_AND_DIE = """
from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import FaultPlan, ScriptedModel
from hiermem_core.testing.contracts.learning_base import reply, talk

model = ScriptedModel([reply(f"Summary {n}.", [f"Fact {n}"]) for n in range(99)], window=2000)
hiermem = HierMem.open(sys.argv[1], counter=ApproximateCounter(), chat_model=model)
with FaultPlan(sys.argv[2], action="kill", count=int(sys.argv[3])):
    for _ in range(40):
        talk(hiermem, 1)
        hiermem.when_idle()
"""

ENDS_WITH_A_HANGING_MODEL = """
import threading
from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import ScriptedModel
from hiermem_core.testing.contracts.learning_base import reply, talk

model = ScriptedModel([reply("Never.")])
model.gate = threading.Event()
hiermem = HierMem.open(sys.argv[1], counter=ApproximateCounter(), chat_model=model)
talk(hiermem, 4)
assert model.waiting.wait(30)
print("ended")
"""


def opened(location, **options):
    return HierMem.open(location, counter=ApproximateCounter(), **options)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize(
    "point", ["updates.after_enqueue", "updates.after_model", "updates.before_commit"]
)
def test_b33_after_a_kill_anywhere_the_notes_hold_every_turn_once(tmp_path, point, count):
    run_until_killed(LEARN_AND_DIE, tmp_path, point, count)

    model = ScriptedModel([reply("All of it.", ["The last fact"])])
    with opened(tmp_path, chat_model=model, inline_updates=True) as hiermem:
        thread = hiermem.tenant("acme").thread("t1")
        turns, state = thread.turns(), thread.state()
        hiermem.updates.resume()
        resumed = thread.state()
        talk_in(thread, 3)

        learned = [seq for call in model.calls for seq in seqs(call)]
        texts = [fact.text for fact in thread.state().facts]
        assert learned == list(range(state.turn_count + 1, thread.state().turn_count + 1))
        assert len(turns) - resumed.turn_count < 6
        assert len(texts) == len(set(texts))
        assert [fact for fact in texts if fact != "The last fact"] == [
            fact.text for fact in state.facts
        ]


def test_a_hanging_model_keeps_no_process_alive_and_prints_nothing(tmp_path):
    printed = run(ENDS_WITH_A_HANGING_MODEL, tmp_path)

    with opened(tmp_path) as hiermem:
        assert printed == "ended\n"
        assert len(hiermem.tenant("acme").thread("t1").turns()) == 8


def test_b37_where_the_database_cannot_be_written_no_model_is_paid_and_it_is_told(tmp_path):
    events, model = [], ScriptedModel([reply("They spoke.")])
    with opened(tmp_path, chat_model=model, observer=events.append) as hiermem:
        thread = talk(hiermem, 2)
        thread.append([{"role": "user", "content": "so?"}, {"role": "assistant", "content": "yes"}])
        with read_only(hiermem):
            thread.save_context()
            assert hiermem.when_idle(SECONDS)
        failed = [told for told in events if isinstance(told, UpdateFailed)]
        calls = len(model.calls)
        thread.save_context()
        assert hiermem.when_idle(SECONDS)

        assert [told.stage for told in failed] == ["enqueue"]
        assert calls == 0
        assert thread.state().turn_count == 6


def test_a_forked_child_learns_by_a_thread_of_its_own(tmp_path):
    model = ScriptedModel([reply("They spoke.")])
    with opened(tmp_path, chat_model=model) as hiermem:
        talk(hiermem, 3)
        assert hiermem.when_idle(SECONDS)
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            try:
                talk(hiermem, 3, name="child")
                idle = hiermem.when_idle(SECONDS)
                state = hiermem.tenant("acme").thread("child").state()
                os.write(write, json.dumps([idle, state.turn_count]).encode())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            told = json.loads(pipe.read())
        os.waitpid(child, 0)

        assert told == [True, 6]
        assert hiermem.tenant("acme").thread("t1").state() != ThreadState()


TWO_PROCESSES = """
from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import ScriptedModel
from hiermem_core.testing.contracts.learning_base import reply, talk_in

name = sys.argv[2]
model = ScriptedModel([reply(f"{name} {n}.", [f"{name} {n}"]) for n in range(99)])
with HierMem.open(sys.argv[1], counter=ApproximateCounter(), chat_model=model) as hiermem:
    talk_in(hiermem.tenant("acme").thread("t1"), 30)
    assert hiermem.when_idle(30)
    print(len(model.calls))
"""


def test_two_processes_that_learn_one_thread_waste_calls_and_nothing_else(tmp_path):
    with opened(tmp_path):
        children = [start(TWO_PROCESSES, tmp_path, name) for name in ("one", "two")]
        ended = [finish(child) for child in children]

    model = ScriptedModel([reply("The rest.", ["the rest"])])
    with opened(tmp_path, chat_model=model, inline_updates=True) as hiermem:
        hiermem.updates.resume()
        thread = hiermem.tenant("acme").thread("t1")
        state, turns = thread.state(), thread.turns()
        sources = [seq for fact in state.facts for source in fact.sources for seq in source]
        assert [status for status, _, _ in ended] == [0, 0], ended
        assert len(turns) == 120
        assert state.turn_count > 114
        assert len(sources) == len(set(sources))
        assert sorted(sources) == list(range(1, state.turn_count + 1))
