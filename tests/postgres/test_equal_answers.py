"""Random operations and filters have equal results on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest
import sqlalchemy as sql
from core.test_sql_filters import (
    MARKED_KEYS,
    ODD_KEYS,
    SERVED,
    Store,
    near,
    questions,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from hiermem_core import ApproximateCounter, HierMem, errors
from hiermem_core.backends.sql_filters import NO_FIELDS, Fields, metadata_index_ddl
from hiermem_core.models.filters import parse_filter
from hiermem_core.models.text import TextCleaner
from hiermem_core.testing import FakeClock, FakeEmbedder
from hiermem_core.testing.contracts.entries_base import settle

EXAMPLES = settings.get_profile("ordinary").max_examples
HUGE = 1024 * 1024
KEYS = (*ODD_KEYS, *MARKED_KEYS)


class ServedStore(Store):
    """The same rows, on PostgreSQL."""

    def query(self, value, *, fields=NO_FIELDS):
        return super().query(value, fields=Fields(fields.indexed, "postgresql"))


@pytest.fixture(scope="module")
def store(postgres_database):
    engine = sql.create_engine(f"{postgres_database}", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE SCHEMA filters")
        connection.exec_driver_sql("SET search_path = filters")
        yield ServedStore(connection, dialect="postgresql")
    engine.dispose()


def check(store, value):
    expected = store.reference(value)
    assert store.answer(value) == expected
    assert store.answer(value, fields=Fields(frozenset(ODD_KEYS))) == expected
    return expected


@given(question=questions())
def test_a29_sql_gives_the_reference_s_ids(store, question):
    documents, filters = question
    store.fill([TextCleaner().json(document) for document in documents])

    for value in filters:
        try:
            parse_filter(value)
        except errors.InvalidInputError:
            continue
        check(store, value)


@pytest.mark.parametrize("key", KEYS)
def test_a25_an_odd_field_is_found_alone_and_nothing_else_is(store, key):
    others = [other for other in KEYS if other != key]
    store.fill([{key: 1}, dict.fromkeys(others, 1), {**dict.fromkeys(others, 1), key: [{key: 1}]}])

    assert check(store, {key: 1}) == {0}
    assert check(store, {key: {"$exists": True}}) == {0, 2}
    assert check(store, {key: {"$gt": 0}}) == {0}
    assert check(store, {key: {"$contains": {key: 1.0}}}) == {2}
    assert check(store, {"$not": {key: {"$in": [1, [{key: 1}]]}}}) == {1}


@pytest.mark.parametrize("text", [*KEYS, "1", "null", "true", "[]", "{}", "a'); DROP", "x" * 5000])
def test_a25_an_odd_text_is_found_alone_and_nothing_else_is(store, text):
    store.fill([{"a": text}, {"a": text + " "}, {"a": [text]}, {"a": {text: text}}, {"b": text}])

    assert check(store, {"a": text}) == {0}
    assert check(store, {"a": {"$in": ["x", text]}}) == {0}
    assert check(store, {"a": {"$gte": text, "$lte": text}}) == {0}
    assert check(store, {"a": {"$contains": text}}) == {2}
    assert check(store, {"a": {"$eq": {text: text}}}) == {3}


@pytest.mark.parametrize(
    "number",
    [0, 2**53, 2**63 - 1, -(2**63), 0.1, 1e16, 1e23, 5e-324, -1e-310, 1.7976931348623157e308],
)
def test_numbers_next_to_each_other_are_told_apart(store, number):
    numbers = near(number)
    store.fill({"a": item} for item in [*numbers, -0.0])

    for operand in numbers:
        for name in ("$eq", "$gt", "$gte", "$lt", "$lte"):
            check(store, {"a": {name: operand}})
        check(store, {"a": {"$in": [0.7, operand, "x"]}})


@pytest.mark.parametrize("value", SERVED)
def test_what_an_index_serves_is_answered(store, value):
    store.fill([{"a": 3}, {"a": "x", "b": 1}, {"a": 0.1}, {"a": True}, {"a": None}, {}])

    assert check(store, value) is not None


@pytest.mark.parametrize("key", KEYS)
def test_an_odd_field_can_be_indexed_here(key):
    assert "memory_entries" in metadata_index_ddl(key, "postgresql")


WORDS = (
    *(
        "lighthouse",
        "light",
        "Straße",
        "STRASSE",
        "naïve",
        "naive",
        "İstanbul",
        "café",
        "cafe\u0301",
    ),
    *("日本語", "東京都", "京都", "한국어", "ไทย", "हिन्दी", "🙂", "👩‍👩‍👧", "a_b", "e-mail", "C++"),
    *("it's", "100%", "\\", "'", '"', "don't", "x" * 3000, "1.5", "and", "the", "running", "runs"),
)
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
odd = texts | st.text(min_size=1, max_size=20).filter(lambda text: bool(text.strip()))
ids = st.sampled_from([f"e{number}" for number in range(6)])
names = st.sampled_from(["a", "a/b", "ab", "größe", "日本", "🙂/x", "a.b", "z_%"])
documents = st.dictionaries(
    st.sampled_from(["n", "größe", "a.b", "日本"]),
    st.integers(-3, 3) | st.sampled_from(["x", "Ä", "é", None, 0.5, [1, "x"], True]),
    max_size=2,
)
entries = st.fixed_dictionaries(
    {"id": ids, "content": odd, "namespace": names, "metadata": documents},
    optional={
        "tags": st.lists(st.sampled_from(["t", "ü", "日"]), max_size=2),
        "trust": st.just(0.5),
    },
)
keyed = st.fixed_dictionaries(
    {"content": odd, "namespace": names, "key": st.sampled_from(["k", "ключ", "鍵"])}
)
operations = st.one_of(
    st.tuples(st.just("store"), entries | keyed),
    st.tuples(st.just("update"), ids, st.fixed_dictionaries({"content": odd})),
    st.tuples(st.just("delete"), ids),
    st.tuples(st.just("clear"), names),
    st.tuples(st.just("search"), odd, st.sampled_from(["keyword", "semantic", "hybrid"])),
    st.tuples(
        st.just("filter"), st.dictionaries(st.sampled_from(["n", "größe"]), st.integers(-3, 3))
    ),
    st.tuples(st.just("prefix"), names),
)


def done(memory, operation):
    """Do an operation; return what it gave, without ids that chance has made."""
    name, *given_ = operation
    try:
        return _done(memory, name, given_)
    except errors.HierMemError as error:
        return type(error).__name__


def _done(memory, name, given_):
    if name == "store":
        memory.store(given_[0])
        return None
    if name == "update":
        changed = memory.update(given_[0], **given_[1])
        return changed and changed.version
    if name == "delete":
        return memory.delete(given_[0])
    if name == "clear":
        return memory.clear_namespace(given_[0])
    if name == "search":
        settle(memory)
        hits = memory.search(given_[0], mode=given_[1], limit=50)
        return sorted((hit.content, hit.namespace) for hit in hits)
    asked = {"filter": given_[0]} if name == "filter" else {"namespace": given_[0]}
    return sorted((hit.content, hit.namespace) for hit in memory.search(limit=50, **asked))


def state_of(memory):
    entries_ = memory.search(limit=1000)
    return sorted(
        (one.namespace, one.key or one.id, one.content, one.version, str(one.metadata), one.tags)
        for one in entries_
    )


@pytest.fixture(scope="module")
def pair(postgres_database):
    """Give a memory on SQLite and one on PostgreSQL."""
    shared = {"counter": ApproximateCounter(), "embedder": FakeEmbedder(16)}
    with (
        HierMem.open(":memory:", clock=FakeClock(), **shared) as here,
        HierMem.open(
            f"{postgres_database}?schema=equal",
            clock=FakeClock(),
            generation_check_seconds=0,
            **shared,
        ) as there,
    ):
        yield here, there


numbers = iter(range(1_000_000))


@given(steps=st.lists(operations, min_size=1, max_size=12))
def test_random_operations_have_equal_results(pair, steps):
    tenant = f"tenant {next(numbers)} ü/日%_"
    here, there = (hiermem.tenant(tenant).memory for hiermem in pair)

    for step in steps:
        assert done(there, step) == done(here, step)

    assert state_of(there) == state_of(here)
    assert there.list_namespaces() == here.list_namespaces()


@given(contents=st.lists(odd, min_size=1, max_size=8), question=odd)
def test_a_question_finds_the_same_set_with_nearly_the_same_scores(pair, contents, question):
    tenant = f"words {next(numbers)}"
    found = []
    with HierMem.open(":memory:", counter=ApproximateCounter()) as alone:  # SQLite counts all rows
        for hiermem in (alone, pair[1]):
            memory = hiermem.tenant(tenant).memory
            memory.bulk_insert({"id": f"{n}", "content": text} for n, text in enumerate(contents))
            hits = memory.search(question, mode="keyword", limit=100)
            found.append({hit.id: hit.score for hit in hits})

    assert found[1].keys() == found[0].keys()
    assert found[1] == pytest.approx(found[0], abs=5e-3)


@pytest.mark.parametrize(
    "text",
    [
        *("lighthouse " * (HUGE // 11), "灯台" * (HUGE // 6), "é🙂 " * (HUGE // 7), "w" * HUGE),
        " ".join(f"word{number}" for number in range(HUGE // 10)),
    ],
    ids=["one word", "CJK", "emoji", "no space", "many words"],
)
def test_a_text_of_a_mebibyte_is_kept_and_found_on_both(pair, text):
    tenant = f"huge {next(numbers)}"
    question = text[:20].strip().split(" ")[0] if " " in text else text[:2]
    found = []
    for hiermem in pair:
        memory = hiermem.tenant(tenant).memory
        entry_id = memory.store(text, embedding=[1.0] * 16)
        assert memory.retrieve(entry_id).content == text
        found.append(len(memory.search(question, mode="keyword")))
        thread = hiermem.tenant(tenant).thread("t")
        thread.append([{"role": "user", "content": text}])
        assert thread.turns()[0].content == text

    assert found[1] == found[0]
