"""Cutting text where it is too long: at grapheme boundaries, with a visible marker. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    from collections.abc import Callable

_GRAPHEME = regex.compile(r"\X")
_FIRST_GUESS = 64

_ALONE = r"[\p{GCB=Other}\p{GCB=Control}\p{GCB=LF}\p{GCB=LV}\p{GCB=LVT}]"
# Searched backwards: two characters that never join, whatever stands around them.
_PAIR = regex.compile(f"(?r){_ALONE}{{2}}")
# Looked back so far at most: a text of endless graphemes, or a thousand flags, is cut quickly too.
_LOOK_BACK = 1_000


def marker(characters: int) -> str:
    """Return what stands where text was cut."""
    return f"\n[... {characters} characters cut ...]"


def longest_head(text: str, fits: Callable[[str], bool]) -> str:
    """Return the longest head of a text too long, by whole graphemes, that `fits`; else `""`.

    Asks for heads of at most about twice the length of the answer.
    """
    low, high = 0, min(_FIRST_GUESS, len(text))
    while high < len(text) and fits(text[:high]):
        low, high = high, min(2 * high, len(text))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(text[:middle]) else (low, middle)
    head = text[: grapheme_boundary(text, low)]
    while head and not fits(head):
        head = text[: grapheme_boundary(text, len(head) - 1)]
    return head


def head_and_tail(text: str, characters: int) -> str:
    """Return `text`, or its head and its tail of so many characters together if that is shorter."""
    if len(text) <= characters:
        return text
    head = text[: grapheme_boundary(text, characters - characters // 2)]
    tail = text[grapheme_boundary(text, len(text) - characters // 2) :]
    gone = len(text) - len(head) - len(tail)
    cut = f"{head}{marker(gone)}\n{tail}"
    return cut if len(cut) < len(text) else text


def grapheme_boundary(text: str, index: int) -> int:
    """Return the last grapheme boundary at or before `index`."""
    if index >= len(text):
        return len(text)
    boundary = _plain_boundary(text, index)
    graphemes = _GRAPHEME.findall(text[boundary : index + 1])
    return index + 1 - len(graphemes[-1])


def _plain_boundary(text: str, index: int) -> int:
    """Return a boundary at or before `index` found cheaply: between two that never join."""
    start = max(0, index - _LOOK_BACK)
    pair = _PAIR.search(text, start, index + 1)
    return start if pair is None else int(pair.end()) - 1
