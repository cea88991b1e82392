"""The examples in the docstrings of the public names run as pasted, beside what they presume."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import warnings

import pytest

import langchain_hiermem

PRESUMED = """
from langchain.agents import create_agent
from langchain_classic.chains import ConversationChain
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage, trim_messages
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.tools import tool
from langchain_hiermem import *

@tool
def search(query: str) -> str:
    "Search."
    return query

class Model(FakeListChatModel):
    def bind_tools(self, tools, **options):
        return self

model = Model(responses=["fine"])
memory = HierMemMiddleware(hiermem, budget_tokens=4000)
messages = [HumanMessage("hello")]
prompt = ChatPromptTemplate([MessagesPlaceholder("history"), ("human", "{question}")])
chain = prompt | model
hiermem.tenant("alice").remember("Prefers meetings in the morning")
"""


def examples_of(name):
    """Return the Python blocks of a name's docstring, and of its methods'."""
    value = getattr(langchain_hiermem, name)
    members = vars(value) if inspect.isclass(value) else ()
    documented = [value, *(getattr(value, member, None) for member in members)]
    docs = [inspect.getdoc(one) or "" for one in documented if callable(one)]
    return [
        textwrap.dedent(block)
        for block in re.findall(r"```python\n(.*?)```", "\n".join(docs), re.DOTALL)
    ]


SHOWN = ["HierMemChatMessageHistory", "HierMemContext", "HierMemMemory", "HierMemMiddleware"]
SHOWN += ["HierMemRetriever", "HierMemStore", "WorkingMemoryRetriever", "count_tokens"]
SHOWN += ["create_memory_tools", "history_factory"]


@pytest.mark.parametrize("name", SHOWN)
async def test_the_examples_of_a_docstring_run(name, hiermem):
    examples = examples_of(name)
    scope = {"hiermem": hiermem}
    exec(PRESUMED, scope)

    assert examples
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of what is shown with LangChain's own
        for example in examples:
            code = compile(example, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(code, scope)
            if inspect.isawaitable(result):
                await result
