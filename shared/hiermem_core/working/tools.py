"""Tools: how those of each framework run, by what they have; no framework is imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import ConfigurationError
from hiermem_core.working.keys import CallForm, Frozen, View, form_of
from hiermem_core.working.shapes import (
    Searcher,
    configurable_of,
    generations_of,
    is_awaited,
    owner_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_LANGCHAIN = ("_run", "_arun", "args_schema")
_LLAMAINDEX = ("metadata", "__call__")
_PLAIN_WAYS = ("execute", "aexecute")


@dataclass(frozen=True)
class Tool:
    """A tool.

    Attributes:
        name: What models call it.
        ways: The methods that run it, by name.
        function: What says how it is called, and with which defaults.
        views: What of its arguments decides the answer.
    """

    thing: Any
    name: str
    ways: Mapping[str, Callable[..., Any]]
    function: Any
    views: Mapping[str, View]

    @property
    def is_function(self) -> bool:
        """Tell whether it is a plain function."""
        return tuple(self.ways) == ("__call__",) and hasattr(self.thing, "__name__")

    def searcher(self, generation: Callable[[], Frozen] | None) -> Searcher:
        """Return how it is asked."""
        ways = self.ways.values()
        read, await_it = generations_of(owner_of(self.function), generation)
        return Searcher(
            method=self.name,
            names=tuple(self.ways),
            form=self._form(),
            ask=next((way for way in ways if not is_awaited(way)), None),
            aask=next((way for way in ways if is_awaited(way)), None),
            generation=read,
            agenerate=await_it,
        )

    def _form(self) -> CallForm:
        return form_of(self.function, query=None, views=self.views)


def is_tool(thing: Any) -> bool:
    """Tell whether something is a tool of a framework."""
    return all(hasattr(thing, name) for name in _LANGCHAIN) or _is_llamaindex(thing)


def as_tool(thing: Any, name: str | None = None) -> Tool:
    """Return how a tool runs.

    Args:
        name: Under which it was given; by default its own.

    Raises:
        ConfigurationError: It is no tool.
    """
    if all(hasattr(thing, attribute) for attribute in _LANGCHAIN):
        return _langchain(thing, name)
    if _is_llamaindex(thing):
        function = getattr(thing, "_real_fn", None) or thing.__call__
        ways = _ways(thing, ("call", "acall", "__call__"))
        return Tool(thing, name or str(thing.metadata.name), ways, function, {})
    ways = _ways(thing, _PLAIN_WAYS)
    if ways:
        own = name or getattr(thing, "name", None) or type(thing).__name__
        return Tool(thing, str(own), ways, next(iter(ways.values())), {})
    if callable(thing):
        own = name or getattr(thing, "__name__", None) or type(thing).__name__
        return Tool(thing, str(own), {"__call__": thing}, thing, {})
    raise ConfigurationError(
        "tools", f"{type(thing).__name__} cannot be called; give tools or functions"
    )


def _is_llamaindex(thing: Any) -> bool:
    return hasattr(getattr(thing, "metadata", None), "get_name") and callable(thing)


def _ways(thing: Any, names: Iterable[str]) -> dict[str, Callable[..., Any]]:
    return {name: getattr(thing, name) for name in names if callable(getattr(thing, name, None))}


def _langchain(thing: Any, name: str | None) -> Tool:
    function = getattr(thing, "func", None) or getattr(thing, "coroutine", None) or thing._run  # noqa: SLF001 - what tools of one's own define
    views: dict[str, View] = {
        "run_manager": None,
        "callbacks": None,
        "config": configurable_of if _takes_config(function) else None,
    }
    return Tool(thing, name or str(thing.name), _ways(thing, ("_run", "_arun")), function, views)


def _takes_config(function: Any) -> bool:
    annotations = getattr(function, "__annotations__", {})
    return "config" in annotations or any("RunnableConfig" in str(a) for a in annotations.values())


class Tools:
    """Lists and mappings of tools that have the attribute `working_memory`, which nothing lists."""

    @staticmethod
    def listed(tools: Iterable[Any], memory: Any) -> list[Any]:
        """Return a list of tools."""
        made = _ToolList(tools)
        made._memory = memory  # noqa: SLF001 - its slot
        return made

    @staticmethod
    def mapping(tools: Iterable[tuple[Any, Any]], memory: Any) -> dict[Any, Any]:
        """Return a dict of tools."""
        made = _ToolDict(tools)
        made._memory = memory  # noqa: SLF001 - its slot
        return made


class _ToolList(list[Any]):
    __slots__ = ("_memory",)
    _memory: Any

    def __getattr__(self, name: str) -> Any:
        if name == "working_memory":
            return self._memory
        raise AttributeError(name)

    def __dir__(self) -> list[str]:
        return dir([])

    def __reduce_ex__(self, protocol: Any) -> Any:
        return list, (list(self),)


class _ToolDict(dict[Any, Any]):
    __slots__ = ("_memory",)
    _memory: Any

    def __getattr__(self, name: str) -> Any:
        if name == "working_memory":
            return self._memory
        raise AttributeError(name)

    def __dir__(self) -> list[str]:
        return dir({})

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (dict(self),)
