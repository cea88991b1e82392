"""Typed JSON: what goes in comes out, and nothing is revived beyond the closed list."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from hiermem_core import InvalidInputError, PlainEncoder, dump_json, from_plain, load_json, to_plain

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=20)
    | st.dates()
    | st.datetimes()
    | st.uuids()
    | st.decimals(allow_nan=False)
)
keys = st.text(max_size=5) | st.integers() | st.just("$hiermem")
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(keys, inner, max_size=4)
        | st.tuples(inner, inner)
        | st.frozensets(scalars, max_size=3)
    ),
    max_leaves=12,
)


class Colour(Enum):
    RED = "red"


class Pair(BaseModel):
    left: int
    right: bytes


class Broken:
    def model_dump(self):
        raise RuntimeError


def through_json(value):
    return from_plain(json.loads(dump_json(to_plain(value))))


@given(value=values)
def test_what_goes_in_comes_out(value):
    back = through_json(value)

    assert back == value
    assert type(back) is type(value)


def test_a_set_has_one_encoding_whatever_its_order():
    assert dump_json(to_plain({"b", "a", "c"})) == dump_json(to_plain({"c", "b", "a"}))


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_infinities_come_back(value):
    assert through_json(value) == value


def test_not_a_number_comes_back():
    assert str(through_json(float("nan"))) == "nan"


def test_a_mapping_that_looks_like_a_tag_stays_a_mapping():
    forged = {"$hiermem": "bytes", "value": "aGk="}

    assert through_json(forged) == forged
    assert through_json({"lc": 1, "type": "constructor", "id": ["x"]})["type"] == "constructor"


def test_enums_and_models_become_their_values():
    moment = datetime(2026, 3, 2, tzinfo=UTC)

    assert through_json([Colour.RED, Pair(left=1, right=b"x"), moment, date(2026, 3, 2)]) == [
        "red",
        {"left": 1, "right": b"x"},
        moment,
        date(2026, 3, 2),
    ]
    assert through_json((UUID(int=1), Decimal("1.10"))) == (UUID(int=1), Decimal("1.10"))


@pytest.mark.parametrize("value", [object(), Pair, Broken(), lambda: None])
def test_what_has_no_encoding_becomes_a_marker_and_its_path_is_told(value):
    encoder = PlainEncoder()
    plain = encoder.encode({"artifact": [1, value]})

    assert encoder.replaced == ["$.artifact[1]"]
    assert "was not stored" in from_plain(plain)["artifact"][1]


@pytest.mark.parametrize("value", [float("nan"), b"bytes", {1, 2}, {"deep": object()}])
def test_plain_json_refuses_what_json_cannot_carry(value):
    with pytest.raises(InvalidInputError):
        dump_json(value)


def test_constants_that_are_not_json_are_not_read():
    with pytest.raises(ValueError, match="NaN"):
        load_json("[NaN]")
