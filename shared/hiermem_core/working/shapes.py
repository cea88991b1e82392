"""Shapes: by what it has, how a searcher is asked. Pure, and no framework is imported.

| has | asked by |
| --- | --- |
| `recall` and `memory` | `recall`: the handle of a tenant |
| `_get_relevant_documents` | `invoke`, `ainvoke`: a LangChain retriever |
| `retrieve` and `aretrieve` | these: a LlamaIndex retriever |
| `search`, `recall`, `retrieve` or `invoke` | that, and its twin with an a before it |
| nothing of these, and can be called | calling it |

A method of something that searches, such as `tenant.recall`, is taken like the thing itself. What
the public fields of a retriever are set to counts; see `hiermem_core.working.fields`.

A searcher may say more of itself, by methods it has or not:
- `generation()`: a figure that changes with all that can change an answer;
- `cache_text(text, arguments)`: what of a question's text decides the answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import partial
from typing import Any

from hiermem_core.errors import ConfigurationError
from hiermem_core.models.queries import MemoryQuery
from hiermem_core.working.fields import fields_of
from hiermem_core.working.keys import CallForm, Frozen, View, defaults_of, form_of
from hiermem_core.working.options import check_function

Ask = Callable[..., Any]
AsyncAsk = Callable[..., Coroutine[Any, Any, Any]]
SameText = Callable[[str, Mapping[str, Any]], str]

_SHAPES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("recall", "memory"), ("recall",)),
    (("_get_relevant_documents", "invoke"), ("invoke", "ainvoke")),
    (("retrieve", "aretrieve"), ("retrieve", "aretrieve")),
    (("search",), ("search", "asearch")),
    (("recall",), ("recall", "arecall")),
    (("retrieve",), ("retrieve",)),
    (("invoke",), ("invoke", "ainvoke")),
)
_RETRIEVERS = (_SHAPES[1][0], _SHAPES[2][0])
_MEMORY_SERVICE = ("search", "search_semantic", "retrieve", "generation")
_PLUMBING = ("__", "checkpoint")


@dataclass(frozen=True)
class Searcher:
    """How something is asked.

    Attributes:
        method: Its name in keys.
        names: Of the methods that ask it.
        ask: Asks it; `None`: it can only be awaited.
        aask: Asks it by awaiting; `None`: there is no such way.
        generation: Reads its generation; `None`: it has none.
        agenerate: Reads it by awaiting, where there is no other way.
        same_text: Returns what of a text decides the answer.
        settings: Reads what it is set to; `None`: nothing that is known.
    """

    method: str
    names: tuple[str, ...]
    form: CallForm
    ask: Ask | None
    aask: AsyncAsk | None
    generation: Callable[[], Frozen] | None = None
    agenerate: Callable[[], Coroutine[Any, Any, Frozen]] | None = None
    same_text: SameText | None = None
    tenant: str = ""
    settings: Callable[[], Frozen] | None = None

    @property
    def has_generation(self) -> bool:
        """Tell whether changes of what it searches can be seen."""
        return self.generation is not None or self.agenerate is not None


def recognise(thing: Any, generation: Callable[[], Frozen] | None = None) -> Searcher:
    """Return how a thing is asked.

    Args:
        generation: Stands for the one it has.

    Raises:
        ConfigurationError: It has nothing that searches, or `generation` is no function.
    """
    names = _names_of(thing)
    ask, aask = _ways_of(thing, names)
    owner = owner_of(thing) if names == ("__call__",) else thing
    read, await_it = generations_of(owner, generation)
    shape = owner if owner is thing or _searches_by(owner, thing) else thing
    return Searcher(
        method=names[0],
        names=names,
        form=_form(shape, ask or aask),
        ask=ask,
        aask=aask,
        generation=read,
        agenerate=await_it,
        same_text=_same_text_of(shape),
        tenant=_tenant_of(owner),
        settings=partial(fields_of, owner) if _is_retriever(owner) else None,
    )


def owner_of(function: Any) -> Any:
    """Return the object whose method a function is; the function itself where it is of none."""
    bare = function
    while isinstance(bare, partial):
        bare = bare.func
    owner = getattr(bare, "__self__", None) if inspect.ismethod(bare) else None
    return function if owner is None or isinstance(owner, type) else owner


def is_awaited(function: Any) -> bool:
    """Tell whether calling a function gives something to await."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - the method itself is looked at
    )


def configurable_of(config: Any) -> Any:
    """Return what of a LangChain config may decide an answer; not what LangGraph notes in it."""
    configurable = config.get("configurable") if isinstance(config, Mapping) else None
    if not configurable:
        return None
    return {
        name: value for name, value in configurable.items() if not str(name).startswith(_PLUMBING)
    } or None


def _names_of(thing: Any) -> tuple[str, ...]:
    if not isinstance(thing, type):
        for needed, names in _SHAPES:
            if all(hasattr(thing, name) for name in needed):
                return tuple(name for name in names if callable(getattr(thing, name, None)))
        if callable(thing):
            return ("__call__",)
    reason = f"{type(thing).__name__} has no method that searches; give a function that does"
    raise ConfigurationError("searcher", reason)


def _ways_of(thing: Any, names: tuple[str, ...]) -> tuple[Ask | None, AsyncAsk | None]:
    ask, aask = None, None
    for name in names:
        way = thing if name == "__call__" else getattr(thing, name)
        if is_awaited(way):
            aask = aask or way
        else:
            ask = ask or way
    if ask is None:
        ask = getattr(getattr(thing, "sync", None), names[0], None)
    return ask, aask


def _searches_by(owner: Any, method: Any) -> bool:
    """Tell whether a method is one that its object is asked by."""
    try:
        return getattr(method, "__name__", "") in _names_of(owner)
    except ConfigurationError:
        return False


def _is_retriever(thing: Any) -> bool:
    return hasattr(thing, "__dict__") and any(
        all(hasattr(thing, name) for name in needed) for needed in _RETRIEVERS
    )


def generations_of(
    thing: Any, given: Callable[[], Frozen] | None = None
) -> tuple[Callable[[], Frozen] | None, Callable[[], Coroutine[Any, Any, Frozen]] | None]:
    """Return how the generation of a thing is read: by calling, or else by awaiting.

    Raises:
        ConfigurationError: The one given is no function.
    """
    check_function("generation", given)
    read: Any = getattr(thing, "generation", None) if given is None else given
    if not callable(read):
        return None, None
    if not is_awaited(read):
        return read, None
    sync = getattr(getattr(thing, "sync", None), "generation", None)
    if given is None and callable(sync):
        return sync, None
    return None, read


def _form(thing: Any, function: Any) -> CallForm:
    views: dict[str, View] = {}
    if hasattr(thing, "ainvoke"):
        views = {"config": configurable_of}
    if all(hasattr(thing, name) for name in _MEMORY_SERVICE):
        return form_of(function, defaults=_query_defaults(), opened={"MemoryQuery": "text"})
    opened = {"QueryBundle": "query_str"} if hasattr(thing, "aretrieve") else {}
    behind = getattr(thing, "_get_relevant_documents", None)
    return form_of(function, defaults=defaults_of(behind), views=views, opened=opened)


def _query_defaults() -> dict[str, Any]:
    return {spec.name: spec.default for spec in fields(MemoryQuery) if spec.default is not MISSING}


def _same_text_of(thing: Any) -> SameText | None:
    declared = getattr(thing, "cache_text", None)
    if callable(declared):
        same: SameText = declared
        return same
    if all(hasattr(thing, name) for name in _MEMORY_SERVICE):
        return _text_of_words
    return None


def _text_of_words(text: str, arguments: Mapping[str, Any]) -> str:
    """Return a text without what keyword search ignores: outer spaces, and the case of a to z."""
    if arguments.get("mode") != "keyword":
        return text
    bare = text.strip()
    return bare.lower() if bare.isascii() else bare


def _tenant_of(thing: Any) -> str:
    is_tenant = hasattr(thing, "recall") and hasattr(thing, "memory")
    name = getattr(thing, "name" if is_tenant else "tenant_id", "")
    return name if isinstance(name, str) else ""
