"""What importing the adapter loads, raises, warns of and says where something is missing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import langchain_hiermem

LOADED = """
    import json, sys
    import langchain_hiermem
    before = sorted(sys.modules)
    if len(sys.argv) > 1:
        getattr(langchain_hiermem, sys.argv[1])
    print(json.dumps([before, sorted(sys.modules)]))
"""

OURS = {"hiermem_core", "langchain_hiermem"}
FRAMEWORKS = {"langchain", "langchain_classic", "langgraph", "langchain_community"}

USE_ALL = """
    import asyncio, sys
    import langchain_hiermem
    for name in langchain_hiermem.__all__:
        getattr(langchain_hiermem, name)
    from langchain_core.messages import AIMessage, HumanMessage
    from hiermem_core import HierMem

    class Own(langchain_hiermem.HierMemChatMessageHistory):
        pass

    with HierMem.open(sys.argv[1]) as hiermem:
        for kind in (Own, langchain_hiermem.HierMemChatMessageHistory):
            history = kind(hiermem, tenant_id="acme", thread_id=kind.__name__)
            history.add_messages([HumanMessage("hi"), AIMessage("hello")])
            asyncio.run(history.aadd_messages([HumanMessage("again")]))
            assert len(history.messages) == len(asyncio.run(history.aget_messages())) == 3
            assert len(history.window(1000)) == 3
            history.clear()
        langchain_hiermem.history_factory(hiermem)("acme", "t2").add_user_message("hi")
    print("used")
"""

FACTORY_IO = """
    import sys
    from hiermem_core import HierMem
    from langchain_hiermem import history_factory

    hiermem, seen, watching = HierMem.open(sys.argv[1]), [], []
    sys.addaudithook(lambda event, args: seen.append(event) if watching else None)
    watching.append(True)
    history_factory(hiermem)("acme", "t1")
    while_making = list(seen)
    HierMem.open(sys.argv[1])
    watching.clear()
    print(while_making, "sqlite3.connect" in seen)
"""

OFFLINE = """
    import socket, sys

    def refuse(*arguments, **options):
        raise AssertionError("the network was used")

    socket.socket.__init__ = refuse
    socket.getaddrinfo = refuse
    sys.modules["transformers"] = None

    from langchain_core.messages import AIMessage, HumanMessage
    from hiermem_core import ApproximateCounter, HierMem
    from langchain_hiermem import HierMemChatMessageHistory

    for counter in (None, ApproximateCounter()):
        with HierMem.open(":memory:", counter=counter) as hiermem:
            history = HierMemChatMessageHistory(hiermem, tenant_id="acme", thread_id="t1")
            history.add_messages([HumanMessage("hello " * 50), AIMessage("你好 " * 50)] * 20)
            window = history.window(500)
            assert 0 < len(window) < 40
            assert hiermem.tenant("acme").stats().uncounted_turns == 0
    assert sys.modules["transformers"] is None
    print("counted")
"""

TOUCH = """
    import langchain_hiermem
    from hiermem_core import MissingExtraError

    assert langchain_hiermem.__all__
    for name in langchain_hiermem.__all__:
        try:
            getattr(langchain_hiermem, name)
        except MissingExtraError as error:
            assert isinstance(error, ImportError)
            home = langchain_hiermem._HOMES[name]
            assert error.extra == langchain_hiermem._NEEDS.get(home, ["langchain"])[0]
            print(error)
"""

NEEDS = {
    name: langchain_hiermem._NEEDS.get(home, ("langchain", ("langchain_core",)))
    for name, home in langchain_hiermem._HOMES.items()
}
"""By name, its extra and modules that the extra brings."""

PIP_LINES = {
    name: f'pip install "hiermem-core[{NEEDS[name][0]}]"'
    for name in langchain_hiermem.__all__
    if NEEDS[name][0]
}


AGENTS = "langchain.agents.middleware"
"""Of the extra `agents`; its package alone may be found where tests are looked for."""

needs_all = pytest.mark.skipif(
    not all(
        map(langchain_hiermem._is_there, [AGENTS, "langchain_classic", "langgraph.store.base"])
    ),
    reason="needs every extra of the adapter",
)


def output_of(ended):
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_importing_loads_no_framework(run_python):
    before, _ = json.loads(output_of(run_python(LOADED)))

    roots = {name.partition(".")[0] for name in before}
    assert "langchain_hiermem" in roots
    assert not roots & {*FRAMEWORKS, "langchain_core", "llama_index", "chromadb", "tiktoken"}


def test_touching_the_context_of_a_run_needs_no_extra(run_python):
    before, after = json.loads(output_of(run_python(LOADED, "HierMemContext", options=["-S"])))

    fresh = {name for name in set(after) - set(before) if name.partition(".")[0] in OURS}
    assert fresh == {"langchain_hiermem.identity"}
    assert "langchain_core" not in after


@pytest.mark.parametrize("name", PIP_LINES)
def test_touching_a_name_loads_langchain_core_and_no_other_framework(run_python, name):
    if name == "HierMemMiddleware":
        pytest.importorskip(AGENTS, reason="needs the extra agents")

    before, after = json.loads(output_of(run_python(LOADED, name)))

    fresh = set(after) - set(before)
    assert "langchain_core.messages" in fresh
    brought = {one.partition(".")[0] for one in fresh} & {*FRAMEWORKS, "llama_index", "chromadb"}
    assert brought == {one.partition(".")[0] for one in NEEDS[name][1]} - {"langchain_core"}
    graphs = {one for one in fresh if one.startswith(("langgraph.graph", "langgraph.pregel"))}
    assert bool(graphs) == (name == "HierMemMiddleware")
    assert "langchain_core.memory" not in fresh


def test_touching_the_conversion_does_not_load_the_history(run_python):
    _, after = json.loads(output_of(run_python(LOADED, "message_to_turn")))

    assert "langchain_hiermem.messages" in after
    assert "langchain_hiermem.chat_history" not in after


@needs_all
def test_the_public_names_are_sorted_listed_and_there():
    assert langchain_hiermem.__all__ == sorted(langchain_hiermem.__all__)
    assert set(langchain_hiermem.__all__) <= set(dir(langchain_hiermem))
    for name in langchain_hiermem.__all__:
        assert getattr(langchain_hiermem, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'HierMemTypo'"):
        langchain_hiermem.HierMemTypo  # noqa: B018 - touching it is what raises


@needs_all
def test_importing_subclassing_and_using_our_classes_warns_of_nothing(run_python, location):
    ended = run_python(USE_ALL, location, options=["-W", "error"])

    assert output_of(ended) == "used\n"
    assert ended.stderr == ""


def test_without_langchain_core_every_name_says_the_line_to_type(run_python):
    ended = run_python(TOUCH, options=["-S"])

    lines = output_of(ended).splitlines()
    assert [line.partition("run: ")[2] for line in lines] == list(PIP_LINES.values())


def test_with_the_import_of_langchain_core_blocked_too(run_python):
    ended = run_python("    import sys\n    sys.modules['langchain_core'] = None" + TOUCH)

    lines = output_of(ended).splitlines()
    assert [line.partition("run: ")[2] for line in lines] == list(PIP_LINES.values())


def test_with_the_store_of_langgraph_missing_only_what_needs_it_says_so(run_python):
    ended = run_python("    import sys\n    sys.modules['langgraph.store'] = None" + TOUCH)

    assert output_of(ended).splitlines() == [
        f"langchain_hiermem.{name} needs an extra; run: {PIP_LINES[name]}"
        for name in ("HierMemMiddleware", "HierMemStore")
    ]


def test_no_text_names_the_package_of_somebody_else():
    files = list(Path(langchain_hiermem.__file__).parent.glob("*.py"))

    assert len(files) >= 3
    for file in files:
        assert not re.search(r"pip install \W*hiermem\b(?!-core)", file.read_text())


@pytest.mark.files
def test_lc32_the_factory_does_no_io(run_python, location):
    assert output_of(run_python(FACTORY_IO, location)) == "[] True\n"


def test_lc9_counting_needs_no_transformers_and_no_download(run_python):
    assert output_of(run_python(OFFLINE)) == "counted\n"
