"""What a model call sends besides messages: the schemas of tools and of a structured answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from langchain.agents.structured_output import (
    AutoStrategy,
    OutputToolBinding,
    ProviderStrategy,
    ToolStrategy,
)
from langchain_core.utils.function_calling import convert_to_openai_tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def schemas_of(tools: Sequence[Any], response_format: Any) -> list[Mapping[str, Any]]:
    """Return the schemas that count; a tool of a provider is a schema by itself.

    A structured answer costs as much in either way a model may give it, so which way is taken
    need not be known.
    """
    schemas = [
        tool if isinstance(tool, Mapping) else convert_to_openai_tool(tool) for tool in tools
    ]
    return [*schemas, *_answer_schemas(response_format)]


def _answer_schemas(response_format: Any) -> Iterator[Mapping[str, Any]]:
    if response_format is None:
        return
    if isinstance(response_format, ProviderStrategy):
        yield response_format.to_model_kwargs()["response_format"]
        return
    strategy = response_format
    if not isinstance(strategy, ToolStrategy):
        schema = strategy.schema if isinstance(strategy, AutoStrategy) else strategy
        strategy = ToolStrategy(schema)
    for spec in strategy.schema_specs:
        yield convert_to_openai_tool(OutputToolBinding.from_schema_spec(spec).tool)
