"""The buffer logs the tool calls that are put as steps of a session, when it is asked to."""

from __future__ import annotations

from llamaindex.samples import asking, assistant, result, user

from llamaindex_hiermem import HierMemChatMemoryBuffer

ROUND = [user("Is it warm?"), asking("c1"), result("c1", "22 degrees"), assistant("It is warm.")]


def buffer(tenant, **options):
    return HierMemChatMemoryBuffer.from_defaults(tenant=tenant, chat_store_key="t1", **options)


def steps_of(tenant):
    return [(one.step, one.state, one.next_state) for one in tenant.session("t1").steps()]


def test_tool_calls_are_logged_only_when_asked_for(tenant):
    buffer(tenant).put_messages(ROUND)

    assert tenant.sessions() == []


def test_calls_that_are_put_one_by_one_or_at_once_are_the_same_steps(tenant):
    memory = buffer(tenant, log_steps=True)
    for message in ROUND:
        memory.put(message)
    memory.put_messages(ROUND)

    steps = tenant.session("t1").steps()
    assert steps_of(tenant) == [
        (1, "Is it warm?", "22 degrees"),
        (2, "Is it warm?", "22 degrees"),
    ]
    assert len({step.action for step in steps}) == 1
    assert steps[0].action.startswith("weather ")


async def test_calls_that_are_put_awaited_are_logged(tenant):
    await buffer(tenant, log_steps=True).aput_messages(ROUND)

    assert [step[0] for step in steps_of(tenant)] == [1]


def test_a_copy_and_a_dump_go_on_logging(tenant):
    memory = buffer(tenant, log_steps=True)

    again = HierMemChatMemoryBuffer.from_dict(memory.to_dict(), tenant=tenant)
    again.put_messages(ROUND)

    assert memory.model_copy().log_steps
    assert len(steps_of(tenant)) == 1
    assert "log_steps" not in buffer(tenant).to_dict()


def test_results_without_their_call_are_no_steps(tenant):
    memory = buffer(tenant, log_steps=True)

    memory.put_messages([user("hi"), result("c9", "late"), assistant("so")])

    assert tenant.sessions() == []
