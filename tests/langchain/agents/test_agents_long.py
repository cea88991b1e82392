"""One agent with middleware, store and tools through sixty turns, killed in the middle."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from hiermem_core import HierMem

TESTS = Path(__file__).parents[2]

TALK = """
    import json, os, signal, sys
    sys.path.insert(0, sys.argv[5])
    from langchain.agents import create_agent
    from langchain.tools import ToolRuntime
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    from scripted_agent import ScriptedChat, problems_of, said, tokens_of

    from hiermem_core import HierMem
    from langchain_hiermem import (
        HierMemContext, HierMemMiddleware, HierMemStore, create_memory_tools,
    )

    location, first, last, dies_at = sys.argv[1], *map(int, sys.argv[2:5])
    BUDGET, RESERVE = 2500, 200
    turn = [0, ""]

    @tool
    def note(text: str, runtime: ToolRuntime[HierMemContext, dict]) -> str:
        "Keep a note in the store."
        if turn[0] == dies_at and turn[1] == "alice":
            os.kill(os.getpid(), signal.SIGKILL)
        tenant = runtime.context.tenant_id
        runtime.store.put((tenant, "notes"), f"n{turn[0]}", {"text": text})
        found = runtime.store.search((tenant, "notes"), limit=3)
        return f"{text}; {len(found)} notes by {tenant}"

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

    contexts = []
    with HierMem.open(location) as hiermem:
        model = ScriptedChat(reply=reply)
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
        wrong = []
        for number in range(first, last):
            for name, other in (("alice", "bob"), ("bob", "alice")):
                turn[:] = [number, name]
                model.seen.clear()
                contexts.clear()
                agent.invoke(
                    said(f"{name} question {number} " * 4), context=HierMemContext(name, "trip")
                )
                for messages, context in zip(model.seen, contexts, strict=True):
                    wrong += problems_of(messages)
                    if tokens_of(messages, context, hiermem) > BUDGET - RESERVE:
                        wrong.append(f"turn {number}: over budget")
                    whole = " ".join(f"{m.content} {m.additional_kwargs}" for m in messages)
                    if other in whole:
                        wrong.append(f"turn {number}: {name} reads {other}")
        print(json.dumps([wrong, len(model.seen[-1]), contexts[-1].warnings != ()]))
"""


def test_sixty_turns_killed_in_the_middle_and_gone_on_with_in_a_new_process(run_python, location):
    killed = run_python(TALK, location, 0, 60, 30, TESTS, options=["-W", "error"])
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with HierMem.open(location) as hiermem:
        before = {
            name: [turn.content for turn in hiermem.tenant(name).thread("trip").turns()]
            for name in ("alice", "bob")
        }
        assert hiermem.health().status == "healthy"

    ended = run_python(TALK, location, 30, 60, -1, TESTS, options=["-W", "error"])

    assert ended.returncode == 0, ended.stderr
    wrong, shown, has_warnings = json.loads(ended.stdout)
    assert wrong == []
    assert shown >= 6
    assert has_warnings
    with HierMem.open(location) as hiermem:
        for name in ("alice", "bob"):
            turns = hiermem.tenant(name).thread("trip").turns()
            assert [turn.content for turn in turns[: len(before[name])]] == before[name]
            asked = [turn.content for turn in turns if turn.role == "user"]
            assert asked == [f"{name} question {number} " * 4 for number in range(60)]
            answered = {turn.tool_call_id for turn in turns if turn.role == "tool"}
            calls = [call.id for turn in turns for call in turn.tool_calls]
            assert sorted(calls) == sorted(answered)
            assert len(hiermem.tenant(name).memory.search(namespace="default", limit=100)) == 20
