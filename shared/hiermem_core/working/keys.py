"""Keys: when two calls must be answered alike. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Any, NamedTuple
from uuid import UUID

Frozen = Hashable
View = Callable[[Any], Any] | None

QUERY_NAMES = ("query", "question", "text", "input", "q", "search_query", "query_str")
"""How the parameter of what is asked is called where it is not the first one."""


class _NotGiven:
    """What is asked where nothing is; not the same as to ask `None`."""


NOT_GIVEN = _NotGiven()


class UnkeyableError(Exception):
    """An argument has no stable key; the call goes straight to the searcher."""


class Key(NamedTuple):
    """What a call asks for; never joined text."""

    scope: tuple[Frozen, ...]
    method: str
    query: Frozen
    arguments: tuple[tuple[str, Frozen], ...]
    settings: Frozen = None


class Asked(NamedTuple):
    """A call, read: what it asks, `NOT_GIVEN` where nothing, and what else decides its answer."""

    query: Any
    arguments: dict[str, Any]


def freeze(value: Any) -> Frozen:
    """Return a value that equals another one exactly if both values are equal and of one type.

    The order of a dict counts, as some searchers read it (a sort order, for example).

    Raises:
        UnkeyableError: Its identity, and not its value, is what it says.
    """
    kind = type(value)
    if kind in _PLAIN:
        return _itself(value)
    rule = _RULES.get(kind)
    if rule is None:
        rule = _rule_of(value)
    return (kind, rule(value))


def _rule_of(value: Any) -> Callable[[Any], Frozen]:
    if isinstance(value, Enum):
        return _by_name
    if isinstance(value, PurePath):
        return repr
    if isinstance(value, type):
        return _itself
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _by_items
    if is_dataclass(value) or hasattr(value, "__pydantic_fields_set__"):
        return _by_state
    if type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
        return _by_bytes
    raise UnkeyableError


def _itself(value: Any) -> Frozen:
    itself: Frozen = value
    return itself


def _by_name(value: Enum) -> Frozen:
    return value.name or freeze(value.value)  # several flags at once have no name


def _by_items(value: Any) -> Frozen:
    return tuple(map(freeze, value))


def _by_pairs(value: Any) -> Frozen:
    return tuple([(freeze(name), freeze(item)) for name, item in value.items()])


def _by_members(value: Any) -> Frozen:
    return frozenset(map(freeze, value))


def _by_state(value: Any) -> Frozen:
    if hasattr(value, "__dict__"):
        hidden = [getattr(value, f"__pydantic_{name}__", None) for name in ("extra", "private")]
        return (_by_pairs(vars(value)), freeze(hidden))
    return tuple([freeze(getattr(value, spec.name)) for spec in fields(value)])


def _by_bytes(value: Any) -> Frozen:
    if value.dtype.hasobject:
        raise UnkeyableError
    return (value.dtype.str, value.shape, value.tobytes())


_PLAIN = frozenset({str, bytes, type(None), type(Ellipsis), _NotGiven})
_RULES: Mapping[type, Callable[[Any], Frozen]] = {
    **dict.fromkeys((int, bool), _itself),
    **dict.fromkeys((float, complex, datetime, date, time, timedelta, timezone), repr),
    **dict.fromkeys((Decimal, Fraction, UUID, range), repr),
    **dict.fromkeys((list, tuple), _by_items),
    **dict.fromkeys((set, frozenset), _by_members),
    dict: _by_pairs,
    bytearray: bytes,
}


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class CallForm:
    """How a method is called: the names and defaults of what it takes.

    Attributes:
        names: Of its positional parameters; a slash ahead of those that have no name outside.
        query: The parameter that says what is asked; `None`: the likeliest of those given.
        defaults: Frozen. An argument that equals its default is as good as left out.
        unasked: What the method asks where no query is given; `NOT_GIVEN`: it needs one.
        views: What of a parameter decides the answer, by default all of it; `None`: nothing.
        opened: By the name of a class of queries, the field of it that holds the text; the other
            fields count as arguments.
    """

    names: tuple[str, ...] = ()
    query: str | None = None
    defaults: Mapping[str, Frozen] = field(default_factory=dict)
    views: Mapping[str, View] = field(default_factory=dict)
    opened: Mapping[str, str] = field(default_factory=dict)
    unasked: Any = NOT_GIVEN

    def read(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Asked:
        """Return what a call asks.

        Raises:
            UnkeyableError: An argument is given twice, which the method itself shall refuse.
        """
        names = self.names
        given = dict(zip(names, args, strict=False))
        if len(args) > len(names):
            given.update((f"*{place}", value) for place, value in enumerate(args[len(names) :]))
        if kwargs:
            given.update(kwargs)
            if len(given) != len(args) + len(kwargs):
                raise UnkeyableError
        query = given.pop(self.query or _likely_query(given), self.unasked)
        if type(query) is not str and type(query).__name__ in self.opened and is_dataclass(query):
            parts = _told_fields(query)
            text = parts.pop(self.opened[type(query).__name__], None)
            return Asked(text, {**parts, **given})
        return Asked(query, given)

    def arguments(self, given: Mapping[str, Any]) -> tuple[tuple[str, Frozen], ...]:
        """Return what counts of the arguments, frozen, in the order of their names.

        Raises:
            UnkeyableError: One has no stable key.
        """
        if not given:
            return ()
        counted = []
        defaults = self.defaults
        for name, value in given.items():
            if self.views:
                view = self.views.get(name, _as_it_is)
                if view is None:
                    continue
                value = view(value)  # noqa: PLW2901 - what is seen of it
            frozen = freeze(value)
            if name not in defaults or defaults[name] != frozen:
                counted.append((name, frozen))
        counted.sort(key=_name_of)
        return tuple(counted)


def _name_of(counted: tuple[str, Frozen]) -> str:
    return counted[0]


def _likely_query(given: Mapping[str, Any]) -> str:
    named = next((name for name in QUERY_NAMES if name in given), None)
    return named or next((name for name, value in given.items() if isinstance(value, str)), "")


def _told_fields(query: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from their defaults."""
    told = {}
    for spec in fields(query):
        value = getattr(query, spec.name)
        if spec.default is MISSING or value is not spec.default:
            told[spec.name] = value
    return told


def form_of(
    function: Callable[..., Any],
    *,
    query: str | None = "",
    defaults: Mapping[str, Any] | None = None,
    views: Mapping[str, View] | None = None,
    opened: Mapping[str, str] | None = None,
) -> CallForm:
    """Return the form of a function, by its signature.

    Args:
        query: Its parameter of what is asked; empty: its first one; `None`: what is likeliest.
        defaults: Of what it takes as keywords without naming it.
    """
    named: dict[str, Any] = dict(defaults or {})
    names: list[str] = []
    raw: dict[str, Any] = {}
    for parameter in _parameters(function):
        name = parameter.name
        if parameter.kind is parameter.POSITIONAL_ONLY:
            name = f"/{name}"
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(name)
        if parameter.default is not parameter.empty:
            named[name] = raw[name] = parameter.default
    frozen: dict[str, Frozen] = {}
    for name, value in named.items():
        try:
            view = (views or {}).get(name, _as_it_is)
            frozen[name] = None if view is None else freeze(view(value))
        except UnkeyableError:
            continue
    asked = _query_name(names, query)
    unasked = raw.get(asked or "", NOT_GIVEN)
    return CallForm(tuple(names), asked, frozen, dict(views or {}), dict(opened or {}), unasked)


def defaults_of(function: Callable[..., Any] | None) -> dict[str, Any]:
    """Return the defaults of a function's parameters; of no function, none."""
    parameters = [] if function is None else _parameters(function)
    return {it.name: it.default for it in parameters if it.default is not it.empty}


def _query_name(names: list[str], query: str | None) -> str | None:
    if query is None:
        return next((name for name in QUERY_NAMES if name in names), None)
    return query or (names[0] if names else None)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
