"""One agent with middleware, store and tools through sixty turns, killed in the middle."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from hiermem_core import HierMem
from langchain_hiermem import HierMemStore

TESTS = Path(__file__).parents[2]

TALK = """
    import asyncio, os, signal, sys
    sys.path.insert(0, sys.argv[6])
    from blockbuster import blockbuster_ctx
    from langchain.agents import create_agent
    from langchain.tools import ToolRuntime
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    from scripted_agent import ScriptedChat, problems_of, said, tokens_of

    from hiermem_core import HierMem
    from langchain_hiermem import (
        HierMemContext, HierMemMiddleware, HierMemStore, create_memory_tools,
    )

    location, colour, first, last, dies_at = *sys.argv[1:3], *map(int, sys.argv[3:6])
    BUDGET, RESERVE = 2500, 200
    turn = [0, ""]

    def die_if_it_is_time():
        if turn == [dies_at, "alice"]:
            os.kill(os.getpid(), signal.SIGKILL)

    def told(text, found, tenant):
        return f"{text}; {len(found)} notes by {tenant}"

    if colour == "sync":
        @tool
        def note(text: str, runtime: ToolRuntime[HierMemContext, dict]) -> str:
            "Keep a note in the store."
            die_if_it_is_time()
            place = (runtime.context.tenant_id, "notes")
            runtime.store.put(place, f"n{turn[0]}", {"text": text})
            return told(text, runtime.store.search(place, limit=3), place[0])
    else:
        @tool
        async def note(text: str, runtime: ToolRuntime[HierMemContext, dict]) -> str:
            "Keep a note in the store."
            die_if_it_is_time()
            place = (runtime.context.tenant_id, "notes")
            await runtime.store.aput(place, f"n{turn[0]}", {"text": text})
            return told(text, await runtime.store.asearch(place, limit=3), place[0])

    def reply(messages):
        asked = [m for m in messages if m.type == "human"][-1].content.split("\\n\\n")[-1]
        done = []
        for message in reversed(messages):
            if message.type == "human":
                break
            done += [message] if message.type == "tool" else []
        number, name = turn
        if len(done) < 2 and number % 3 == 0:
            calls = [
                {"id": f"{name}-{number}-{len(done)}-{i}", "name": kind, "args": arguments}
                for i, (kind, arguments) in enumerate([
                    ("note", {"text": f"{name} note {number} " + "long " * 40}),
                    ("remember", {"content": f"{name} fact {number}"}),
                ])
            ]
            return AIMessage("", tool_calls=calls)
        if not done and number % 3 == 1:
            call = {"id": f"{name}-{number}", "name": "recall", "args": {"query": "fact"}}
            return AIMessage("", tool_calls=[call])
        return AIMessage(f"{name} answer {number}: {asked[:20]}")

    def check(hiermem, seen, contexts, other):
        assert len(seen) == len(contexts) > 0
        for messages, context in zip(seen, contexts, strict=True):
            assert problems_of(messages) == []
            assert tokens_of(messages, context, hiermem) <= BUDGET - RESERVE
            assert other not in " ".join(f"{m.content} {m.additional_kwargs}" for m in messages)

    async def answered(agent, text, context):
        if colour == "sync":
            return await asyncio.to_thread(agent.invoke, text, context=context)
        return await agent.ainvoke(text, context=context)

    async def talk(hiermem):
        model, contexts = ScriptedChat(reply=reply), []
        memory = HierMemMiddleware(
            hiermem, budget_tokens=BUDGET, output_reserve=RESERVE, on_context=contexts.append
        )
        agent = create_agent(
            model,
            [note, *create_memory_tools(hiermem)],
            system_prompt="You help. {memory}",
            middleware=[memory],
            context_schema=HierMemContext,
            store=HierMemStore.per_tenant(hiermem),
        )
        turn[:] = [2, "nobody"]
        await answered(agent, said("imports are late"), HierMemContext("nobody", "trip"))
        with blockbuster_ctx():
            for number in range(first, last):
                for name, other in (("alice", "bob"), ("bob", "alice")):
                    turn[:] = [number, name]
                    model.seen.clear()
                    contexts.clear()
                    said_now = said(f"{name} question {number} " * 4)
                    await answered(agent, said_now, HierMemContext(name, "trip"))
                    check(hiermem, model.seen, contexts, other)
        assert len(model.seen[-1]) >= 6
        assert contexts[-1].warnings != ()

    with HierMem.open(location) as hiermem:
        asyncio.run(talk(hiermem))
    os._exit(0)  # a detector that patched C types may crash an interpreter that ends
"""


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_sixty_turns_killed_in_the_middle_and_gone_on_with_in_a_new_process(
    run_python, location, colour
):
    killed = run_python(TALK, location, colour, 0, 60, 30, TESTS, options=["-W", "error"])
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with HierMem.open(location) as hiermem:
        before = {
            name: [turn.content for turn in hiermem.tenant(name).thread("trip").turns()]
            for name in ("alice", "bob")
        }
        assert hiermem.health().status == "healthy"

    ended = run_python(TALK, location, colour, 30, 60, -1, TESTS, options=["-W", "error"])

    assert ended.returncode == 0, ended.stderr
    with HierMem.open(location) as hiermem:
        store = HierMemStore.per_tenant(hiermem)
        for name in ("alice", "bob"):
            turns = hiermem.tenant(name).thread("trip").turns()
            assert [turn.content for turn in turns[: len(before[name])]] == before[name]
            asked = [turn.content for turn in turns if turn.role == "user"]
            assert asked == [f"{name} question {number} " * 4 for number in range(60)]
            answered = {turn.tool_call_id for turn in turns if turn.role == "tool"}
            calls = [call.id for turn in turns for call in turn.tool_calls]
            assert sorted(calls) == sorted(answered)
            remembered = hiermem.tenant(name).memory.search(namespace="default", limit=100)
            assert {hit.content for hit in remembered} == {
                f"{name} fact {number}" for number in range(0, 60, 3)
            }
            noted = store.search((name, "notes"), limit=100)
            assert {item.key for item in noted} == {f"n{number}" for number in range(0, 60, 3)}
            assert all(item.value["text"].startswith(name) for item in noted)
