"""LangChain's own tests of retrievers, as they come packaged, on ours."""

from __future__ import annotations

import pytest
from langchain_tests.integration_tests import RetrieversIntegrationTests

from hiermem_core import HierMem
from hiermem_core.testing import FakeEmbedder
from langchain_hiermem import HierMemRetriever, WorkingMemoryRetriever


@pytest.fixture(scope="class", params=["sqlite", "chroma", "hybrid"])
def tenant(request, tmp_path_factory):
    location = tmp_path_factory.mktemp("standard") / "memory"
    with HierMem.open(location, backend=request.param, embedder=FakeEmbedder()) as hiermem:
        tenant = hiermem.tenant("acme")
        tenant.memory.bulk_insert(f"tea number {number}" for number in range(5))
        yield tenant


class TestHierMemRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def in_tenant(self, tenant):
        self.tenant = tenant

    @property
    def retriever_constructor(self):
        return HierMemRetriever

    @property
    def retriever_constructor_params(self):
        return {"memory": self.tenant}

    @property
    def retriever_query_example(self):
        return "tea"


class TestWorkingMemoryRetriever(TestHierMemRetriever):
    @property
    def retriever_constructor(self):
        return lambda **fields: WorkingMemoryRetriever(HierMemRetriever(**fields))
