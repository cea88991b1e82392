"""OpenTelemetry: names, attributes, errors and figures; no content but what is asked for."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest
from core.children import run
from core.operations import EXPORT
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hiermem_core import (
    ApproximateCounter,
    AsyncHierMem,
    HierMem,
    InvalidInputError,
    Quota,
    QuotaExceededError,
    VersionConflictError,
)
from hiermem_core.importing import import_memories
from hiermem_core.testing import FakeEmbedder, ScriptedModel
from hiermem_core.testing.contracts.redacting import CARD, without_cards

SAID = f"xyzzy {CARD}"
NOTES = json.dumps({"summary": SAID, "facts": [SAID], "retract": []})

WITHOUT = """
from hiermem_core import ApproximateCounter, HierMem
with HierMem.open(sys.argv[1], counter=ApproximateCounter(), backend="sqlite") as hiermem:
    hiermem.tenant("acme").remember("one")
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""


class Traced:
    """Providers, and what they were told."""

    def __init__(self):
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader])

    def spans(self):
        """Return the spans since the last look: names and attributes."""
        spans = self.exporter.get_finished_spans()
        self.exporter.clear()
        return [(span.name, dict(span.attributes)) for span in spans]

    def points(self):
        """Return the figures of every instrument, by its name."""
        data = self.reader.get_metrics_data()
        metrics = [
            metric
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]
        return {metric.name: list(metric.data.data_points) for metric in metrics}


@pytest.fixture
def traced():
    return Traced()


@pytest.fixture
def opened(traced, tmp_path):
    handles = []

    def open_one(**options):
        given = {
            "counter": ApproximateCounter(),
            "embedder": FakeEmbedder(32),
            "tracer_provider": traced.tracers,
            "meter_provider": traced.meters,
        }
        handles.append(HierMem.open(tmp_path / "memory", **given | options))
        return handles[-1]

    yield open_one
    for handle in handles:
        handle.close()


def everything(hiermem):
    """Do what there is to do, with a sentinel in every text."""
    tenant = hiermem.tenant("acme", actor="ann")
    memory, thread = tenant.memory, tenant.thread("t1")
    tenant.remember(SAID, key=SAID, tags=[SAID], metadata={SAID: SAID})
    memory.bulk_insert([f"{SAID} {n}" for n in range(3)])
    memory.search(SAID)
    tenant.recall(SAID)
    thread.append([{"role": "user", "content": SAID}, {"role": "assistant", "content": SAID}])
    thread.save_context()
    thread.context(current=SAID, system=SAID, budget_tokens=500)
    thread.edit_turn(thread.turns()[0].id, SAID + "!")
    with pytest.raises(InvalidInputError):
        memory.search(SAID, limit=-1)
    memory.clear_namespace("default")


def test_e10_a_full_run_logged_and_traced_holds_no_content(opened, traced, caplog):
    caplog.set_level(logging.DEBUG)
    model = ScriptedModel([NOTES])

    everything(opened(chat_model=model, inline_updates=True, update_every_turns=2, audit=True))

    spans, points = traced.spans(), traced.points()
    assert len(spans) > 10
    assert "xyzzy" not in f"{spans} {points} {caplog.text}"


def test_e10_with_content_asked_for_it_is_redacted(opened, traced):
    everything(opened(trace_content=True, redactor=without_cards))

    spans = traced.spans()
    queries = [
        facts["gen_ai.memory.query.text"]
        for name, facts in spans
        if name == "search_memory" and "gen_ai.memory.query.text" in facts
    ]
    records = [
        facts["gen_ai.memory.records"] for _, facts in spans if "gen_ai.memory.records" in facts
    ]
    assert "xyzzy [card]" in queries
    assert any("xyzzy [card]" in text for text in records)
    assert CARD not in str(spans)


def test_e11_each_operation_is_one_span_of_its_name_and_attributes(opened, traced):
    hiermem = opened()
    store = hiermem.location
    memory = hiermem.tenant("acme").memory
    about = {"gen_ai.memory.store.id": store, "hiermem.tenant.id": "acme"}

    def seen(call):
        call()
        ((name, facts),) = traced.spans()
        assert facts.pop("gen_ai.operation.name") == name
        assert {key: facts.pop(key) for key in about} == about
        return name, facts

    def told(name, record=None, count=None):
        facts = {"gen_ai.memory.record.id": record, "gen_ai.memory.record.count": count}
        return name, {key: value for key, value in facts.items() if value is not None}

    ((name, _),) = traced.spans()
    assert name == "create_memory_store"
    ids = []
    name, facts = seen(lambda: ids.append(memory.store("one")))
    assert (name, facts) == told("create_memory", ids[0], 1)
    assert seen(lambda: memory.store("two", id="e2")) == told("upsert_memory", "e2", 1)
    assert seen(lambda: memory.store("two", key="k"))[0] == "upsert_memory"
    assert seen(lambda: memory.update("e2", content="2")) == told("update_memory", "e2", 1)
    assert seen(lambda: memory.retrieve("e2")) == told("search_memory", "e2", 1)
    assert seen(memory.search) == told("search_memory", count=3)
    assert seen(lambda: memory.search_semantic("one", 2)) == told("search_memory", count=2)
    assert seen(lambda: memory.bulk_get(["e2", "e9"])) == told("search_memory", count=2)
    bulk = seen(lambda: memory.bulk_insert([f"entry {n}" for n in range(250)], batch_size=100))
    assert bulk == told("create_memory", count=250)
    updates = [("e2", {"tags": ["a"]}), ("e9", {"tags": ["a"]})]
    assert seen(lambda: memory.bulk_update(updates)) == told("update_memory", count=2)
    assert seen(lambda: memory.bulk_delete([ids[0]])) == told("delete_memory", count=1)
    assert seen(lambda: memory.delete("e2")) == told("delete_memory", "e2", 1)
    assert seen(lambda: memory.clear_namespace("default")) == told("delete_memory", count=251)
    assert seen(lambda: memory.forget(namespace="n"))[0] == "delete_memory"
    assert seen(lambda: memory.forget(everything=True))[0] == "delete_memory_store"
    assert seen(lambda: hiermem.tenant("acme").import_export(EXPORT))[0] == "create_memory"
    assert seen(lambda: hiermem.tenant("acme").recall("line")) == told("search_memory", count=1)


def test_e11_thread_work_names_its_conversation(opened, traced):
    thread = opened().tenant("acme").thread("t1")
    traced.spans()

    thread.append([{"role": "user", "content": "hi", "id": "u1"}])
    thread.edit_turn("u1", "hello")
    thread.context(budget_tokens=100)
    thread.recall("hello")
    thread.delete()

    spans = traced.spans()
    assert [name for name, _ in spans] == [
        *("create_memory", "update_memory", "search_memory", "search_memory", "delete_memory")
    ]
    assert {facts["gen_ai.conversation.id"] for _, facts in spans} == {"t1"}
    assert spans[1][1]["gen_ai.memory.record.id"] == "u1"


def test_e11_an_error_is_told_by_its_type_and_a_failed_item_by_their_number(opened, traced):
    memory = opened(quota=Quota(max_entries=3)).tenant("acme").memory
    memory.store("one", id="e1")
    traced.spans()

    with pytest.raises(VersionConflictError):
        memory.update("e1", content="xyzzy", expected_version=7)
    memory.bulk_insert(["two", "", "three", "four"])
    with pytest.raises(QuotaExceededError):
        memory.store("xyzzy")

    failed, bulk, refused = traced.exporter.get_finished_spans()
    assert failed.attributes["error.type"] == "VersionConflictError"
    assert not failed.status.is_ok
    assert failed.events == ()
    assert "xyzzy" not in str(failed.status.description)
    assert (bulk.attributes["gen_ai.memory.record.count"], bulk.status.is_unset) == (2, True)
    assert bulk.attributes["hiermem.failed.count"] == 2
    assert refused.attributes["error.type"] == "QuotaExceededError"
    rejections = traced.points()["hiermem.quota.rejections"]
    assert [(point.value, dict(point.attributes)) for point in rejections] == [
        (2, {"limit": "max_entries"})
    ]


def test_e11_durations_tokens_trims_and_figures_are_measured(opened, traced):
    hiermem = opened()
    tenant = hiermem.tenant("acme")
    thread = tenant.thread("t1")
    for number in range(10):
        thread.append([{"role": "user", "content": f"question {number} " * 20}])
        thread.append([{"role": "assistant", "content": f"answer {number} " * 20}])
    tenant.remember("one")

    context = thread.context(current="and now?", budget_tokens=300)

    points = traced.points()
    tokens = {point.attributes["section"]: point.sum for point in points["hiermem.context.tokens"]}
    names = {p.attributes["gen_ai.operation.name"] for p in points["hiermem.operation.duration"]}
    assert tokens == {section.name: section.tokens for section in context.receipt.sections}
    assert {"create_memory", "search_memory"} <= names
    assert points["hiermem.turns.trimmed"][0].value > 0
    assert {name for name in points if name.startswith(("hiermem.index", "hiermem.updates"))} == {
        *("hiermem.index.pending", "hiermem.updates.due", "hiermem.updates.dead")
    }
    hiermem.close()
    assert "hiermem.index.pending" not in traced.points()


async def test_e11_an_awaited_operation_is_below_the_caller_s_span(opened, traced):
    hiermem = AsyncHierMem(opened())
    tracer = traced.tracers.get_tracer("application")

    with tracer.start_as_current_span("request") as parent:
        await asyncio.gather(*(hiermem.tenant("a").remember(f"entry {n}") for n in range(3)))

    spans = [one for one in traced.exporter.get_finished_spans() if one.name == "create_memory"]
    assert [span.parent.span_id for span in spans] == [parent.get_span_context().span_id] * 3


def test_e11_an_import_is_one_span(opened, traced, tmp_path):
    hiermem = opened()
    source = tmp_path / "talk.jsonl"
    lines = [json.dumps({"role": "user", "content": f"turn {n}"}) for n in range(4)]
    source.write_text("\n".join(lines))
    traced.spans()

    import_memories(source, hiermem.tenant("acme"))

    *_, (name, facts) = traced.spans()
    assert (name, facts["gen_ai.memory.record.count"]) == ("create_memory", 4)


def test_telemetry_that_fails_affects_nothing(opened, traced, monkeypatch, caplog):
    memory = opened().tenant("acme").memory
    monkeypatch.setattr("hiermem_core.telemetry._outcome_of", lambda _: 1 / 0)

    assert memory.store("one", id="e1") == "e1"
    assert "ZeroDivisionError" in caplog.text


def test_without_opentelemetry_in_use_it_is_not_imported_and_nobody_watches(tmp_path):
    assert run(WITHOUT, tmp_path / "memory").strip() == "[]"
    with HierMem.open(tmp_path / "memory", counter=ApproximateCounter()) as hiermem:
        assert hiermem._services.memories.operations is None
