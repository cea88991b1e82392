"""Long real conversations: the LoCoMo data set (CC BY-NC), by path; it is never in here."""

import json
import os
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import tiktoken

from hiermem_core import HierMem
from hiermem_core.importing import import_memories
from hiermem_core.tokens.tiktoken_counter import find_ranks, load_encoding, rank_folders

DATA = Path(os.environ.get("LOCOMO_FILE", "locomo.json"))
BUDGETS = [50, 51, 64, 100, 128, 200, 333, 500, 1000, 2000, 4000, 8000, 12_000, 20_000]
QUESTION = "What did you say about the support group you went to?"

pytestmark = pytest.mark.skipif(
    not DATA.is_file(), reason="LoCoMo may not be distributed; name its file in LOCOMO_FILE"
)


def turns_of(sample):
    """Return the turns of a sample, one minute apart within each session."""
    talk = sample["conversation"]
    numbers = sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        begin = datetime.strptime(
            f"{talk[f'session_{number}_date_time']} +0000", "%I:%M %p on %d %B, %Y %z"
        )
        for minute, said in enumerate(talk[f"session_{number}"]):
            yield {
                "role": "user" if said["speaker"] == talk["speaker_a"] else "assistant",
                "name": said["speaker"],
                "id": said["dia_id"],
                "content": said["text"],
                "created_at": (begin + timedelta(minutes=minute)).isoformat(),
            }


def count_independently(messages):
    """Count by OpenAI's published recipe, with nothing of ours but the rank file's path."""
    encoding = load_encoding("o200k_base", find_ranks("o200k_base", rank_folders(None)))
    assert isinstance(encoding, tiktoken.Encoding)
    total = 3
    for message in messages:
        total += 3 + len(encoding.encode(message["role"], disallowed_special=()))
        total += len(encoding.encode(message["content"], disallowed_special=()))
        total += 1 + len(encoding.encode(message["name"])) if "name" in message else 0
    return total


@pytest.fixture(scope="module", params=range(5))
def thread(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("locomo")
    sample = json.loads(DATA.read_text(encoding="utf-8"))[request.param]
    lines = [json.dumps(turn, ensure_ascii=False) for turn in turns_of(sample)]
    (folder / "talk.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with HierMem.open(folder / "memory") as hiermem:
        alice = hiermem.tenant("alice")
        report = import_memories(folder / "talk.jsonl", alice)
        assert (report.imported, report.failed) == (len(lines), 0)
        yield alice.thread("talk")


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_context_never_exceeds_its_budget(thread, budget):
    context = thread.context(current=QUESTION, budget_tokens=budget)
    total = count_independently(context.to_openai())

    assert total <= budget
    assert total == context.receipt.total
    assert context.messages[-1].role == "user"


def test_a_larger_budget_never_keeps_fewer_turns_and_all_are_accounted_for(thread):
    kept = []
    for budget in BUDGETS:
        context = thread.context(current=QUESTION, budget_tokens=budget, recall=False)
        dropped = ("turns_trimmed", "leading_turns_dropped", "blank_turns_dropped")
        left_out = sum(w.count for w in context.warnings if w.code in dropped)
        kept.append(len(context.messages))

        assert len(context.messages) - 1 + left_out == thread.info().turns

    assert kept == sorted(kept)
