"""Learning notes under engines: never at the cost of an answer, and nothing is lost."""

from __future__ import annotations

import warnings

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatSummaryMemoryBuffer
from llamaindex.samples import assistant, user
from troubled_models import GOOD, troubles

from hiermem_core import HierMem, ThreadState
from hiermem_core.learning.prompts import parse_prompt
from hiermem_core.models.events import UpdateFailed
from hiermem_core.testing import ScriptedModel
from hiermem_core.testing.contracts.learning_base import reply, seqs
from llamaindex_hiermem import HierMemChatMemoryBuffer

pytestmark = pytest.mark.filterwarnings("ignore::llamaindex_hiermem.memory.HierMemTrimWarning")

SECONDS = 30


def buffer_of(hiermem, limit=500):
    return HierMemChatMemoryBuffer.from_defaults(
        tenant=hiermem.tenant("acme"), chat_store_key="t1", token_limit=limit, counting="core"
    )


def chat(hiermem, count):
    """Ask an engine that many questions on one thread; return its answers."""
    memory = buffer_of(hiermem, 5000)
    engine = SimpleChatEngine.from_defaults(llm=MockLLM(max_tokens=5), memory=memory)
    return [engine.chat(f"question {n}").response for n in range(count)]


@pytest.mark.parametrize("trouble", troubles())
def test_l12_whatever_the_summariser_does_engines_answer_and_a_good_one_learns_it_all(
    durable_location, trouble
):
    events, options = [], troubles()[trouble]
    hiermem = HierMem.open(durable_location, observer=events.append, **options)
    answers = chat(hiermem, 8)
    hiermem.when_idle(0.05 if trouble == "hangs" else SECONDS)
    state = hiermem.tenant("acme").thread("t1").state()
    told = [event.reason for event in events if isinstance(event, UpdateFailed)]
    hiermem.close(0.05)

    good = ScriptedModel([GOOD])
    with HierMem.open(durable_location, chat_model=good) as again:
        chat(again, 1)
        assert again.when_idle(SECONDS)
        learned = [seq for call in good.calls for seq in seqs(call)]
        notes = buffer_of(again).get_context().notes

    assert len(answers) == 8
    assert state == ThreadState()
    assert bool(told) == (trouble != "hangs")
    assert learned == list(range(1, 19))
    assert "They land on 4 May" in notes


class Silent(MockLLM):
    """A summariser that answers with nothing."""

    def chat(self, messages, **kwargs):
        answer = super().chat(messages, **kwargs)
        answer.message = ChatMessage(role="assistant", content="")
        return answer


def test_where_llamaindexs_summary_buffer_loses_turns_ours_does_not(durable_location):
    spoken = [(f"fact number {n} is {n * n}", f"noted {n}") for n in range(12)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        theirs = ChatSummaryMemoryBuffer.from_defaults(
            llm=Silent(), token_limit=40, tokenizer_fn=str.split
        )
    for question, answer in spoken:
        theirs.put(user(question))
        theirs.put(assistant(answer))
        theirs.get()
    kept = str(theirs.get()) + str(theirs.get_all())
    lost = [question for question, _ in spoken if question not in kept]

    with HierMem.open(durable_location, chat_model=ScriptedModel([""])) as hiermem:
        memory = buffer_of(hiermem, 200)
        for question, answer in spoken:
            memory.put(user(question))
            memory.put(assistant(answer))
            memory.get()
        assert hiermem.when_idle(SECONDS)
        everything = [message.content for message in memory.get_all()]
    good = ScriptedModel([GOOD])
    with HierMem.open(durable_location, chat_model=good) as hiermem:
        hiermem.updates.resume()
        assert hiermem.when_idle(SECONDS)

    assert len(lost) > 0
    assert everything == [text for pair in spoken for text in pair]
    assert [seq for call in good.calls for seq in seqs(call)] == list(range(1, 25))


def test_l24_an_exchange_with_tools_is_learned_as_a_plain_transcript(durable_location):
    model = ScriptedModel([GOOD])
    with HierMem.open(durable_location, chat_model=model, inline_updates=True) as hiermem:
        memory = buffer_of(hiermem)
        call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
        calling = ChatMessage(
            role="assistant", content="", additional_kwargs={"tool_calls": [call]}
        )
        result = ChatMessage(role="tool", content="found", additional_kwargs={"tool_call_id": "c1"})
        memory.put_messages([user("find it"), calling, result, assistant("here")])
        memory.put_messages([user("thanks"), assistant("welcome")])

    (made,) = model.calls
    records = parse_prompt(made.messages).turns
    assert {message.role for message in made.messages} == {"system", "user"}
    assert [record["role"] for record in records] == [
        *("user", "assistant", "tool", "assistant", "user", "assistant")
    ]
    assert records[1]["calls"] == [{"name": "find", "args": {}}]


def test_l25_facts_stay_where_a_reply_is_incremental_or_empty(durable_location):
    replies = [reply("One.", ["Ada is new", "Bea is not"]), reply("Two.", ["Cem too"]), "", "{}"]
    model = ScriptedModel(replies)
    with HierMem.open(durable_location, chat_model=model, inline_updates=True) as hiermem:
        memory = buffer_of(hiermem)
        facts = []
        for n in range(12):
            memory.put_messages([user(f"question {n}"), assistant("answer")])
            facts.append(len(hiermem.tenant("acme").thread("t1").state().facts))

    assert facts == [0, 0, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3]
    assert len(model.calls) > 3
