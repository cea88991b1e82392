"""The filter language: what is read, what is refused, and the reference's answers."""

import enum
import math

import pytest

from hiermem_core import errors
from hiermem_core.models.filters import matches, parse_filter


def holds(value, metadata):
    parsed = parse_filter(value)
    return parsed is None or matches(parsed, metadata)


def refusal(value):
    with pytest.raises(errors.InvalidFilterError) as caught:
        parse_filter(value)
    return caught.value.field, caught.value.operator


@pytest.mark.parametrize("value", [None, {}])
def test_nothing_and_an_empty_filter_restrict_nothing(value):
    assert parse_filter(value) is None


def test_a22_order_matches_present_numbers_only():
    found = [
        metadata
        for metadata in ({"age": 4}, {"age": 3}, {}, {"age": None}, {"age": "4"}, {"age": [4]})
        if holds({"age": {"$gt": 3}}, metadata)
    ]

    assert found == [{"age": 4}]


def test_a23_a_missing_field_is_not_unequal_and_is_in_a_negation():
    assert not holds({"f": {"$ne": 1}}, {})
    assert not holds({"f": {"$nin": [1]}}, {})
    assert not holds({"f": {"$nin": []}}, {})
    assert holds({"f": {"$nin": []}}, {"f": 1})
    assert holds({"$not": {"f": 1}}, {})
    assert holds({"$not": {"f": 1}}, {"f": 2})
    assert not holds({"$not": {"f": 1}}, {"f": 1})
    assert holds({"$not": {"f": {"$gt": 1}}}, {"f": "x"})


def test_existence_asks_for_the_key_and_a_null_is_there():
    assert holds({"f": {"$exists": True}}, {"f": None})
    assert not holds({"f": {"$exists": False}}, {"f": None})
    assert holds({"f": {"$exists": False}}, {})
    assert not holds({"f": {"$exists": True}}, {})


def test_a_null_equals_only_null():
    assert holds({"f": None}, {"f": None})
    assert not holds({"f": None}, {})
    assert holds({"f": {"$ne": None}}, {"f": 0})
    assert not holds({"f": {"$ne": 1}}, {"g": None})
    assert not any(holds({"f": None}, {"f": value}) for value in (0, False, "", [], {}, "null"))


@pytest.mark.parametrize("written", ["betwen", "$betwen", "between", "$between", "gte", "$GT"])
def test_a24_an_operator_nobody_knows_is_named_and_never_becomes_equality(written):
    assert refusal({"age": {written: [1, 2]}}) == ("age", written)


def test_an_operator_inside_a_nested_object_is_refused():
    assert refusal({"f": {"a": {"$gt": 1}}}) == ("f", "$gt")


def test_operators_and_keys_side_by_side_are_refused():
    assert refusal({"f": {"$gt": 1, "a": 2}}) == ("f", "a")
    assert refusal({"f": {1: 2, "$gt": 1}}) == ("f", "1")
    assert refusal({"f": {"$gt": 1, "subset": {}}}) == ("f", "subset")


@pytest.mark.parametrize("key", ["note", "id", "content", "on", "$.in", "$", "$1", "$ gt"])
def test_a_key_that_is_no_word_of_a_filter_is_a_key(key):
    assert holds({"f": {key: 1}}, {"f": {key: 1, "more": 2}})
    assert holds({key: 1}, {key: 1})


def test_one_key_that_is_no_operator_makes_the_object_plain():
    assert holds({"f": {"like": 3, "share": 1}}, {"f": {"like": 3, "share": 1, "x": 0}})


@pytest.mark.parametrize(
    ("operator", "operand"),
    [
        *((name, bad) for name in ("$gt", "$gte", "$lt", "$lte") for bad in (True, None, [1], {})),
        *((name, bad) for name in ("$in", "$nin") for bad in (1, "abc", None, {"a": 1})),
        *(("$exists", bad) for bad in (1, 0, None, "true", [])),
        *(("$eq", bad) for bad in (math.nan, math.inf, 2**63, -(2**63) - 1, b"x", {1}, object())),
        *(("$contains", bad) for bad in ([math.nan], {"a": -math.inf}, {1: 2}, "\ud83d", "\x00")),
        ("$in", [1, [math.nan]]),
        ("$not", {"$gt": 1}),
    ],
)
def test_an_operand_an_operator_cannot_take_is_refused(operator, operand):
    assert refusal({"f": {operator: operand}}) == ("f", operator)


@pytest.mark.parametrize("operand", [[], {}, (), None, "a", [1], [None], [[]]])
@pytest.mark.parametrize("operator", ["$and", "$or"])
def test_and_and_or_take_a_list_of_at_least_one_filter(operator, operand):
    assert refusal({operator: operand}) == ("", operator)


@pytest.mark.parametrize("value", [{"$not": [1]}, {"$not": None}, {"$gt": 3}, {"$nor": [{}]}])
def test_between_filters_only_and_or_and_not_stand(value):
    assert refusal(value) == ("", next(iter(value)))


@pytest.mark.parametrize("value", ["f = 1", [("f", 1)], 0, False, {1: 2}, {None: 1}, {"\ud800": 1}])
def test_what_is_no_object_of_named_fields_is_refused(value):
    with pytest.raises(errors.InvalidFilterError):
        parse_filter(value)


def test_errors_name_places_and_hold_no_values():
    with pytest.raises(errors.InvalidFilterError) as caught:
        parse_filter({"f": {"$in": ["secret", {"a": ["secret", math.nan]}]}})

    assert "$[1].a[1]" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a26_numbers_and_texts_have_no_common_order():
    found = [n for n in (9, 10, "10", 9.5, True) if holds({"n": {"$gt": 9}}, {"n": n})]

    assert found == [10, 9.5]


def test_a27_a_boolean_is_no_number_and_no_text():
    values = (True, 1, 1.0, "true", [True], {"f": True})

    assert [value for value in values if holds({"f": True}, {"f": value})] == [True]
    assert [value for value in values if holds({"f": 1}, {"f": value})] == [1, 1.0]
    assert holds({"f": {"$ne": True}}, {"f": 1})
    assert holds({"f": {"$in": [0, 1.0]}}, {"f": 1})
    assert not holds({"f": {"$in": [0, 1.0]}}, {"f": True})


def test_integers_and_floats_compare_by_their_exact_value():
    assert not holds({"n": float(2**53)}, {"n": 2**53 + 1})
    assert holds({"n": {"$gt": float(2**53)}}, {"n": 2**53 + 1})
    assert not holds({"n": {"$gte": 2.0**63}}, {"n": 2**63 - 1})
    assert holds({"n": 0}, {"n": -0.0})


def test_texts_compare_by_code_point():
    assert holds({"t": {"$gt": "\uffff"}}, {"t": "😀"})
    assert holds({"t": {"$lt": "a"}}, {"t": "Z"})
    assert holds({"t": {"$gte": ""}}, {"t": ""})
    assert not holds({"t": "gro\u0308\u00dfe"}, {"t": "gr\u00f6\u00dfe"})


def test_a27_lists_and_objects_are_equal_at_every_level():
    stored = {"f": [1, {"a": None, "b": [True]}]}

    assert holds({"f": [1.0, {"b": [True], "a": None}]}, stored)
    assert holds({"f": (1, {"a": None, "b": (True,)})}, stored)
    assert not holds({"f": [1, {"a": None, "b": [1]}]}, stored)
    assert not holds({"f": [1, {"a": None}]}, stored)
    assert not holds({"f": [{"a": None, "b": [True]}, 1]}, stored)
    assert not holds({"f": []}, {"f": {}})
    assert holds({"f": {"$in": [[], {}]}}, {"f": {}})


def test_an_object_without_operators_matches_by_recursive_subset():
    stored = {"f": {"a": 1, "b": {"c": 2, "d": [{"e": 1, "g": 2}]}}}

    assert holds({"f": {"b": {"c": 2.0}}}, stored)
    assert holds({"f": {}}, stored)
    assert holds({"f": {"b": {}}}, stored)
    assert not holds({"f": {"b": {"c": None}}}, stored)
    assert not holds({"f": {"b": {"x": None}}}, stored)
    assert not holds({"f": {"b": {"d": [{"e": 1}]}}}, stored)
    assert not holds({"f": {"$eq": {"a": 1}}}, stored)
    assert not holds({"f": {}}, {"f": []})
    assert not holds({"f": {}}, {})


def test_contains_asks_for_an_item_of_a_list():
    assert holds({"f": {"$contains": 2}}, {"f": [1, 2.0]})
    assert holds({"f": {"$contains": {"a": [1]}}}, {"f": [{"a": [1.0]}]})
    assert not holds({"f": {"$contains": {"a": 1}}}, {"f": [{"a": 1, "b": 2}]})
    assert not holds({"f": {"$contains": 1}}, {"f": [True, "1", [1]]})
    assert not holds({"f": {"$contains": "a"}}, {"f": "abc"})
    assert not holds({"f": {"$contains": "a"}}, {"f": {"a": 1}})


def test_in_an_empty_list_is_nothing():
    assert not holds({"f": {"$in": []}}, {"f": None})
    assert not holds({"f": {"$in": []}}, {})


def test_a28_two_keys_and_two_operators_mean_and():
    for metadata in ({"a": 1, "b": 2}, {"a": 1}, {"a": 1, "b": 9}, {"a": 5, "b": 2}):
        joined = holds({"a": {"$gte": 1, "$lt": 3}, "b": 2}, metadata)
        spelled = holds({"$and": [{"a": {"$gte": 1}}, {"a": {"$lt": 3}}, {"b": 2}]}, metadata)

        assert joined is spelled
        assert joined is (metadata == {"a": 1, "b": 2})


def test_a28_nested_combinations_mean_what_they_spell():
    value = {"$or": [{"$and": [{"a": 1}, {"b": 1}]}, {"$not": {"$or": [{"a": 1}, {"b": 1}]}}]}

    assert [holds(value, {"a": a, "b": b}) for a in (0, 1) for b in (0, 1)] == [1, 0, 0, 1]


def test_empty_filters_inside_others_match_everything():
    assert holds({"$and": [{}]}, {})
    assert holds({"$or": [{"a": 1}, {}]}, {})
    assert not holds({"$not": {}}, {})


def test_a_dot_and_a_bracket_in_a_field_mean_nothing():
    assert holds({"a.b": 1}, {"a.b": 1})
    assert not holds({"a.b": 1}, {"a": {"b": 1}})
    assert not holds({"a[0]": 1}, {"a": [1]})
    assert holds({"": 1}, {"": 1})
    assert holds({"$.a": 1}, {"$.a": 1})


def test_subclasses_of_plain_types_are_taken_as_what_json_makes_of_them():
    class Colour(enum.StrEnum):
        RED = "red"

    class Level(enum.IntEnum):
        HIGH = 3

    assert holds({"c": Colour.RED, "l": {"$in": [Level.HIGH]}}, {"c": "red", "l": 3})


def test_a_filter_keeps_nothing_of_what_it_was_read_from():
    wanted = [1, {"a": 2}]
    parsed = parse_filter({"f": wanted})

    wanted[1]["a"] = 3

    assert matches(parsed, {"f": [1, {"a": 2}]})


def nested(levels):
    value = {"f": 1}
    for _ in range(levels - 1):
        value = {"$not": value}
    return value


def deep(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "limit", "actual"),
    [
        (nested(9), 8, 9),
        (nested(5000), 8, 9),
        ({"$or": [{"f": 1}] * 65}, 64, 65),
        ({"$or": [{}] * 65}, 64, 65),
        ({str(number): number for number in range(70)}, 64, 70),
        ({"f": {"$in": [[]] * 64}}, 64, 65),
        ({"f": deep(9)}, 8, 9),
        ({"f": {"$in": list(range(10_000))}}, 10_000, 10_001),
    ],
)
def test_a_filter_beyond_a_limit_is_refused_with_its_numbers(value, limit, actual):
    with pytest.raises(errors.LimitExceededError) as caught:
        parse_filter(value)

    assert (caught.value.limit, caught.value.actual) == (limit, actual)


@pytest.mark.parametrize(
    "value",
    [
        nested(8),
        {"$or": [{"f": 1}] * 64},
        {"f": deep(8)},
        {"f": {"$in": list(range(9_999))}},
        {"f": {"$in": [[]] * 63}},
    ],
)
def test_a_filter_at_a_limit_is_taken(value):
    assert parse_filter(value) is not None
