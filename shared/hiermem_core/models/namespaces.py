"""Namespaces: paths of named segments, `"a/b"` outside, `("a", "b")` inside.

One rule serves search, list, clear and forget: a namespace holds itself and everything below it, by
whole segments compared code point by code point. `is_within` says it for two namespaces,
`subtree_bounds` for a store that compares text by its UTF-8 bytes.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from hiermem_core.errors import InvalidNamespaceError, LimitExceededError

if TYPE_CHECKING:
    from collections.abc import Iterable

    Namespace = str | Sequence[str]

NAMESPACE_LIMIT = 1024
"""Characters of a namespace, separators included."""

SEGMENT_LIMIT = 16
"""Segments of a namespace."""

SEPARATOR = "/"

_AFTER_SEPARATOR = chr(ord(SEPARATOR) + 1)
_REFUSED = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class SubtreeBounds(NamedTuple):
    """What belongs to a subtree: the namespace `exact`, and each with `low <= namespace < high`.

    The order is that of code points, which is also the order of UTF-8 bytes.
    """

    exact: str
    low: str
    high: str


def parse_namespace(value: Namespace) -> tuple[str, ...]:
    """Return the segments of a namespace given as text or as segments.

    Raises:
        InvalidNamespaceError: It is empty, or a segment is empty, no text, or holds `/`, a control
            character or a lone surrogate.
        LimitExceededError: It has more than 1,024 characters or 16 segments.
    """
    segments = _segments(value)
    if not segments:
        raise InvalidNamespaceError("has no segment; name at least one")
    for segment in segments:
        _check_segment(segment)
    length = len(SEPARATOR.join(segments))
    if length > NAMESPACE_LIMIT:
        raise LimitExceededError("namespace", limit=NAMESPACE_LIMIT, actual=length)
    if len(segments) > SEGMENT_LIMIT:
        raise LimitExceededError("namespace segments", limit=SEGMENT_LIMIT, actual=len(segments))
    return segments


def format_namespace(path: Namespace) -> str:
    """Return a namespace as text; `parse_namespace` gives its segments back.

    Raises:
        InvalidNamespaceError: As `parse_namespace`.
        LimitExceededError: As `parse_namespace`.
    """
    return SEPARATOR.join(parse_namespace(path))


def is_within(namespace: Namespace, ancestor: Namespace) -> bool:
    """Tell whether a namespace is `ancestor` or lies below it.

    Texts are compared as they are; segments are checked.

    Raises:
        InvalidNamespaceError: As `parse_namespace`, of segments.
        LimitExceededError: As `parse_namespace`, of segments.
    """
    inner, outer = _text(namespace), _text(ancestor)
    return inner == outer or inner.startswith(outer + SEPARATOR)


def subtree_bounds(namespace: Namespace) -> SubtreeBounds:
    """Return the bounds by which an ordered index finds a namespace and everything below it.

    Raises:
        InvalidNamespaceError: As `parse_namespace`.
        LimitExceededError: As `parse_namespace`.
    """
    exact = format_namespace(namespace)
    return SubtreeBounds(exact, exact + SEPARATOR, exact + _AFTER_SEPARATOR)


def close_names(name: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """Return up to `limit` known names that a mistyped name may have meant, closest first."""
    if limit < 1:
        return []
    return difflib.get_close_matches(name, sorted(set(known)), n=limit)


def _text(value: Namespace) -> str:
    return value if isinstance(value, str) else format_namespace(value)


def _segments(value: Namespace) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.split(SEPARATOR))
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return tuple(value)
    raise InvalidNamespaceError(
        f"must be text or a sequence of texts, not {type(value).__name__}; pass one"
    )


def _check_segment(segment: object) -> None:
    if not isinstance(segment, str):
        raise InvalidNamespaceError(
            f"a segment must be text, not {type(segment).__name__}; convert it"
        )
    if not segment:
        raise InvalidNamespaceError("has an empty segment; remove the extra /")
    if SEPARATOR in segment:
        raise InvalidNamespaceError("a segment holds /; pass the parts as two segments")
    if _REFUSED.search(segment):
        raise InvalidNamespaceError("holds a control character or lone surrogate; remove it")
