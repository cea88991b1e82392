"""What importing the package loads, and what it says where the framework is missing."""

from __future__ import annotations

import json

import pytest
from llamaindex.samples import run_python

import llamaindex_hiermem

HIDE = """
import sys
from importlib.machinery import PathFinder

class Hiding:
    @staticmethod
    def find_spec(name, path=None, target=None):
        is_hidden = name.startswith(tuple(sys.argv[1:]))
        return None if is_hidden else PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [Hiding if finder is PathFinder else finder for finder in sys.meta_path]
"""

IMPORT = """
import json, socket, sys

def refuse(*arguments, **options):
    raise AssertionError("a network socket was opened")

socket.socket.__init__ = refuse
import llamaindex_hiermem
print(json.dumps(sorted(sys.modules)))
"""

FOREIGN = {"langchain", "langchain_core", "langchain_hiermem", "chromadb", "psycopg", "openai"}


@pytest.fixture(scope="module")
def loaded():
    """Give the modules that a fresh interpreter has after the import."""
    return json.loads(run_python(IMPORT))


def test_the_import_loads_the_frameworks_core_and_nothing_above_it(loaded):
    packages = {name.partition(".")[0] for name in loaded}
    parts = {name.split(".")[1] for name in loaded if name.startswith("llama_index.")}

    assert not packages & FOREIGN
    assert parts == {"core"}


def test_the_tokenizer_is_not_built_by_import_or_construction():
    printed = run_python(
        """
        import llama_index.core, tiktoken.registry
        from llamaindex_hiermem import HierMemChatMemoryBuffer

        memory = HierMemChatMemoryBuffer.from_defaults()
        print(llama_index.core.global_tokenizer, tiktoken.registry.ENCODINGS)
        memory.get()
        print(llama_index.core.global_tokenizer, tiktoken.registry.ENCODINGS)
        """
    )

    assert printed == "None {}\n" * 2


@pytest.mark.parametrize("hidden", ["llama_index", "llama_index.core"])
def test_without_the_framework_the_error_names_the_line_that_installs_it(hidden):
    printed = run_python(
        HIDE
        + """
try:
    import llamaindex_hiermem
except ImportError as error:
    print(type(error).__module__, type(error).__name__, error.extra)
    print(error)
""",
        hidden,
    )

    assert printed == (
        "hiermem_core.errors MissingExtraError llamaindex\n"
        'llamaindex_hiermem needs an extra; run: pip install "hiermem-core[llamaindex]"\n'
    )


def test_it_works_without_the_other_extras():
    printed = run_python(
        HIDE
        + """
from llama_index.core.llms import ChatMessage
from llamaindex_hiermem import HierMemChatMemoryBuffer

memory = HierMemChatMemoryBuffer.from_defaults(counting="core")
memory.put(ChatMessage(role="user", content="hi"))
print(memory.get())
""",
        *("langchain", "chromadb", "psycopg", "openai"),
    )

    assert "text='hi'" in printed


def test_the_public_names_are_those_promised_and_there():
    names = llamaindex_hiermem.__all__

    assert names == [
        "HierMemChatMemoryBuffer",
        "HierMemChatStore",
        "HierMemDBChatStore",
        "HierMemMemoryBlock",
        "HierMemRetriever",
        "create_memory_tools",
    ]
    assert all(hasattr(llamaindex_hiermem, name) for name in names)
