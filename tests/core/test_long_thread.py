"""A thread that grows for long, under a model that fails now and then."""

from __future__ import annotations

import os

from hiermem_core import HierMem
from hiermem_core.learning.prompts import parse_prompt
from hiermem_core.models.warnings import warning_of
from hiermem_core.testing import ScriptedModel
from hiermem_core.testing.contracts.learning_base import reply, seqs
from hiermem_core.testing.contracts.samples import asked_and_answered

TURNS = int(os.environ.get("TEST_THREAD_TURNS", "600"))


def unreliable():
    """Return what replies well, but for every third call: it raises, or says nothing."""
    calls = 0

    def answer(messages):
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise ConnectionError("no network")
        if calls % 7 == 0:
            return ""
        last = parse_prompt(messages).turns[-1]["seq"]
        return reply(f"They spoke until {last}.", [f"Fact of {last}"])

    return answer


def test_p7_at_every_step_each_turn_is_shown_covered_or_counted(tmp_path):
    model = ScriptedModel([unreliable()])
    with HierMem.open(tmp_path, chat_model=model, inline_updates=True) as hiermem:
        thread = hiermem.tenant("acme").thread("t1")
        for number in range(TURNS // 2):
            thread.append(asked_and_answered([f"word {number} " * (number % 40)]))
            thread.save_context()
            context = thread.context(budget_tokens=800, recall=False)

            covered = thread.state().turn_count
            shown = {turn.seq for turn in context.messages if turn.seq}
            missed = [seq for seq in range(covered + 1, 2 * number + 3) if seq not in shown]
            told = warning_of(context.warnings, "turns_not_covered")
            assert (told.count if told else 0) == len(missed), number

        learned = [seq for call in model.calls for seq in seqs(call)]
        assert 2 * (number + 1) - thread.state().turn_count < 18
        assert set(learned) == set(range(1, max(learned) + 1))
        assert len(model.calls) <= TURNS / 2
