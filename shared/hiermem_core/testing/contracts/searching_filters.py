"""What every search with a filter on metadata must hold: the answers of the reference."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from itertools import count, product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.errors import InvalidFilterError
from hiermem_core.models.filters import matches, parse_filter
from hiermem_core.testing.contracts.counters import shared
from hiermem_core.testing.contracts.entries_base import (
    MemoryContract,
    everything,
    found,
    ids_of,
    modes_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hiermem_core.service.memory_service import MemoryService
    from hiermem_core.testing.clocks import FakeClock
    from hiermem_core.testing.embedders import FakeEmbedder

ODD_NAMES = (
    *(
        "a'b",
        'a"b',
        "a)b",
        "--",
        "$.a",
        "a.b",
        "a[0]",
        "[0]",
        "a\nb",
        "größe",
        "日本",
        "%",
        "_",
        "",
    ),
    *("' OR 1=1 --", '"]}', "\\", "\\u0061", "?", ":a", "\u2028", "\x1f", "#-1", "$", "😀"),
)

VALUES: tuple[Any, ...] = (
    *(True, False, 1, 1.0, 0, "true", "1", "", None, [], {}, [1], [True], [[1]], {"b": 1}),
    *({"b": True}, {"b": {"c": [1, None]}}, 9, 10, "10", 9.5, -0.0, 2**53, 2**53 + 1, 1e300, "ä"),
)

SLIPS: tuple[tuple[Any, str, str], ...] = (
    ({"age": {"betwen": [1, 2]}}, "age", "betwen"),
    ({"age": {"$between": [1, 2]}}, "age", "$between"),
    ({"age": {"$gt": 1, "lt": 3}}, "age", "lt"),
    ({"age": {"$gt": None}}, "age", "$gt"),
    ({"age": {"$gt": [1]}}, "age", "$gt"),
    ({"age": {"$in": 3}}, "age", "$in"),
    ({"age": {"$exists": 1}}, "age", "$exists"),
    ({"$and": []}, "", "$and"),
    ({"$or": {}}, "", "$or"),
    ({"$nor": [{"a": 1}]}, "", "$nor"),
    ({"age": {"$eq": float("nan")}}, "age", "$eq"),
)
"""Filters that cannot be understood, with the field and the operator that the error names."""

_FIELDS = ("f", "g", "a'b", "日本")
_OPERATORS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$contains")

_names = count()

_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([1.0, 0.5, -0.0, 2**53 + 1, 2**63 - 1, 1e300])
    | st.sampled_from(["", "a", "b", "ä", "1", "true"])
)
_values = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("bc"), inner, max_size=2)
    ),
    max_leaves=4,
)
_documents = st.dictionaries(st.sampled_from(_FIELDS), _values, max_size=3)


@st.composite
def _comparisons(draw: Any) -> dict[str, Any]:
    field, operator = draw(st.sampled_from(_FIELDS)), draw(st.sampled_from((*_OPERATORS, "", "")))
    if not operator:
        return {field: draw(_values)}
    if operator == "$exists":
        operand = draw(st.booleans())
    elif operator in {"$in", "$nin"}:
        operand = draw(st.lists(_values, max_size=3))
    elif operator in {"$gt", "$gte", "$lt", "$lte"}:
        operand = draw(_scalars.filter(lambda value: type(value) in (int, float, str)))
    else:
        operand = draw(_values)
    return {field: {operator: operand}}


_filters = st.recursive(
    _comparisons(),
    lambda inner: (
        st.builds(lambda parts: {"$and": parts}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda parts: {"$or": parts}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda part: {"$not": part}, inner)
        | st.builds(lambda one, other: {**one, **other}, inner, inner)
    ),
    max_leaves=5,
)


class FilterContract(MemoryContract):
    """Every promise of the filter language, through the service.

    The reference is the backend in memory.
    """

    @pytest.fixture
    def reference(self, clock: FakeClock, embedder: FakeEmbedder) -> Iterator[HierMem]:
        """Give an empty HierMem on the reference."""
        options = {"clock": clock, "embedder": embedder, "counter": ApproximateCounter()}
        with HierMem.open(":memory:", backend="in_memory", **options) as hiermem:  # type: ignore[arg-type]  # wrong on purpose
            yield hiermem

    def test_a22_order_matches_present_numbers_only(self, memory: MemoryService) -> None:
        fill(memory, [{"age": 4}, {"age": 3}, {}, {"age": None}, {"age": "4"}, {"age": [4]}])

        assert found(memory, filter={"age": {"$gt": 3}}) == {"0"}
        assert found(memory, filter={"age": {"$lte": 4}}) == {"0", "1"}
        assert found(memory, filter={"age": {"$gt": ""}}) == {"4"}

    def test_a23_a_missing_field_is_not_unequal_and_is_in_a_negation(
        self, memory: MemoryService
    ) -> None:
        fill(memory, [{"f": 1}, {"f": 2}, {"f": None}, {}])

        assert found(memory, filter={"f": {"$ne": 1}}) == {"1", "2"}
        assert found(memory, filter={"$not": {"f": 1}}) == {"1", "2", "3"}
        assert found(memory, filter={"f": {"$nin": [1]}}) == {"1", "2"}
        assert found(memory, filter={"f": {"$exists": False}}) == {"3"}
        assert found(memory, filter={"f": None}) == {"2"}
        assert found(memory, filter={"f": {"$in": []}}) == set()
        assert found(memory, filter={}) == {"0", "1", "2", "3"}

    def test_a24_a_slip_is_refused_with_field_and_operator(self, memory: MemoryService) -> None:
        fill(memory, [{"age": 1}])

        for (condition, field, operator), text in product(SLIPS, (None, "text")):
            with pytest.raises(InvalidFilterError) as refused:
                memory.search(text, filter=condition)
            assert (refused.value.field, refused.value.operator) == (field, operator)

    def test_a25_odd_names_and_values_are_only_data(
        self, hiermem: HierMem, memory: MemoryService
    ) -> None:
        fill(hiermem.tenant("other").memory, [{name: name} for name in ODD_NAMES])
        fill(memory, [{name: name} for name in ODD_NAMES])
        before = everything(memory)

        for place, name in enumerate(ODD_NAMES):
            mine = {str(place)}
            rest = {str(n) for n in range(len(ODD_NAMES))} - mine
            if name != "$":
                assert found(memory, filter={name: name}) == mine
                assert found(memory, filter={name: {"$in": [name, "x"]}}) == mine
                assert found(memory, filter={name: {"$exists": True}}) == mine
                assert found(memory, filter={"$not": {name: name}}) == rest
            assert found(memory, filter={"f": {"$contains": name}}) == set()

        assert everything(memory) == before

    def test_a26_numbers_and_texts_have_no_common_order(self, memory: MemoryService) -> None:
        fill(memory, [{"n": 9}, {"n": 10}, {"n": "10"}])

        assert found(memory, filter={"n": {"$gt": 9}}) == {"1"}
        assert found(memory, filter={"n": {"$gt": "1"}}) == {"2"}

    def test_a27_true_is_only_true(self, memory: MemoryService) -> None:
        fill(memory, [{"f": True}, {"f": 1}, {"f": "true"}])

        assert found(memory, filter={"f": True}) == {"0"}
        assert found(memory, filter={"f": 1.0}) == {"1"}
        assert found(memory, filter={"f": "true"}) == {"2"}

    def test_a27_each_operator_answers_or_raises_as_the_reference_does(
        self, memory: MemoryService
    ) -> None:
        documents: list[dict[str, Any]] = [*({"f": value} for value in VALUES), {}]
        fill(memory, documents)

        for operator, operand in product(_OPERATORS, [*VALUES, list(VALUES)]):
            condition = {"f": {operator: operand}}
            try:
                expected = expected_ids(documents, condition)
            except InvalidFilterError:
                with pytest.raises(InvalidFilterError):
                    memory.search(filter=condition)
            else:
                assert found(memory, filter=condition) == expected

    def test_a28_what_is_combined_equals_what_is_spelled_out(self, memory: MemoryService) -> None:
        fill(memory, [{"a": a, "b": b} for a in (0, 1, 2) for b in (0, 1)])
        either = {"$or": [{"$and": [{"a": 1}, {"b": 1}]}, {"$not": {"$or": [{"a": 1}, {"b": 1}]}}]}

        assert found(memory, filter={"a": 1, "b": 0}) == {"2"}
        assert found(memory, filter={"a": 1, "b": 0}) == found(
            memory, filter={"$and": [{"a": {"$eq": 1}}, {"b": {"$eq": 0}}]}
        )
        assert found(memory, filter={"a": {"$gte": 1, "$lt": 2}}) == {"2", "3"}
        assert found(memory, filter=either) == {"0", "3", "4"}

    def test_a_nested_object_matches_by_subset_and_dots_mean_nothing(
        self, memory: MemoryService
    ) -> None:
        fill(memory, [{"o": {"x": {"y": 1, "z": 2}}}, {"o": {"x": {"y": 1}}}, {"o.x": 1}])

        assert found(memory, filter={"o": {"x": {"y": 1}}}) == {"0", "1"}
        assert found(memory, filter={"o": {"$eq": {"x": {"y": 1}}}}) == {"1"}
        assert found(memory, filter={"o.x": 1}) == {"2"}

    def test_fields_of_the_entry_are_no_metadata(self, memory: MemoryService) -> None:
        memory.store("text", id="0", key="k", user_id="u", tags=["t"])

        for name in ("key", "user_id", "tags", "type", "content", "namespace"):
            assert found(memory, filter={name: {"$exists": True}}) == set()

    @shared
    @given(
        documents=st.lists(_documents, min_size=1, max_size=6),
        conditions=st.lists(_filters, min_size=3, max_size=6),
    )
    def test_a29_every_filter_is_answered_as_by_the_reference(
        self,
        hiermem: HierMem,
        reference: HierMem,
        documents: list[dict[str, Any]],
        conditions: list[dict[str, Any]],
    ) -> None:
        name = f"a29 {next(_names)}"
        memory, model = hiermem.tenant(name).memory, reference.tenant(name).memory
        fill(memory, documents)
        fill(model, documents)

        for condition in conditions:
            expected = found(model, filter=condition)
            assert expected == expected_ids(documents, condition)
            assert found(memory, filter=condition) == expected
        for mode in set(modes_of(memory)) & {"keyword", "semantic", "hybrid"}:
            hits = memory.search("text", mode=mode, filter=condition, limit=100)
            assert set(ids_of(hits)) == expected


def fill(memory: MemoryService, documents: Sequence[dict[str, Any]]) -> None:
    """Store an entry with each metadata, under its place as id."""
    memory.bulk_insert(
        {"content": f"text {place}", "metadata": document, "id": str(place)}
        for place, document in enumerate(documents)
    ).raise_for_errors()


def expected_ids(documents: Sequence[dict[str, Any]], condition: Any) -> set[str]:
    """Return the ids that a filter's definition gives."""
    parsed = parse_filter(condition)
    return {
        str(place)
        for place, document in enumerate(documents)
        if parsed is None or matches(parsed, document)
    }
