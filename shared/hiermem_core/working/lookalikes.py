"""Lookalikes: an object that shares another one's class and state, and does a few things anew.

Frameworks ask `isinstance`, read signatures and set attributes, so a wrapped retriever or tool has
to be one. Its class is a subclass made for it, and its `__dict__` is the original's own, so that
what is set on one is set on both. The original is not touched.
"""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lookalike(original: Any, methods: Mapping[str, Callable[..., Any]], extra: Any) -> Any:
    """Return an object like the original with other methods.

    Args:
        methods: By name; called as the original's are, without the object itself.
        extra: Its attribute `working_memory`, which no listing shows.

    Raises:
        ConfigurationError: The original's class cannot be subclassed.
    """
    kind = type(original)
    state: list[Any] = []
    body: dict[str, Any] = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "__reduce_ex__": lambda _self, protocol: _reduced(original, protocol),
        "__dir__": lambda _self: dir(original),
        "__getattr__": _looking_up(kind, extra),
    }
    for name, method in methods.items():
        body[name] = _placed(getattr(kind, name), method, state)
    try:
        made = types.new_class(kind.__name__, (kind,), {}, lambda space: space.update(body))
        fresh: Any = object.__new__(made)
    except TypeError as error:
        reason = f"{kind.__name__} cannot be subclassed; use WorkingMemory(...).search instead"
        raise ConfigurationError("searcher", reason) from error
    _share_state(original, fresh)
    state.append(vars(fresh))
    return fresh


def _reduced(original: Any, protocol: Any) -> Any:
    """Return how the original is copied and pickled, in terms that hold for its lookalike too."""
    reduced = original.__reduce_ex__(protocol)
    if isinstance(reduced, tuple) and getattr(reduced[0], "__name__", "") == "__newobj__":
        return (_new, *reduced[1:])
    return reduced


def _new(kind: Any, *args: Any) -> Any:
    return kind.__new__(kind, *args)


def _placed(inherited: Any, method: Callable[..., Any], state: list[Any]) -> Any:
    """Return a method for the class, in the colour and with the signature of the inherited one.

    A copy made of the object has a state of its own, and keeps the inherited method.
    """

    def is_ours(thing: Any) -> bool:
        return vars(thing) is state[0]

    if _is_coroutine_function(inherited):

        async def awaited(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            if is_ours(self):
                return await method(*args, **kwargs)
            return await inherited(self, *args, **kwargs)

        return functools.update_wrapper(awaited, inherited)

    def called(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if is_ours(self):
            return method(*args, **kwargs)
        return inherited(self, *args, **kwargs)

    return functools.update_wrapper(called, inherited)


def _is_coroutine_function(function: Any) -> bool:
    return bool(getattr(getattr(function, "__code__", None), "co_flags", 0) & 0x80)


def _looking_up(kind: type, extra: Any) -> Callable[[Any, str], Any]:
    inherited = getattr(kind, "__getattr__", None)

    def look_up(self: Any, name: str) -> Any:
        if name == "working_memory":
            return extra
        if inherited is not None:
            return inherited(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    return look_up


def _share_state(original: Any, fresh: Any) -> None:
    for base in type(original).__mro__:
        for member in vars(base).values():
            if isinstance(member, types.MemberDescriptorType):
                try:
                    member.__set__(fresh, member.__get__(original))
                except AttributeError:  # the slot is empty
                    continue
    if hasattr(original, "__dict__"):
        object.__setattr__(fresh, "__dict__", original.__dict__)
