"""Which methods and tools search, and which write: by their names. Pure."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

ADDING = frozenset({"add", "append", "insert", "put", "remember", "save", "store", "upsert"})
WRITING = ADDING | frozenset(
    {"bulk", "change", "clear", "delete", "drop", "edit", "erase", "forget", "purge", "remove"}
    | {"replace", "reset", "set", "update", "write"}
)
SEARCHING = frozenset({"find", "lookup", "query", "recall", "retrieve", "retriever", "search"})
_READING = frozenset({"get", "list", "read"})

_CONTENT_NAMES = ("content", "text", "memory", "page_content")


def words_of(name: str) -> list[str]:
    """Return the words of a name, in lower case: `addMemory` and `add_memory` have two."""
    return [word.lower() for word in _WORD.findall(name)]


def writes(name: str) -> bool:
    """Tell whether something of this name changes what is searched."""
    words = words_of(name)
    return bool(words) and words[0] not in _READING and not WRITING.isdisjoint(words)


def adds(name: str) -> bool:
    """Tell whether something of this name adds an entry."""
    return writes(name) and not ADDING.isdisjoint(words_of(name))


def searches(name: str) -> bool:
    """Tell whether something of this name searches."""
    return not writes(name) and not SEARCHING.isdisjoint(words_of(name))


def writing_methods(thing: Any) -> dict[str, bool]:
    """Return the public methods of an object that write, and for each whether it adds.

    They begin with a word that says so; an `a` before it is for the awaited twin.
    """
    kind, found = type(thing), {}
    for name in dir(kind):
        plain = name[1:] if name[:1] == "a" and hasattr(kind, name[1:]) else name
        first = "".join(words_of(plain)[:1])
        is_method = inspect.isfunction(inspect.getattr_static(kind, name, None))
        if is_method and not name.startswith("_") and first in WRITING:
            found[name] = adds(plain)
    return found


def content_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    """Return the text that a write adds; `None` where it is not plain to see."""
    for value in (*args[:1], *(kwargs[name] for name in _CONTENT_NAMES if name in kwargs)):
        if isinstance(value, str):
            return value
        if isinstance(value, Mapping):
            return next((value[n] for n in _CONTENT_NAMES if isinstance(value.get(n), str)), None)
        content = getattr(value, "content", None)
        if isinstance(content, str):
            return content
    return None
