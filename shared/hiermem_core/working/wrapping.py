"""Wrapping: the same object, function or tools, with cached search."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import ConfigurationError
from hiermem_core.working.lookalikes import lookalike
from hiermem_core.working.shapes import Searcher, is_awaited, recognise
from hiermem_core.working.tools import Tools, as_tool, is_tool
from hiermem_core.working.working_memory import WorkingMemory
from hiermem_core.working.writes import adds, content_of, searches, writes, writing_methods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hiermem_core.working.tools import Tool

_logger = logging.getLogger(__name__)


def create_working_memory(searcher_or_tools: Any, **options: Any) -> Any:
    """Return a searcher like the given one whose search is cached; or such tools for tools.

    The given one is never changed: its own search still asks. Everything else passes through; the
    new one has the attribute `working_memory` besides, a `WorkingMemory`. Where changes cannot be
    seen otherwise, its methods that write (`store`, `update`, `delete`, `clear`, `forget`, ...)
    drop the answers, before and after, and also when they fail. Of tools, those that search are
    cached and those that add or delete drop the answers, told apart by their names; they share a
    working memory, whose own `search` asks the first of them.

    Args:
        searcher_or_tools: What `WorkingMemory` takes; or a list or mapping of tools of LangChain or
            LlamaIndex, or of functions.
        options: Of `WorkingMemory`. For tools also `searches` and `writes`: the names of tools
            that do, where their names do not tell.

    Raises:
        ConfigurationError: An option is out of range, nothing searches, or the searcher's class
            cannot be subclassed.
    """
    if isinstance(searcher_or_tools, Mapping | list | tuple):
        return _with_tools(searcher_or_tools, options)
    if is_tool(searcher_or_tools):
        return _with_tools([searcher_or_tools], options)[0]
    searcher = recognise(searcher_or_tools, options.pop("generation", None))
    memory = WorkingMemory(searcher, **options)
    wrap = _Wrap(memory, [searcher])
    is_partial = isinstance(searcher_or_tools, functools.partial)
    if searcher.names == ("__call__",) and (is_partial or hasattr(searcher_or_tools, "__name__")):
        return wrap.function(searcher_or_tools, searcher)
    return wrap.whole(searcher_or_tools, searcher)


class _Wrap:
    """Makes the methods of one wrapped thing."""

    def __init__(self, memory: WorkingMemory, searchers: Sequence[Searcher]) -> None:
        self._memory = memory
        self._asking = memory._asking  # noqa: SLF001 - two halves of one thing
        self._searchers = searchers

    def whole(self, thing: Any, searcher: Searcher) -> Any:
        """Return a lookalike of an object."""
        methods = {name: self.search(getattr(thing, name), searcher) for name in searcher.names}
        if not searcher.has_generation or self._asking.options.auto_populate:
            drops = not searcher.has_generation
            for name, is_adding in writing_methods(thing).items():
                if name not in methods:
                    way = getattr(thing, name)
                    methods[name] = self.write(way, is_adding=is_adding, drops=drops)
        return lookalike(thing, methods, self._memory)

    def function(self, function: Callable[..., Any], searcher: Searcher) -> Any:
        """Return a function like a function."""
        return self._named(function, self.search(function, searcher))

    def tool(self, tool: Tool, searcher: Searcher | None) -> Any:
        """Return a tool like a tool, that searches where there is a searcher, or else writes."""
        methods = {
            name: self.write(way, is_adding=adds(tool.name), drops=True)
            if searcher is None
            else self.search(way, searcher)
            for name, way in tool.ways.items()
        }
        if tool.is_function:
            return self._named(tool.thing, methods["__call__"])
        return lookalike(tool.thing, methods, self._memory)

    def search(self, way: Callable[..., Any], searcher: Searcher) -> Callable[..., Any]:
        """Return a way to search, cached, in the colour of the given one."""
        asking = self._asking

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return (await asking.aask(searcher, args, kwargs)).result

        def called(*args: Any, **kwargs: Any) -> Any:
            return asking.ask(searcher, args, kwargs).result

        return awaited if is_awaited(way) else called

    def write(self, way: Callable[..., Any], *, is_adding: bool, drops: bool) -> Callable[..., Any]:
        """Return a way to write that drops the answers, in the colour of the given one."""
        asking, options = self._asking, self._asking.options
        drop: Callable[[], None] = asking.drop_scope if drops else lambda: None
        populates = options.auto_populate and is_adding

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            drop()
            try:
                result = await way(*args, **kwargs)
            finally:
                drop()
            if populates and not options.is_failure(result):
                await self._apopulate(content_of(args, kwargs))
            return result

        def called(*args: Any, **kwargs: Any) -> Any:
            drop()
            try:
                result = way(*args, **kwargs)
            finally:
                drop()
            if populates and not options.is_failure(result):
                self._populate(content_of(args, kwargs))
            return result

        return awaited if is_awaited(way) else called

    def _named(self, function: Any, wrapped: Callable[..., Any]) -> Any:
        named: Any = functools.update_wrapper(wrapped, function)
        named.working_memory = self._memory
        return named

    def _populate(self, content: str | None) -> None:
        for searcher, args, given in self._asking.repeated(self._searchers, content):
            try:
                self._asking.ask(searcher, args, given)
            except Exception as error:  # noqa: BLE001 - the write itself succeeded
                _logger.warning("a search after a write failed: %s", type(error).__name__)

    async def _apopulate(self, content: str | None) -> None:
        for searcher, args, given in self._asking.repeated(self._searchers, content):
            try:
                await self._asking.aask(searcher, args, given)
            except Exception as error:  # noqa: BLE001 - the write itself succeeded
                _logger.warning("a search after a write failed: %s", type(error).__name__)


def _with_tools(given: Any, options: dict[str, Any]) -> Any:
    names = given.keys() if isinstance(given, Mapping) else [None] * len(given)
    items = given.values() if isinstance(given, Mapping) else given
    tools = [as_tool(thing, name) for name, thing in zip(names, items, strict=True)]
    searching = _chosen(tools, options.pop("searches", None), searches)
    writing = _chosen(tools, options.pop("writes", None), writes) - searching
    generation = options.pop("generation", None)
    searchers = {tool.name: tool.searcher(generation) for tool in tools if tool.name in searching}
    if not searchers:
        listed = ", ".join(tool.name for tool in tools) or "none"
        reason = f"no tool searches by its name ({listed}); name those that do in searches=[...]"
        raise ConfigurationError("tools", reason)
    memory = WorkingMemory(next(iter(searchers.values())), **options)
    wrap = _Wrap(memory, list(searchers.values()))
    made = [
        wrap.tool(tool, searchers.get(tool.name))
        if tool.name in searching | writing
        else tool.thing
        for tool in tools
    ]
    if isinstance(given, Mapping):
        return Tools.mapping(zip(given, made, strict=True), memory)
    return Tools.listed(made, memory)


def _chosen(
    tools: Sequence[Tool], named: Iterable[str] | None, by_name: Callable[[str], bool]
) -> set[str]:
    if named is None:
        return {tool.name for tool in tools if by_name(tool.name)}
    wanted, known = set(named), {tool.name for tool in tools}
    if not wanted <= known:
        listed = ", ".join(sorted(wanted - known))
        raise ConfigurationError("tools", f"there is no tool {listed}; name one of those given")
    return wanted
