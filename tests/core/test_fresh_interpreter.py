"""What importing and a first use do to a fresh process."""

from __future__ import annotations

import json
import sys

import pytest
from core.children import run

from hiermem_core import HierMem
from hiermem_core.errors import MissingExtraError
from hiermem_core.settings import HierMemSettings

OPTIONAL = (
    *("langchain", "langchain_core", "langgraph", "llama_index", "chromadb", "openai"),
    *("torch", "transformers", "onnxruntime", "tokenizers", "pytest", "hypothesis"),
)

WATCH = """
import json, os, sys, threading, time
sys.dont_write_bytecode = True
events = []

def watch(event, arguments):
    if event == "socket.__new__" and arguments[1] not in (1, -1):
        raise AssertionError("a network socket was opened")
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        raise AssertionError("the network was used")
    if event == "open" and isinstance(arguments[0], str):
        events.append(arguments[0])
    if event == "_thread.start_new_thread":
        events.append("a thread")

def ended_threads():
    for thread in threading.enumerate():
        is_ending = not thread.daemon or thread.name == "apart"
        if thread is not threading.main_thread() and is_ending:
            thread.join(20)
    return threading.active_count()

def report(**facts):
    loaded = sorted({name.partition(".")[0] for name in sys.modules})
    code = (".py", ".pyc", ".so")
    beside = [event for event in events if not event.endswith(code) and event not in sys.path]
    print(json.dumps({"loaded": loaded, "opened": beside, **facts}))

sys.addaudithook(watch)
"""

IMPORT = """
started = time.process_time()
import hiermem_core
report(seconds=time.process_time() - started, threads=threading.active_count())
"""

IMPORT_ALL_NAMES = """
import hiermem_core
for name in hiermem_core.__all__:
    getattr(hiermem_core, name)
import hiermem_core.testing
report(threads=threading.active_count())
"""

READ_NOTHING = """
asked = []
class Environment(type(os.environ)):
    def __getitem__(self, name):
        asked.append(name)
        return super().__getitem__(name)
    def __iter__(self):
        asked.append("*")
        return super().__iter__()
os.environ.__class__ = Environment
import hiermem_core
for name in hiermem_core.__all__:
    getattr(hiermem_core, name)
report(asked=[name for name in asked if name.startswith("HIERMEM") or name == "*"])
"""

QUICK_START = """
from hiermem_core import ApproximateCounter, FunctionCounter, HierMem
from hiermem_core.testing import FakeClock, FakeEmbedder
totals = []
fakes = {"clock": FakeClock(), "embedder": FakeEmbedder()}
for counter in (None, ApproximateCounter(), FunctionCounter(len, id="characters")):
    with HierMem.open(sys.argv[1], counter=counter, **fakes) as memory:
        alice = memory.tenant("alice")
        alice.remember("Prefers morning meetings", namespace="profile")
        assert alice.recall("when to meet in the morning?")[0].namespace == "profile"
        chat = alice.thread("support-42")
        chat.append([
            {"role": "user", "content": "Where is my parcel?"},
            {"role": "assistant", "content": "It left Hamburg today."},
        ])
        context = chat.context(current="And the invoice?", budget_tokens=400, recall=False)
        recalling = chat.context(current="What meetings in the morning?", budget_tokens=400)
        assert [hit.content for hit in recalling.hits] == ["Prefers morning meetings"]
        totals.append([context.receipt.total, len(context.messages)])
        assert context.to_openai()[-1]["content"] == "And the invoice?"
report(totals=totals, threads=ended_threads())
"""

QUICK_START_AWAITED = """
import asyncio
from hiermem_core import ApproximateCounter, AsyncHierMem
from hiermem_core.testing import FakeEmbedder

async def start():
    given = {"counter": ApproximateCounter(), "embedder": FakeEmbedder()}
    async with await AsyncHierMem.open(sys.argv[1], **given) as memory:
        await memory.tenant("alice").remember("Prefers morning meetings")
        assert len(await memory.tenant("alice").recall("morning")) == 1
        chat = memory.tenant("alice").thread("support-42")
        await chat.append([{"role": "user", "content": "Where is my parcel?"}])
        return len((await chat.context(budget_tokens=400)).messages)

report(messages=asyncio.run(start()), threads=ended_threads())
"""

EXIT_WHILE_OPEN = """
import asyncio
from hiermem_core import ApproximateCounter, AsyncHierMem, HierMem
memory = AsyncHierMem(HierMem.open(sys.argv[1], counter=ApproximateCounter()))
asyncio.run(memory.tenant("alice").thread("t1").append([{"role": "user", "content": "x"}]))
"""


def report_of(script, *arguments):
    """Run a script under watch in an empty environment, and return what it reports."""
    return json.loads(run(WATCH + script, *arguments, env={}))


def test_e7_importing_costs_little_opens_nothing_and_starts_no_thread():
    report = report_of(IMPORT)

    assert report["opened"] == []
    assert report["threads"] == 1
    assert report["seconds"] < 0.25
    assert not set(report["loaded"]) & {*OPTIONAL, "sqlalchemy", "pydantic", "tiktoken"}


def test_e7_every_public_name_loads_no_optional_dependency_and_starts_no_thread():
    report = report_of(IMPORT_ALL_NAMES)

    assert report["threads"] == 1
    assert "a thread" not in report["opened"]
    assert not [path for path in report["opened"] if "dist-info" not in path]
    assert not set(report["loaded"]) & set(OPTIONAL)


def test_e7_importing_reads_no_setting():
    assert report_of(READ_NOTHING)["asked"] == []


def test_e7_the_quick_start_runs_without_network_and_environment(tmp_path):
    report = report_of(QUICK_START, tmp_path / "memory")

    assert [messages for _, messages in report["totals"]] == [3, 5, 7]
    assert all(0 < total <= 400 for total, _ in report["totals"])
    assert report["threads"] == 1
    assert not set(report["loaded"]) & set(OPTIONAL)


def test_e7_the_awaited_quick_start_leaves_no_thread(tmp_path):
    report = report_of(QUICK_START_AWAITED, tmp_path / "memory")

    assert (report["messages"], report["threads"]) == (1, 1)
    assert not set(report["loaded"]) & set(OPTIONAL)


def test_an_open_hiermem_neither_holds_the_process_nor_prints_at_its_end(tmp_path):
    assert run(EXIT_WHILE_OPEN + "print('end')", tmp_path / "memory") == "end\n"


@pytest.fixture
def without_chroma(monkeypatch):
    monkeypatch.setitem(sys.modules, "chromadb", None)


@pytest.mark.usefixtures("without_chroma")
def test_e8_a_backend_whose_extra_is_missing_names_the_extra(tmp_path):
    with pytest.raises(MissingExtraError, match=r"hiermem-core\[chroma\]") as missing:
        HierMem.open(tmp_path / "memory", backend="chroma")

    assert missing.value.extra == "chroma"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("without_chroma")
def test_e8_a_backend_chosen_by_settings_names_the_extra_too(tmp_path):
    with pytest.raises(MissingExtraError):
        HierMem.open(tmp_path / "memory", settings=HierMemSettings(backend="chroma"))
