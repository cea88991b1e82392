"""LangChain's own tests of tools, as they come packaged, on each of ours."""

from __future__ import annotations

import pytest
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from hiermem_core import HierMem
from langchain_hiermem import create_memory_tools

EXAMPLES = {
    "remember": {"content": "Ann likes tea"},
    "recall": {"query": "tea", "limit": 3},
    "forget": {"id": "nobody"},
}


@pytest.fixture(scope="class")
def tenant(tmp_path_factory):
    with HierMem.open(tmp_path_factory.mktemp("standard") / "memory") as hiermem:
        yield hiermem.tenant("acme")


class OneTool:
    @pytest.fixture(autouse=True, params=EXAMPLES)
    def of_tenant(self, request, tenant):
        tools = {tool.name: tool for tool in create_memory_tools(tenant)}
        self.tool_under_test = tools[request.param]

    @property
    def tool_constructor(self):
        return self.tool_under_test

    @property
    def tool_invoke_params_example(self):
        return EXAMPLES[self.tool_under_test.name]


class TestToolUnit(OneTool, ToolsUnitTests):
    pass


class TestToolIntegration(OneTool, ToolsIntegrationTests):
    pass
