"""Tools that ask the run that calls them whose memory they are of. Needs the extra `agents`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain.tools import ToolRuntime  # noqa: TC002 - LangChain reads the annotation

from langchain_hiermem.identity import tenant_of

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from hiermem_core import HierMem
    from langchain_hiermem.tools import ToolSpec


def tool_of_run(spec: ToolSpec, hiermem: HierMem) -> BaseTool:
    """Return a tool for the tenant that the context of a run names.

    A run that names none raises `MissingIdentityError` through the agent.
    """

    def run(runtime: ToolRuntime, **given: Any) -> str:
        return spec.act(hiermem.tenant(tenant_of(runtime.context, None)), **given)

    async def arun(runtime: ToolRuntime, **given: Any) -> str:
        return await hiermem.pool.run(run, runtime, **given)

    return spec.made(run, arun)
