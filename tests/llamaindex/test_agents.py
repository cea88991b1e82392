"""The agents of the framework, with a buffer as their memory."""

import json
import warnings

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, ReActAgent
from llama_index.core.llms.mock import MockLLM
from llama_index.core.workflow import Context, JsonSerializer
from llamaindex.samples import (
    LoopShy,
    agent_of,
    ask_then_answer,
    asking,
    assistant,
    calling,
    exchange,
    result,
    run_python,
    texts,
    user,
    weather,
)

from hiermem_core import HierMem, ToolCall
from llamaindex_hiermem import HierMemChatMemoryBuffer

pytestmark = [
    # The framework's agents look through every attribute of their own pydantic classes,
    # and ask whether the run that they are a step of is running.
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning"),
    pytest.mark.filterwarnings("ignore:is_running called from within a step:DeprecationWarning"),
]

QUESTION = "Is it warm?"
ROUND = [user(QUESTION), asking("c1"), result("c1", "22 degrees in Oslo"), assistant("It is warm.")]
"""What an agent stores of one question that needs one tool."""


class Live(HierMemChatMemoryBuffer):
    """A memory that may be copied, and neither pickled nor dumped."""

    def __reduce__(self):
        raise AssertionError("the memory was pickled")

    def to_dict(self, **kwargs):
        raise AssertionError("the memory was dumped")


async def edit_state(ctx: Context) -> str:
    """Note the weather in the state of the run."""
    async with ctx.store.edit_state() as state:
        state["noted"] = True
    return "noted"


def note_then_answer(messages, **ignored):
    if messages[-1].role == "tool":
        return assistant("Noted.")
    return calling(ToolCall("c1", "edit_state", {}))


def die_after_two_rounds(messages, **ignored):
    rounds = [message for message in messages if message.role == "tool"]
    if len(rounds) == 2:
        raise ConnectionError("the model is down")
    return asking(f"c{len(rounds)}")


def workflow_of(*arguments, **options):
    return AgentWorkflow(agents=[agent_of(*arguments, **options)])


runners = pytest.mark.parametrize("runner_of", [agent_of, workflow_of], ids=["agent", "workflow"])


@runners
async def test_a_run_with_a_tool_stores_four_messages_that_read_back_equal(make_memory, runner_of):
    memory = make_memory()

    answer = await runner_of().run(user_msg=QUESTION, memory=memory)

    assert answer.response.content == "It is warm."
    assert memory.get_all() == make_memory().get_all() == memory.get() == ROUND


@runners
async def test_l18_an_empty_memory_is_the_one_an_agent_uses(make_memory, runner_of):
    memory = make_memory()
    runner = runner_of()
    ctx = Context(runner)

    await runner.run(user_msg=QUESTION, memory=memory, ctx=ctx)

    assert await ctx.store.get("memory") is memory


@runners
async def test_l20_a_run_calls_no_sync_method_on_the_loop(tenant, runner_of):
    memory = LoopShy.from_defaults(tenant=tenant, chat_store_key="trip")

    await runner_of().run(user_msg=QUESTION, chat_history=exchange("old"), memory=memory)

    assert await memory.aget_all() == [*exchange("old"), *ROUND]


@runners
async def test_l01_what_an_agent_writes_into_a_message_it_read_stays_out_of_the_thread(
    make_memory, runner_of
):
    seen = []
    options = {"tools": (), "initial_state": {"city": "Oslo"}}

    def reply(messages, **ignored):
        seen.append(str(messages[-1].content))
        return assistant("Yes.")

    runner = agent_of(reply, **options)
    if runner_of is workflow_of:
        agent = agent_of(reply, tools=())
        runner = AgentWorkflow(agents=[agent], initial_state=options["initial_state"])
    memory = make_memory()
    await runner.run(user_msg=QUESTION, memory=memory)

    assert "Oslo" in seen[0]
    assert seen[0] != QUESTION
    assert memory.get_all() == [user(QUESTION), assistant("Yes.")]


@runners
async def test_l03_a_memory_in_an_edited_state_is_the_live_thread(tenant, runner_of):
    counted = []

    def tokenizer(text):
        counted.append(text)
        return text.split()

    memory = Live.from_defaults(tenant=tenant, chat_store_key="trip", tokenizer_fn=tokenizer)
    runner = runner_of(note_then_answer, tools=(edit_state,))
    ctx = Context(runner)

    await runner.run(user_msg=QUESTION, memory=memory, ctx=ctx)
    in_context = await ctx.store.get("memory")

    assert await ctx.store.get("noted") is True
    assert [m.role.value for m in memory.get_all()] == ["user", "assistant", "tool", "assistant"]
    assert texts(memory.get_all())[0::3] == [QUESTION, "Noted."]
    assert in_context.get_all() == memory.get_all()
    assert type(in_context) is Live
    assert in_context.tokenizer_fn is tokenizer
    assert counted


SECOND_RUN = """
import asyncio, json, sys, warnings
from llama_index.core.workflow import Context, JsonSerializer
from llamaindex_hiermem import HierMemChatMemoryBuffer
from llamaindex.samples import agent_of, json_serializer
from workflows.context.state_store import UnserializableKeyWarning

warnings.simplefilter("error", UserWarning)
warnings.simplefilter("error", UnserializableKeyWarning)

async def main():
    agent = agent_of()
    serializer = json_serializer()
    ctx = Context.from_dict(agent, json.loads(sys.argv[1]), serializer=serializer)
    await agent.run(user_msg="And now?", ctx=ctx)
    json.dumps(ctx.to_dict(serializer=serializer))
    memory = await ctx.store.get("memory")
    print(json.dumps([type(memory).__name__, memory.token_limit]))
    print(json.dumps([[m.role.value, m.content] for m in await memory.aget_all()]))

asyncio.run(main())
"""


async def test_l04_a_finished_run_continues_in_another_process(make_memory, hiermem):
    memory = make_memory(token_limit=77)
    agent = agent_of()
    ctx = Context(agent)
    await agent.run(user_msg=QUESTION, memory=memory, ctx=ctx)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dump = json.dumps(ctx.to_dict(serializer=JsonSerializer()))

    kind, messages = map(json.loads, run_python(SECOND_RUN, dump).splitlines())

    assert kind == ["HierMemChatMemoryBuffer", 77]
    wanted = [[m.role.value, m.content] for m in [*ROUND, user("And now?"), *ROUND[1:]]]
    assert messages == wanted
    if hiermem.location != ":memory:":
        assert [[m.role.value, m.content] for m in memory.get_all()] == wanted


async def test_l04_the_second_run_sees_the_first(make_memory):
    seen = []

    def reply(messages, **ignored):
        seen.append(list(messages))
        return assistant("Yes.")

    agent = agent_of(reply)
    ctx = Context(agent)
    await agent.run(user_msg=QUESTION, memory=make_memory(), ctx=ctx)
    restored = Context.from_dict(agent, json.loads(json.dumps(ctx.to_dict())))

    await agent.run(user_msg="And now?", ctx=restored)

    assert texts(seen[-1]) == [QUESTION, "Yes.", "And now?"]


@runners
async def test_l50_a_context_that_holds_a_memory_uses_it_and_no_other(make_memory, runner_of):
    memory, other = make_memory(), make_memory(chat_store_key="other")
    runner = runner_of()
    ctx = Context(runner)
    await runner.run(user_msg=QUESTION, memory=memory, ctx=ctx)

    await runner.run(user_msg=QUESTION, memory=other, ctx=ctx)
    in_context = await ctx.store.get("memory")

    assert in_context.get_all() == [*ROUND, *ROUND]
    assert in_context.to_dict()["thread_id"] == "trip"
    assert other.get_all() == []


async def test_a_durable_memory_goes_on_as_itself_when_its_context_runs_again(durable_location):
    with HierMem.open(durable_location) as hiermem:
        memory = HierMemChatMemoryBuffer.from_defaults(
            tenant=hiermem.tenant("alice"), chat_store_key="trip"
        )
        agent = agent_of()
        ctx = Context(agent)
        for _ in range(2):
            await agent.run(user_msg=QUESTION, memory=memory, ctx=ctx)

        assert memory.get_all() == [*ROUND, *ROUND]


@runners
async def test_l43_a_run_that_dies_leaves_the_question_alone_and_the_next_run_works(
    make_memory, runner_of
):
    memory = make_memory()
    with pytest.raises(Exception, match="the model is down"):
        await runner_of(die_after_two_rounds).run(user_msg=QUESTION, memory=memory)
    after_death = memory.get_all()

    await runner_of().run(user_msg=QUESTION, memory=memory)

    assert after_death == [user(QUESTION)]
    assert memory.get_all() == [user(QUESTION), *ROUND]


@runners
async def test_l13_a_run_without_tool_or_scratchpad_stores_question_and_answer(
    make_memory, runner_of
):
    memory = make_memory(chat_history=exchange("old"))

    await runner_of(lambda *_, **__: assistant("Yes.")).run(user_msg=QUESTION, memory=memory)

    assert memory.get_all() == [*exchange("old"), user(QUESTION), assistant("Yes.")]


@runners
async def test_a_history_given_to_a_run_replaces_the_thread(make_memory, tenant, runner_of):
    memory = make_memory(chat_history=exchange("old"))

    await runner_of().run(user_msg=QUESTION, chat_history=exchange("new"), memory=memory)

    archived = tenant.thread("trip").turns(status="archived")
    assert memory.get_all() == [*exchange("new"), *ROUND]
    assert [turn.content for turn in archived] == texts(exchange("old"))


@runners
async def test_a_system_prompt_of_an_agent_is_never_stored(make_memory, runner_of):
    memory = make_memory()
    runner = runner_of(ask_then_answer, system_prompt="Be brief.")

    await runner.run(user_msg=QUESTION, memory=memory)
    await runner.run(user_msg=QUESTION, memory=memory)

    assert {message.role.value for message in memory.get_all()} == {"user", "assistant", "tool"}
    assert len(memory.get_all()) == 8


async def test_a_reasoning_agent_stores_question_and_reasoning(make_memory):
    class Reasoning(MockLLM):
        def complete(self, prompt, **options):
            response = super().complete("x")
            response.text = "Thought: I can answer. \nAnswer: It is warm."
            return response

    memory = make_memory()
    agent = ReActAgent(tools=[weather], llm=Reasoning(), streaming=False)

    answer = await agent.run(user_msg=QUESTION, memory=memory)

    stored = memory.get_all()
    assert answer.response.content == "It is warm."
    assert stored[0] == user(QUESTION)
    assert [message.role.value for message in stored] == ["user", "assistant"]
    assert "It is warm." in str(stored[1].content)


async def test_a_buffer_of_the_core_counting_serves_an_agent(tenant):
    memory = HierMemChatMemoryBuffer.from_defaults(
        tenant=tenant, chat_store_key="trip", counting="core"
    )

    await agent_of().run(user_msg=QUESTION, memory=memory)

    assert memory.get() == ROUND
