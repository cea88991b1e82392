"""What a working memory is asked with in tests, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel, PrivateAttr

from hiermem_core import Hit

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, -0.0, 1.0, 1.5, float("inf")])
    | st.text("ab", max_size=2)
    | st.binary(max_size=2)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


def same(left, right):
    """Tell whether two values are equal and of one type, all the way down, dicts in order."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return [*left] == [*right] and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return repr(left) == repr(right)


def a_hit(**fields):
    given = dict.fromkeys(Hit.__dataclass_fields__)
    told = {"id": "1", "content": "tea", "score": 0.5, "explanation": {}}
    return Hit(**{**given, **told, **fields})


class Colour(Enum):
    RED = 1


@dataclass
class Point:
    x: int
    y: Any = None


class Model(BaseModel):
    x: int
    parts: list[int] = []
    _hidden: dict[str, int] = PrivateAttr(default_factory=dict)
