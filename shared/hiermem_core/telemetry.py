"""OpenTelemetry: a span and a duration for each operation, and figures of what goes on.

OpenTelemetry is used where the application has it in use, and never imported for its own sake.
"""

from __future__ import annotations

import logging
import sys
import time
import weakref
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from hiermem_core.backends.sql_counts import outbox_state
from hiermem_core.errors import HierMemError, RedactionError
from hiermem_core.models.events import QuotaRejected, RecallServed, TurnsTrimmed
from hiermem_core.models.plain import dump_json
from hiermem_core.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from hiermem_core.models.events import Event
    from hiermem_core.models.redaction import Redaction
    from hiermem_core.operations import Operation
    from hiermem_core.services import Services

_SCOPE = "hiermem_core"
_MOST_RECORDS = 20
"""Records of which a span holds the content, where that is asked for."""

_NAMES: Mapping[str, str] = {
    "store": "create_memory",
    "bulk_insert": "create_memory",
    "append": "create_memory",
    "import_memories": "create_memory",
    "import_export": "create_memory",
    "learn": "upsert_memory",
    "start": "upsert_memory",
    "log": "create_memory",
    "log_calls": "create_memory",
    "write": "upsert_memory",
    "replace": "upsert_memory",
    "update": "update_memory",
    "bulk_update": "update_memory",
    "edit_turn": "update_memory",
    "reset": "update_memory",
    "reinforce": "update_memory",
    "end": "update_memory",
    "delete": "delete_memory",
    "bulk_delete": "delete_memory",
    "clear_namespace": "delete_memory",
    "purge_expired": "delete_memory",
    "delete_turns": "delete_memory",
    "prune": "delete_memory",
    "forget": "delete_memory",
}
"""`gen_ai.operation.name` of what is no search."""

_logger = logging.getLogger(__name__)


def telemetry_in_use(
    store_id: str,
    *,
    tracer_provider: Any,
    meter_provider: Any,
    redaction: Redaction,
    with_content: bool,
) -> Telemetry | None:
    """Return what watches for OpenTelemetry; `None` where the application does not use it.

    Args:
        tracer_provider: Default: the global one, where the application has set one.
        meter_provider: As `tracer_provider`.
    """
    tracers = tracer_provider or _global("opentelemetry.trace", "get_tracer_provider")
    meters = meter_provider or _global("opentelemetry.metrics", "get_meter_provider")
    if tracers is None and meters is None:
        return None
    return Telemetry(store_id, tracers, meters, redaction=redaction, with_content=with_content)


def _global(module: str, getter: str) -> Any:
    """Return a global provider that the application has set; what it never imported it has not."""
    found = sys.modules.get(module)
    provider = None if found is None else getattr(found, getter)()
    is_set = provider is not None and "proxy" not in type(provider).__name__.lower()
    return provider if is_set else None


class Telemetry:
    """Emit spans and metrics; a `Watcher`, and an observer of events.

    Holds ids, counts, durations and codes; content only where that is asked for, redacted.
    """

    def __init__(
        self,
        store_id: str,
        tracer_provider: Any,
        meter_provider: Any,
        *,
        redaction: Redaction,
        with_content: bool,
    ) -> None:
        self._store_id = store_id
        self._redaction = redaction
        self._with_content = with_content
        self._tracer = (
            None if tracer_provider is None else tracer_provider.get_tracer(_SCOPE, __version__)
        )
        self._metrics = (
            None
            if meter_provider is None
            else _Metrics(meter_provider.get_meter(_SCOPE, __version__))
        )

    @contextmanager
    def watching(self, operation: Operation) -> Iterator[None]:
        """Emit a span around the operation, and how long it took."""
        started = time.perf_counter()
        with self._span(_named(operation), operation.tenant_id, operation.thread_id) as span:
            try:
                yield
            finally:
                with _harmlessly():
                    self._end(span, operation, time.perf_counter() - started)

    def created(self) -> None:
        """Emit the span of a new location."""
        with self._span("create_memory_store", None, None):
            pass

    def tell(self, event: Event) -> None:
        """Count an event."""
        if self._metrics is not None:
            with _harmlessly():
                self._metrics.count(event)

    def observe(self, services: Services) -> None:
        """Report the figures of services that are open, whenever metrics are collected."""
        if self._metrics is not None:
            self._metrics.observe(services)

    @contextmanager
    def _span(self, name: str, tenant_id: str | None, thread_id: str | None) -> Iterator[Any]:
        if self._tracer is None:
            yield None
            return
        facts = {
            "gen_ai.operation.name": name,
            "gen_ai.memory.store.id": self._store_id,
            "hiermem.tenant.id": tenant_id,
            "gen_ai.conversation.id": thread_id,
        }
        with self._tracer.start_as_current_span(
            name,
            attributes={key: value for key, value in facts.items() if value is not None},
            record_exception=False,  # an exception's text may hold content
            set_status_on_exception=False,
        ) as span:
            yield span

    def _end(self, span: Any, operation: Operation, seconds: float) -> None:
        error = None if operation.error is None else type(operation.error).__name__
        if span is not None:
            span.set_attributes(_outcome_of(operation))
            if error is not None:
                from opentelemetry.trace import StatusCode  # noqa: PLC0415 - it is in use

                span.set_attribute("error.type", error)
                span.set_status(StatusCode.ERROR)
            if self._with_content:
                span.set_attributes(self._content_of(operation))
        if self._metrics is not None:
            self._metrics.finished(_named(operation), operation.result, error, seconds)

    def _content_of(self, operation: Operation) -> dict[str, str]:
        cleaner = self._redaction.cleaner("query", operation.tenant_id, operation.thread_id)
        given, records = _first_of(operation), _records_of(operation.result)
        found: dict[str, str] = {}
        with suppress(RedactionError):
            if operation.kind == "read" and isinstance(given, str):
                found["gen_ai.memory.query.text"] = cleaner.text(given)
            if operation.name == "store" and isinstance(text := _content(given), str):
                records = [{"content": text}]
            if records:
                found["gen_ai.memory.records"] = dump_json(cleaner.json(records))
        return found


class _Metrics:
    """The instruments of one meter."""

    def __init__(self, meter: Any) -> None:
        self._meter = meter
        self._durations = meter.create_histogram(
            "hiermem.operation.duration", unit="s", description="Duration of operations."
        )
        self._tokens = meter.create_histogram(
            "hiermem.context.tokens", unit="{token}", description="Tokens of a context's sections."
        )
        self._trimmed = meter.create_counter(
            "hiermem.turns.trimmed", unit="{turn}", description="Turns left out to fit a budget."
        )
        self._served = meter.create_counter(
            "hiermem.recalls.served", description="Searches answered by a working memory."
        )
        self._rejected = meter.create_counter(
            "hiermem.quota.rejections", description="Writes beyond a quota."
        )

    def finished(self, name: str, result: Any, error: str | None, seconds: float) -> None:
        """Record an operation."""
        facts = {"gen_ai.operation.name": name} | ({} if error is None else {"error.type": error})
        self._durations.record(seconds, facts)
        for section in getattr(getattr(result, "receipt", None), "sections", ()):
            self._tokens.record(section.tokens, {"section": section.name})

    def count(self, event: Event) -> None:
        """Count an event."""
        if isinstance(event, TurnsTrimmed):
            self._trimmed.add(event.turns)
        elif isinstance(event, QuotaRejected):
            self._rejected.add(1, {"limit": event.name})
        elif isinstance(event, RecallServed):
            self._served.add(1, {"source": event.source})

    def observe(self, services: Services) -> None:
        """Report figures of services while they are open."""
        held = weakref.ref(services)
        figures: dict[str, Callable[[Services], float]] = {
            "hiermem.index.pending": _index_lag,
            "hiermem.updates.due": lambda one: one.updates.count(None).due,
            "hiermem.updates.dead": lambda one: one.updates.count(None).dead,
            "hiermem.cache.hits": lambda one: one.memories.cache.stats().hits,
            "hiermem.cache.misses": lambda one: one.memories.cache.stats().misses,
        }
        for name, figure in figures.items():
            self._meter.create_observable_gauge(name, [_reporting(held, figure)])


def _index_lag(services: Services) -> int:
    with services.database.read() as connection:
        state = outbox_state(connection, None, with_changes=services.memories.indexer.is_on)
    return state.rows + state.changes


def _reporting(
    held: weakref.ref[Services], figure: Callable[[Services], float]
) -> Callable[[Any], Iterable[Any]]:
    def report(_: Any) -> Iterable[Any]:
        from opentelemetry.metrics import Observation  # noqa: PLC0415 - it is in use

        services = held()
        if services is None or services.database.is_closed:
            return []
        try:
            return [Observation(figure(services))]
        except HierMemError:
            return []

    return report


def _named(operation: Operation) -> str:
    """Return the `gen_ai.operation.name` of an operation."""
    positional, named = operation.arguments
    if operation.name == "forget" and named.get("everything"):
        return "delete_memory_store"
    if operation.name == "store":
        entry = positional[0] if positional else None
        names = [named.get(name) or _fact(entry, name) for name in ("id", "key")]
        return "upsert_memory" if any(names) else "create_memory"
    return _NAMES.get(operation.name, "search_memory")


def _outcome_of(operation: Operation) -> dict[str, Any]:
    """Return how many records an operation was about, and the one it was about."""
    result = operation.result
    given = _first_of(operation)
    found: dict[str, Any] = {}
    if operation.name == "store" and isinstance(result, str):
        found["gen_ai.memory.record.id"] = result
    elif operation.name in {"update", "delete", "retrieve", "edit_turn"} and isinstance(given, str):
        found["gen_ai.memory.record.id"] = given
    if operation.error is None:
        found["gen_ai.memory.record.count"] = _count_of(result)
    failed = getattr(result, "failed", ())
    if isinstance(failed, tuple) and failed:
        found["hiermem.failed.count"] = len(failed)
    return found


def _count_of(result: Any) -> int:
    if isinstance(ids := getattr(result, "ids", None), tuple):
        return sum(one is not None for one in ids)
    if hasattr(result, "counts"):
        return sum(result.counts.values())
    for name in ("removed", "imported"):
        result = getattr(result, name, result)
    result = getattr(result, "messages", result)
    is_many = hasattr(result, "__len__") and not isinstance(result, str)
    return len(result) if is_many else int(result) if isinstance(result, int) else bool(result)


def _first_of(operation: Operation) -> Any:
    positional, named = operation.arguments
    return positional[0] if positional else named.get("text", named.get("question"))


def _content(entry: Any) -> Any:
    return entry if isinstance(entry, str) else _fact(entry, "content")


def _fact(entry: Any, name: str) -> Any:
    return entry.get(name) if isinstance(entry, dict) else getattr(entry, name, None)


def _records_of(result: Any) -> list[dict[str, Any]]:
    """Return ids and contents of the first things that an operation returned."""
    listed = result if isinstance(result, list | tuple) else getattr(result, "messages", None)
    if listed is None:
        is_many = hasattr(result, "__iter__") and not isinstance(result, str | dict)
        listed = list(result)[:_MOST_RECORDS] if is_many else [result]
    found = [(getattr(one, "id", None), getattr(one, "content", None)) for one in listed]
    texts = [(name, text) for name, text in found if isinstance(text, str)]
    return [{"id": name, "content": text} for name, text in texts[:_MOST_RECORDS]]


@contextmanager
def _harmlessly() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - telemetry that fails affects nothing
        _logger.warning("telemetry failed: %s", type(error).__name__)
