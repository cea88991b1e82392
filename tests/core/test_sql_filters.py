"""Filters in SQL give the reference's answers, with and without an index."""

import itertools
import math
import struct

import pytest
import sqlalchemy as sql
from hypothesis import assume, given
from hypothesis import strategies as st

from hiermem_core import errors
from hiermem_core.backends.json_numbers import number_tokens
from hiermem_core.backends.sql_filters import NO_FIELDS, Fields, metadata_index_ddl, sql_filter
from hiermem_core.models.filters import matches, parse_filter
from hiermem_core.models.plain import dump_json
from hiermem_core.models.text import TextCleaner

ODD_KEYS = (
    *("", "a", "a.b", "a[0]", "[0]", "$", "$.a", "$[0]", "#", ":a", "%s", "?", "a\nb", "\x1f"),
    *("'", "')--", "a' OR '1'='1", "\\", "\\\\", "\\u0061", "größe", "日本", "😀", "\u2028"),
)
MARKED_KEYS = ('"', 'a"b', '\\"', '"":', '"]', 'a","b":"', '\\u0022"')

rows = sql.Table(
    "memory_entries",
    sql.MetaData(),
    sql.Column("id", sql.Integer, primary_key=True),
    sql.Column("tenant", sql.Text),
    sql.Column("metadata", sql.Text),
)


class Store:
    """The rows of two tenants, asked by the reference and by SQL."""

    def __init__(self, connection, dialect="sqlite"):
        self._connection = connection
        self._documents = []
        rows.create(connection)
        for field in ODD_KEYS:
            connection.exec_driver_sql(metadata_index_ddl(field, dialect))

    def fill(self, documents):
        self._documents = list(documents)
        texts = [dump_json(document) for document in self._documents]
        mine = [{"id": at, "tenant": "t", "metadata": text} for at, text in enumerate(texts)]
        others = [{**row, "id": -1 - row["id"], "tenant": "other"} for row in mine]
        self._connection.execute(rows.delete())
        self._connection.execute(rows.insert(), mine + others)

    def reference(self, value):
        parsed = parse_filter(value)
        return {id_ for id_, doc in enumerate(self._documents) if matches(parsed, doc)}

    def query(self, value, *, fields=NO_FIELDS):
        condition = sql_filter(parse_filter(value), rows.c.metadata, fields=fields)
        return sql.select(rows.c.id).where(rows.c.tenant == "t", condition)

    def answer(self, value, *, fields=NO_FIELDS):
        return set(self._connection.execute(self.query(value, fields=fields)).scalars())

    def plan(self, value, *, fields=NO_FIELDS):
        statement = self.query(value, fields=fields).compile(
            self._connection, compile_kwargs={"render_postcompile": True}
        )
        values = tuple(statement.params[name] for name in statement.positiontup)
        lines = self._connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
        return "\n".join(line.detail for line in lines)


@pytest.fixture(scope="module")
def store():
    engine = sql.create_engine("sqlite://")
    with engine.connect() as connection:
        yield Store(connection)
    engine.dispose()


def check(store, value):
    """Return the ids that match, by the reference and by SQL with and without indexes."""
    expected = store.reference(value)
    assert store.answer(value) == expected
    assert store.answer(value, fields=Fields(frozenset(ODD_KEYS))) == expected
    return expected


def test_a22_order_matches_present_numbers_only(store):
    store.fill([{"a": 4}, {"a": 3}, {}, {"a": None}, {"a": "4"}, {"a": [4]}, {"a": True}])

    assert check(store, {"a": {"$gt": 3}}) == {0}
    assert check(store, {"a": {"$lte": 4}}) == {0, 1}
    assert check(store, {"a": {"$gte": "4"}}) == {4}


def test_a23_a_missing_field_is_not_unequal_and_is_in_a_negation(store):
    store.fill([{"a": 1}, {"a": 2}, {"a": None}, {}])

    assert check(store, {"a": {"$ne": 1}}) == {1, 2}
    assert check(store, {"a": {"$nin": []}}) == {0, 1, 2}
    assert check(store, {"a": {"$in": []}}) == set()
    assert check(store, {"$not": {"a": 1}}) == {1, 2, 3}
    assert check(store, {"$not": {"$not": {"a": 1}}}) == {0}
    assert check(store, {"$not": {"a": {"$gt": 1}}}) == {0, 2, 3}
    assert check(store, {"a": {"$exists": False}}) == {3}
    assert check(store, {"a": None}) == {2}
    assert check(store, {"a": {"$in": [None, 1]}}) == {0, 2}


@pytest.mark.parametrize("key", [*ODD_KEYS, *MARKED_KEYS])
def test_a25_an_odd_field_is_found_alone_and_nothing_else_is(store, key):
    others = [other for other in (*ODD_KEYS, *MARKED_KEYS) if other != key]
    store.fill([{key: 1}, dict.fromkeys(others, 1), {**dict.fromkeys(others, 1), key: [{key: 1}]}])

    assert check(store, {key: 1}) == {0}
    assert check(store, {key: {"$exists": True}}) == {0, 2}
    assert check(store, {key: {"$gt": 0}}) == {0}
    assert check(store, {key: {"$contains": {key: 1.0}}}) == {2}
    assert check(store, {"$not": {key: {"$in": [1, [{key: 1}]]}}}) == {1}


@pytest.mark.parametrize(
    "text", [*ODD_KEYS, *MARKED_KEYS, "1", "null", "true", "[]", "{}", "1) OR (1=1", "a'); DROP"]
)
def test_a25_an_odd_text_is_found_alone_and_nothing_else_is(store, text):
    store.fill([{"a": text}, {"a": text + " "}, {"a": [text]}, {"a": {text: text}}, {"b": text}])

    assert check(store, {"a": text}) == {0}
    assert check(store, {"a": {"$in": ["x", text]}}) == {0}
    assert check(store, {"a": {"$gte": text, "$lte": text}}) == {0}
    assert check(store, {"a": {"$contains": text}}) == {2}
    assert check(store, {"a": {"$eq": {text: text}}}) == {3}


def test_a25_names_and_values_are_bound(store):
    secret = "s3cret' OR 1=1 --"
    value = {secret: {"$in": [secret, {secret: secret}]}, "a": {"$contains": secret, "$gt": secret}}

    assert "s3cret" not in str(store.query(value))


def test_a26_numbers_and_texts_have_no_common_order(store):
    store.fill([{"a": 9}, {"a": 10}, {"a": "10"}, {"a": 9.5}])

    assert check(store, {"a": {"$gt": 9}}) == {1, 3}
    assert check(store, {"a": {"$lt": "9"}}) == {2}


def test_a27_comparison_stays_inside_one_type(store):
    values = [True, 1, 1.0, "true", "1", None, [], {}, [1], [True], {"b": 1}, {"b": True}, False, 0]
    store.fill({"a": value} for value in values)

    assert check(store, {"a": True}) == {0}
    assert check(store, {"a": 1}) == {1, 2}
    assert check(store, {"a": {"$in": [False, 1.0]}}) == {1, 2, 12}
    assert check(store, {"a": {"$in": [[1.0], {"b": True}]}}) == {8, 11}
    assert check(store, {"a": []}) == {6}
    assert check(store, {"a": {}}) == {7, 10, 11}
    assert check(store, {"a": {"$eq": {}}}) == {7}
    assert check(store, {"a": {"$contains": 1}}) == {8}
    assert check(store, {"a": {"$ne": [1]}}) == set(range(14)) - {8}


def test_a27_lists_and_objects_are_equal_at_every_level(store):
    store.fill(
        [
            {"a": {"x": [1, {"y": None}], "z": 2}},
            {"a": {"z": 2.0, "x": [1.0, {"y": None}]}},
            {"a": {"x": [1, {"y": None}]}},
            {"a": {"x": [{"y": None}, 1], "z": 2}},
            {"a": {"x": [1, {"y": None, "w": 0}], "z": 2, "v": 3}},
            {"a": {"x": [1, {"y": None}, 1], "z": 2}},
        ]
    )

    assert check(store, {"a": {"$eq": {"x": [1, {"y": None}], "z": 2}}}) == {0, 1}
    assert check(store, {"a": {"x": [1, {"y": None}]}}) == {0, 1, 2}
    assert check(store, {"a": {"z": 2}}) == {0, 1, 3, 4, 5}
    assert check(store, {"a": {"x": {}}}) == set()


def test_a28_combinations_equal_what_they_spell(store):
    store.fill({"a": a, "b": b} for a in (0, 1) for b in (0, 1))
    either = {"$or": [{"$and": [{"a": 1}, {"b": 1}]}, {"$not": {"$or": [{"a": 1}, {"b": 1}]}}]}

    assert check(store, {"a": 1, "b": 0}) == {2}
    assert check(store, {"a": {"$gte": 0, "$lt": 1}}) == {0, 1}
    assert check(store, either) == {0, 3}
    assert check(store, {"$and": [{}]}) == {0, 1, 2, 3}
    assert check(store, {"$not": {}}) == set()


def near(number):
    """Return floats and integers around a number."""
    value = float(number)
    below = math.nextafter(value, -math.inf)
    above = math.nextafter(value, math.inf)
    around = {value, below, above, math.nextafter(above, math.inf)}
    integers = {int(number) + step for step in (-1, 0, 1)} if abs(number) < 2**64 else set()
    return [item for item in around if math.isfinite(item)] + [
        item for item in integers if -(2**63) <= item < 2**63
    ]


@pytest.mark.parametrize(
    "number",
    [
        *(0, 1, 2**53, 2**63 - 1, -(2**63), 1234567890123456768),
        *(0.1, -0.1, 1e16, 1e23, 0.30000000000000004),
        *(5e-324, -1e-310, 2.2250738585072014e-308, 1.7976931348623157e308),
    ],
)
def test_numbers_next_to_each_other_are_told_apart(store, number):
    numbers = near(number)
    store.fill({"a": item} for item in [*numbers, -0.0])

    for operand, name in itertools.product(numbers, ("$eq", "$gt", "$gte", "$lt", "$lte")):
        check(store, {"a": {name: operand}})
    for operand in numbers:
        check(store, {"a": {"$in": [0.7, operand, "x"]}})


@given(st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=20))
def test_any_two_floats_are_told_apart(store, patterns):
    floats = [struct.unpack("<d", struct.pack("<Q", pattern))[0] for pattern in patterns]
    floats = [value for value in floats if math.isfinite(value)]
    assume(floats)
    store.fill({"a": item} for value in floats for item in near(value)[:4])

    for name in ("$eq", "$gt", "$lte"):
        check(store, {"a": {name: floats[0]}})


def test_a_number_is_written_in_all_the_ways_that_equal_it():
    assert number_tokens(0) == ("0", "0.0", "-0.0")
    assert number_tokens(3.0) == ("3", "3.0")
    assert number_tokens(0.5) == ("0.5",)
    assert number_tokens(2**53 + 1) == (str(2**53 + 1),)
    assert number_tokens(2.0**63) == ("9.223372036854776e+18",)


def test_operands_of_thousands_of_values_are_one_parameter_each(store):
    long = [*range(1, 3000), {"k": [None] * 500}]
    store.fill([{"a": long}, {"a": [*long[:-1], {"k": [None] * 499}]}, {"a": 2999}])

    assert check(store, {"a": long}) == {0}
    assert check(store, {"a": {"$contains": long[-1]}}) == {0}
    assert check(store, {"a": {"$in": long[:-1]}}) == {2}


def test_a_filter_at_all_limits_is_answered(store):
    store.fill([{'"a': [{'"a': [[[[["x"]]]]]}]}, {"a": 1.5}])
    leaf = {'"a': {"$contains": {'"a': [[[[["x"]]]]]}}}
    many = {"$or": [{"a": {"$gt": 0.1 * number}} for number in range(64)]}
    deep = {**leaf, "b": {"$exists": False}}
    for name in ("$not", "$or", "$not", "$or", "$not", "$or", "$not"):
        deep = {name: [{"b": 1}, deep]} if name == "$or" else {name: deep}

    assert check(store, many) == {1}
    assert check(store, deep) == {0}


keys = st.sampled_from([*ODD_KEYS[:8], *ODD_KEYS[12:20], *MARKED_KEYS[:4]]) | st.text(max_size=3)
numbers = (
    st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0, 1, 1.0, -0.0, 2**53 + 1, float(2**53), 2.0**63, 2**63 - 1, 0.1])
)
texts = st.text(max_size=3) | st.sampled_from(['"', "\\", "a", "1", "null", "😀", "\uffff", "[]"])
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)


def operation(names, operands):
    return st.builds(lambda name, operand: {name: operand}, st.sampled_from(names), operands)


@st.composite
def questions(draw):
    """Draw documents over few fields, and a filter that often speaks of what they hold."""
    fields = draw(st.lists(keys, min_size=1, max_size=3, unique=True))
    documents = draw(
        st.lists(st.dictionaries(st.sampled_from(fields), values), min_size=1, max_size=8)
    )
    held = [value for document in documents for value in document.values()]
    items = [item for value in held if isinstance(value, list) for item in value]
    operands = st.sampled_from(held) | values if held else values
    parts = st.sampled_from(items) | operands if items else operands
    ordered = operands.filter(lambda item: type(item) in (int, float, str)) | numbers | texts
    conditions = st.one_of(
        operands,
        operation(["$eq", "$ne"], operands),
        operation(["$gt", "$gte", "$lt", "$lte"], ordered),
        operation(["$in", "$nin"], st.lists(operands, max_size=3)),
        operation(["$exists"], st.booleans()),
        operation(["$contains"], parts),
    )
    comparisons = st.dictionaries(st.sampled_from(fields), conditions, min_size=1, max_size=2)
    filters = st.recursive(
        comparisons,
        lambda inner: (
            operation(["$not"], inner)
            | operation(["$and", "$or"], st.lists(inner, min_size=1, max_size=3))
        ),
        max_leaves=5,
    )
    return documents, draw(st.lists(filters, min_size=1, max_size=6))


@given(questions())
def test_a29_sql_gives_the_reference_s_ids(store, question):
    documents, filters = question
    cleaned = [TextCleaner().json(document) for document in documents]
    store.fill(cleaned)

    for value in filters:
        try:
            parse_filter(value)
        except errors.InvalidInputError:
            continue
        check(store, value)


SERVED = [
    {"a": "x"},
    {"a": 3},
    {"a": 0.1},
    {"a": True},
    {"a": None},
    {"a": {"$in": ["x", 3, True]}},
    {"a": {"$in": [0.1, "x", 2**63 - 1]}},
    {"a": {"$gt": 3}},
    {"a": {"$lte": 3.5}},
    {"a": {"$gte": 3, "$lt": 9}},
    {"a": {"$gt": "x"}},
    {"a": {"$lt": "x"}},
    {"b": 1, "a": "x"},
]


@pytest.mark.parametrize("value", SERVED)
def test_an_index_serves_equality_order_and_in(store, value):
    store.fill([{"a": 3}])

    plan = store.plan(value, fields=Fields(frozenset({"a"})))

    assert "SEARCH memory_entries USING INDEX memory_entries_metadata_" in plan
    assert "(tenant=? AND <expr>" in plan


@pytest.mark.parametrize("value", [{"a": {"$in": [None, "x"]}}, {"$not": {"a": 1}}, {"a": [1]}])
def test_what_no_index_serves_is_answered_all_the_same(store, value):
    store.fill([{"a": None}, {"a": "x"}, {"a": 1}, {"a": [1]}, {}])

    assert check(store, value) in ({0, 1}, {0, 1, 3, 4}, {3})


def test_more_floats_than_an_index_is_asked_for_are_answered_all_the_same(store):
    store.fill([{"a": 50.5}, {"a": 200.5}])

    assert check(store, {"a": {"$in": [number + 0.5 for number in range(150)]}}) == {0}


@pytest.mark.parametrize("key", [key for key in ODD_KEYS if key != "a"])
def test_an_odd_field_can_be_indexed(store, key):
    store.fill([{key: "x"}])

    assert "tenant=? AND <expr>=?" in store.plan({key: "x"}, fields=Fields(frozenset({key})))


@pytest.mark.parametrize("key", [*MARKED_KEYS, "a\x00", "\ud83d"])
def test_a_field_no_index_can_be_on_is_refused(key):
    with pytest.raises(errors.ConfigurationError):
        metadata_index_ddl(key)


def test_a_filter_on_a_field_no_index_can_be_on_is_refused():
    with pytest.raises(errors.ConfigurationError):
        sql_filter(parse_filter({'a"b': 1}), rows.c.metadata, fields=Fields(frozenset({'a"b'})))


def test_making_an_index_twice_makes_one_and_fields_have_their_own():
    engine = sql.create_engine("sqlite://")
    with engine.connect() as connection:
        rows.create(connection)
        for field in ("a", "a", "b"):
            connection.exec_driver_sql(metadata_index_ddl(field))
        indexes = connection.exec_driver_sql("PRAGMA index_list(memory_entries)").all()
    engine.dispose()

    assert len(indexes) == 2
