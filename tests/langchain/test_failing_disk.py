"""A write that fails under a run is told: logged, in the health report, and by the next read."""

from __future__ import annotations

import json
import logging

import pytest
from failing_databases import full_disk
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableLambda

from hiermem_core import BackendError
from langchain_hiermem import HierMemChatMessageHistory

pytestmark = pytest.mark.files

LONG = "far too long for this disk " * 20_000
SMALL = "in short"


@pytest.fixture
def strict(hiermem):
    """Give what makes a strict history of a thread, anew at each call."""

    def make(tenant_id="acme", thread_id="t1"):
        return HierMemChatMessageHistory(
            hiermem, tenant_id=tenant_id, thread_id=thread_id, strict=True
        )

    return make


def failed_run(hiermem, chain, config):
    """Run a chain whose answer is too long for the disk, and return the answer."""
    with full_disk(hiermem):
        return chain.invoke({"question": "tell me"}, config)


def telling():
    return RunnableLambda(lambda asked: AIMessage(LONG))


def errors_of(caplog):
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("langchain_hiermem") and record.levelno == logging.ERROR
    ]


def test_lc24_a_failed_write_reaches_the_log_the_health_report_and_not_the_caller(
    hiermem, remembering, configured, history, caplog
):
    history.add_user_message(SMALL)

    answer = failed_run(hiermem, remembering(telling()), configured())

    health = hiermem.health()
    assert answer.content == LONG
    (line,) = errors_of(caplog)
    assert "t1" in line
    assert "far too long" not in caplog.text
    assert health.status == "degraded"
    assert "SQLITE_FULL" in health.last_error
    assert "far too long" not in health.last_error
    assert history.messages == [HumanMessage(SMALL)]


async def test_lc24_an_async_run_tells_alike(hiermem, remembering, configured, history, caplog):
    chain = remembering(telling(), strict=True)
    with full_disk(hiermem):
        answer = await chain.ainvoke({"question": "tell me"}, configured())

    assert answer.content == LONG
    assert len(errors_of(caplog)) == 1
    assert hiermem.health().status == "degraded"
    with pytest.raises(BackendError):
        await chain.ainvoke({"question": "and now?"}, configured())


def test_lc24_a_direct_write_raises_and_stores_nothing(hiermem, history, caplog):
    with full_disk(hiermem), pytest.raises(BackendError, match="writing failed"):
        history.add_messages([HumanMessage("a"), AIMessage(LONG)])

    assert len(errors_of(caplog)) == 1
    assert hiermem.health().status == "degraded"
    assert history.messages == []


def test_lc24_strict_raises_the_error_at_the_next_run(hiermem, remembering, configured):
    model_calls = []
    chain = remembering(telling(), strict=True)
    failed_run(hiermem, chain, configured())
    asking = RunnableLambda(lambda asked: model_calls.append(asked) or AIMessage("ok"))

    with pytest.raises(BackendError, match="writing failed"):
        remembering(asking, strict=True).invoke({"question": "and now?"}, configured())

    assert model_calls == []


@pytest.mark.parametrize(
    "read", [lambda h: h.messages, lambda h: h.window(1000), str], ids=["messages", "window", "str"]
)
def test_lc24_strict_raises_once_at_the_next_read_through_a_new_history(
    hiermem, remembering, configured, strict, read
):
    failed_run(hiermem, remembering(telling(), strict=True), configured())

    with pytest.raises(BackendError, match="writing failed"):
        read(strict())

    assert strict().messages == []


@pytest.mark.parametrize("method", ["aget_messages", "awindow"])
async def test_lc24_strict_raises_at_the_next_async_read(
    hiermem, remembering, configured, strict, method
):
    failed_run(hiermem, remembering(telling(), strict=True), configured())
    arguments = [1000] if method == "awindow" else []

    with pytest.raises(BackendError, match="writing failed"):
        await getattr(strict(), method)(*arguments)


def test_lc24_without_strict_no_read_raises(hiermem, remembering, configured, history, strict):
    failed_run(hiermem, remembering(telling()), configured())

    assert history.messages == []
    assert history.window(1000) == []
    assert strict().messages == []


def test_lc24_a_read_without_strict_does_not_take_the_error_away(
    hiermem, remembering, configured, history, strict
):
    failed_run(hiermem, remembering(telling(), strict=True), configured())

    assert history.messages == []
    assert history.window(1000) == []
    with pytest.raises(BackendError):
        strict().window(1000)


def test_lc24_strict_speaks_of_its_own_tenant_and_thread_only(
    hiermem, remembering, configured, strict
):
    failed_run(hiermem, remembering(telling(), strict=True), configured())

    assert strict("acme", "t2").messages == []
    assert strict("bob", "t1").messages == []
    with pytest.raises(BackendError):
        strict("acme", "t1").messages  # noqa: B018 - reading is what raises


def test_lc24_the_next_write_is_no_read_and_stores(hiermem, remembering, configured, strict):
    strict().add_messages([HumanMessage("before", id="m1")])
    failed_run(hiermem, remembering(telling(), strict=True), configured())

    strict().add_messages([RemoveMessage(id="m1"), HumanMessage("after", id="m2")])

    with pytest.raises(BackendError):
        strict().messages  # noqa: B018 - reading is what raises
    assert strict().messages == [HumanMessage("after", id="m2")]


def test_lc24_a_refused_call_is_told_like_a_failed_one(history, strict, caplog):
    with pytest.raises(ValueError, match="ghost"):
        strict().add_messages([RemoveMessage(id="ghost")])

    assert len(errors_of(caplog)) == 1
    with pytest.raises(ValueError, match="ghost"):
        strict().messages  # noqa: B018 - reading is what raises
    assert history.messages == []


def test_lc24_a_disk_with_room_again_takes_the_next_exchange(
    hiermem, remembering, configured, history
):
    failed_run(hiermem, remembering(telling()), configured())

    remembering(RunnableLambda(lambda asked: AIMessage("ok"))).invoke(
        {"question": "again?"}, configured()
    )

    assert [message.content for message in history.messages] == ["again?", "ok"]
    assert hiermem.health().status == "healthy"


FILE_LIMIT = """
    import json, logging, resource, sys, warnings
    from pathlib import Path
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.runnables import RunnableLambda
    from langchain_core.runnables.history import RunnableWithMessageHistory
    from hiermem_core import BackendError, HierMem
    from langchain_hiermem import HISTORY_FIELDS, history_factory

    warnings.filterwarnings("ignore", message="RunnableWithMessageHistory is deprecated")
    records = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: records.append(record.getMessage())
    logging.getLogger("langchain_hiermem").addHandler(handler)

    hiermem = HierMem.open(sys.argv[1])
    factory = history_factory(hiermem, strict=True)
    factory("acme", "t1").add_messages([HumanMessage("before")])
    largest = max(file.stat().st_size for file in Path(sys.argv[1]).iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest + 100_000, resource.RLIM_INFINITY))
    chain = RunnableWithMessageHistory(
        RunnableLambda(lambda asked: AIMessage("long " * 200_000)),
        factory,
        history_factory_config=HISTORY_FIELDS,
        input_messages_key="question",
        history_messages_key="history",
    )
    config = {"configurable": {"tenant_id": "acme", "thread_id": "t1"}}
    answer = chain.invoke({"question": "tell me"}, config)
    health = hiermem.health()
    try:
        raised = repr(factory("acme", "t1").messages)
    except BackendError:
        raised = "BackendError"
    print(json.dumps({
        "answer": len(answer.content),
        "errors": len(records),
        "status": health.status,
        "last_error": health.last_error,
        "raised": raised,
        "left": [message.content for message in factory("acme", "t1").messages],
    }))
"""


def test_lc24_a_file_that_may_not_grow_is_told_alike(run_python, location):
    ended = run_python(FILE_LIMIT, location)

    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert "SQLITE" in told.pop("last_error")
    assert told == {
        "answer": 1_000_000,
        "errors": 1,
        "status": "degraded",
        "raised": "BackendError",
        "left": ["before"],
    }
