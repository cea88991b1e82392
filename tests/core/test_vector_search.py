"""How the nearest vectors are found in a database: every way gives the exact answer."""

import numpy as np
import pytest
from sqlalchemy import event

from hiermem_core import HierMem
from hiermem_core.backends.planner import WAYS
from hiermem_core.models.entries import EntryDraft
from hiermem_core.testing.clocks import FakeClock

SIZE = 600
RESTRICTIONS = {
    "everything": ({}, lambda place: True),
    "namespace": ({"namespace": "even"}, lambda place: place % 2 == 0),
    "one namespace": ({"namespace": "even", "subtree": False}, lambda place: False),
    "type": ({"type": "procedural"}, lambda place: place % 50 == 1),
    "tags": ({"tags": ["seven", "all"]}, lambda place: place % 7 == 0),
    "filter": ({"filter": {"place": {"$lt": 30}}}, lambda place: place < 30),
    "undeclared": ({"filter": {"other": 3}}, lambda place: place % 10 == 3),
    "trust": ({"min_trust": 0.5}, lambda place: place % 3 == 0),
    "key": ({"key": "k7"}, lambda place: place == 7),
    "nothing": ({"user_id": "nobody"}, lambda place: False),
}
WAYS_TO_OPEN = {
    "scan": {},
    "candidates": {"exact_limit": 599, "index_threshold": 10**9},
    "blocks": {"exact_limit": 0, "index_threshold": 10**9},
    "index": {"exact_limit": 0, "index_threshold": 0},
}


def entries(vectors):
    return [
        EntryDraft(
            content=f"entry {place}",
            namespace=("even" if place % 2 == 0 else "odd") + f"/n{place % 5}",
            type="procedural" if place % 50 == 1 else "episodic",
            tags=("all", *(["seven"] if place % 7 == 0 else [])),
            metadata={"place": place, "other": place % 10},
            trust=0.9 if place % 3 == 0 else 0.1,
            key=f"k{place}",
            embedding=vector,
        )
        for place, vector in enumerate(vectors)
    ]


def filled(location, vectors, **options):
    hiermem = HierMem.open(location, clock=FakeClock(), indexed_metadata=("place",), **options)
    hiermem.tenant("a").memory.bulk_insert(entries(vectors)).raise_for_errors()
    hiermem.tenant("a").memory.wait_for_index()
    if options == WAYS_TO_OPEN["blocks"]:
        hiermem.tenant("a")._services.turns._search._matrices.limit = 1
    return hiermem


def places(hits):
    return [hit.metadata["place"] for hit in hits]


def exactly(vectors, vector, is_within, limit=10):
    within = [place for place in range(len(vectors)) if is_within(place)]
    return sorted(within, key=lambda place: -float(vectors[place] @ vector))[:limit]


@pytest.fixture(scope="module")
def vectors():
    dice = np.random.default_rng(5)
    found = dice.standard_normal((SIZE, 32)).astype("f4")
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.fixture(scope="module", params=WAYS_TO_OPEN)
def hiermem(request, vectors, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    with filled(folder / "memory", vectors, **WAYS_TO_OPEN[request.param]) as opened:
        yield opened


@pytest.mark.parametrize("restriction", RESTRICTIONS)
def test_every_way_finds_the_nearest_within_every_restriction(hiermem, vectors, restriction):
    fields, is_within = RESTRICTIONS[restriction]
    dice = np.random.default_rng(6)

    for vector in dice.standard_normal((5, 32)).astype("f4"):
        found = hiermem.tenant("a").memory.search(vector=vector, limit=10, **fields)

        assert places(found) == exactly(vectors, vector, is_within)


def test_the_named_way_is_the_one_that_is_taken(vectors, tmp_path):
    for name, options in WAYS_TO_OPEN.items():
        with filled(tmp_path / name, vectors, **options) as opened:
            fields = {"namespace": "even"} if name == "candidates" else {}
            (hit,) = opened.tenant("a").memory.search(
                vector=vectors[0], limit=1, explain=True, **fields
            )

        assert hit.explanation["plan"] == WAYS[name]


@pytest.mark.parametrize("options", WAYS_TO_OPEN.values(), ids=WAYS_TO_OPEN)
def test_removed_changed_and_expired_vectors_are_passed_over(options, vectors, tmp_path):
    clock = FakeClock()
    with HierMem.open(tmp_path / "memory", clock=clock, **options) as hiermem:
        memory = hiermem.tenant("a").memory
        ids = memory.bulk_insert(entries(vectors)).ids
        memory.wait_for_index()
        near = places(memory.search(vector=vectors[0], limit=500))
        memory.bulk_delete([ids[place] for place in near[:200]])
        memory.bulk_update([(ids[place], {"ttl": 1.0}) for place in near[200:300]])
        memory.update(ids[near[300]], embedding=-vectors[0])
        clock.advance(2.0)

        found = places(memory.search(vector=vectors[0], limit=10))

        assert found == near[301:311]


def test_vectors_of_extreme_lengths_keep_their_direction(tmp_path):
    with HierMem.open(tmp_path / "memory") as hiermem:
        memory = hiermem.tenant("a").memory
        for length in (1e-30, 1.0, 1e25):
            memory.store(f"of length {length}", embedding=[0.6 * length, 0.8 * length])

        found = memory.search(vector=[0.6, 0.8])

        assert [round(hit.score, 5) for hit in found] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("limit", [1, 40, 300])
def test_a_keyword_search_goes_on_past_what_is_not_in_scope(limit, tmp_path):
    clock = FakeClock()
    with HierMem.open(tmp_path / "memory", clock=clock, backend="sqlite") as hiermem:
        memory = hiermem.tenant("a").memory
        texts = [f"otter {'otter ' * (place < 400)}{place}" for place in range(800)]
        memory.bulk_insert(
            {"content": text, "tags": ["late"] if place >= 400 else []}
            for place, text in enumerate(texts)
        )

        found = memory.search("otter", mode="keyword", tags=["late"], limit=limit)

        assert len(found) == min(limit, 400)
        assert {hit.tags for hit in found} == {("late",)}


def plans_of(hiermem, search):
    """Return the plans of the statements a search runs that look at entries or vectors."""
    statements = []
    engine = hiermem.tenant("a")._services.database._engine

    def note(connection, cursor, statement, parameters, *rest):
        if "memory_entries" in statement or "vectors" in statement:
            statements.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    search()
    event.remove(engine, "before_cursor_execute", note)
    with hiermem.tenant("a")._services.database.read() as connection:
        return [
            [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", facts)]
            for text, facts in statements
        ]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"namespace": "even"},
        {"namespace": "even", "type": "episodic"},
        {"tags": ["all"]},
        {"filter": {"place": 3}},
        {"user_id": "nobody"},
        {"text": "entry", "type": "procedural"},
    ],
)
def test_no_search_reads_a_whole_table_or_a_whole_tenant(hiermem, vectors, fields):
    memory = hiermem.tenant("a").memory
    memory.search(vector=vectors[0])

    plans = plans_of(hiermem, lambda: memory.search(vector=vectors[0], limit=3, **fields))

    steps = [step for plan in plans for step in plan]
    assert not [step for step in steps if step.startswith(("SCAN memory_entries", "SCAN vectors"))]
    small = ("SEARCH vectors", "SEARCH tenants")
    whole = [step for step in steps if step.endswith("(tenant=?)")]
    assert not fields or not [step for step in whole if not step.startswith(small)]


def test_what_is_within_restrictions_stays_in_memory_until_an_entry_changes(tmp_path, vectors):
    with filled(tmp_path, vectors, **WAYS_TO_OPEN["candidates"]) as hiermem:
        memory = hiermem.tenant("a").memory
        asked = {"vector": vectors[0], "limit": 3, "namespace": "even"}
        first = memory.search(**asked)

        again = statements_of(hiermem, lambda: memory.search(**asked))
        added = memory.store("newest", namespace="even", embedding=vectors[0])
        after = memory.search(**asked)
        memory.delete(added)
        gone = memory.search(**asked)

    assert not [statement for statement in again if "vectors.embedding" in statement]
    assert added in [hit.id for hit in after]
    assert [hit.id for hit in gone] == [hit.id for hit in first]


def statements_of(hiermem, call):
    found = []
    engine = hiermem._services.database._engine

    def listener(_connection, _cursor, statement, *_rest):
        found.append(statement)

    event.listen(engine, "before_cursor_execute", listener)
    try:
        call()
    finally:
        event.remove(engine, "before_cursor_execute", listener)
    return found
