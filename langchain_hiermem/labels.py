"""Namespaces of LangGraph as namespaces of HierMem, and back. Pure.

A label may hold what no segment of a HierMem namespace may: `/` and control characters. These are
percent-encoded, and so is a `%` that would read as such a code; everything else is itself.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from langgraph.store.base import (
    InvalidNamespaceError,
    ListNamespacesOp,
    PutOp,
    SearchOp,
    validate_op_namespace,
)

from hiermem_core import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langgraph.store.base import MatchCondition, Op

Labels = tuple[str, ...]

ROOT = "%00"
"""The namespace of what has no label below a tenant's; no label becomes it, as none holds NUL."""

ANY = "*"
"""Matches one label, whatever it is."""

_CODES = "25|2F|7F|[0189][0-9A-F]"
_TO_ENCODE = re.compile(rf"[/\x00-\x1f\x7f-\x9f]|%(?={_CODES})")
_ENCODED = re.compile(rf"%({_CODES})")


def encoded(labels: Sequence[str]) -> str:
    """Return labels as a namespace; `labels_of` gives them back."""
    if not labels:
        return ROOT
    return "/".join(_TO_ENCODE.sub(lambda one: f"%{ord(one[0]):02X}", label) for label in labels)


def labels_of(namespace: str) -> Labels:
    """Return a namespace as labels."""
    if namespace == ROOT:
        return ()
    return tuple(
        _ENCODED.sub(lambda one: chr(int(one[1], 16)), segment) for segment in namespace.split("/")
    )


def check_labels(op: Op) -> None:
    """Raise LangGraph's `InvalidNamespaceError` where an operation's labels are none.

    An operation given to `batch` skips the checks of LangGraph's own methods, but for those that
    it skips on purpose: a first label `langgraph` is refused by `put` alone.
    """
    validate_op_namespace(op)
    if isinstance(op, PutOp) and not op.namespace:
        raise InvalidNamespaceError("the namespace has no label; name at least one")
    if any("\x00" in label for label in _labels_in(op)):  # before 4.3.1 LangGraph allowed it
        raise InvalidNamespaceError("a label holds NUL; take it out")


def _labels_in(op: Op) -> Iterable[str]:
    if isinstance(op, ListNamespacesOp):
        return chain.from_iterable(condition.path for condition in op.match_conditions or ())
    return op.namespace_prefix if isinstance(op, SearchOp) else op.namespace


def common_prefix(conditions: Iterable[MatchCondition]) -> Labels:
    """Return labels that every namespace begins with that holds the conditions."""
    longest: Labels = ()
    for condition in conditions:
        path = tuple(condition.path)
        literal = path[: path.index(ANY)] if ANY in path else path
        if condition.match_type == "prefix" and len(literal) > len(longest):
            longest = literal
    return longest


def meets(labels: Labels, conditions: Iterable[MatchCondition]) -> bool:
    """Tell whether a namespace holds all conditions.

    Raises:
        InvalidInputError: A condition is neither on the prefix nor on the suffix.
    """
    return all(_meets(labels, condition) for condition in conditions)


def _meets(labels: Labels, condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if condition.match_type not in {"prefix", "suffix"}:
        raise InvalidInputError("match_type", 'is unknown; use "prefix" or "suffix"')
    if len(labels) < len(path):
        return False
    is_prefix = condition.match_type == "prefix"
    there = labels[: len(path)] if is_prefix else labels[len(labels) - len(path) :]
    return all(wanted in (ANY, label) for label, wanted in zip(there, path, strict=True))


def page_of(
    namespaces: Iterable[Labels], *, max_depth: int | None, limit: int, offset: int
) -> list[Labels]:
    """Return a page of namespaces, cut to a depth, each once, sorted.

    Raises:
        InvalidInputError: A figure is below 0.
    """
    for name, figure in (("max_depth", max_depth or 0), ("limit", limit), ("offset", offset)):
        if figure < 0:
            raise InvalidInputError(name, "must be at least 0")
    found = sorted({labels[:max_depth] for labels in namespaces})
    return found[offset : offset + limit]
