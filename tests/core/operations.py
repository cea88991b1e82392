"""Every public method, as a call that can be made on a sync handle and on its async twin."""

from __future__ import annotations

import inspect
import io
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from hiermem_core import HierMem, ToolCall, TurnDraft
from hiermem_core.aio import (
    AsyncHierMem,
    AsyncMemoryService,
    AsyncPatterns,
    AsyncSessionLog,
    AsyncTenant,
    AsyncThread,
    AsyncUpdates,
)
from hiermem_core.hiermem import Updates
from hiermem_core.service.memory_service import MemoryService
from hiermem_core.service.patterns import Patterns
from hiermem_core.session import SessionLog
from hiermem_core.tenant import Tenant
from hiermem_core.testing import FakeEmbedder
from hiermem_core.thread import Thread

SCRATCH = TemporaryDirectory(prefix="hiermem-tests-")
EXPORT = Path(SCRATCH.name) / "export.jsonl"
_numbers = count()

with HierMem.open(":memory:", local_embedder=False) as _hiermem:
    _hiermem.tenant("other").remember("a line of an export")
    _hiermem.tenant("other").export(EXPORT)

TWINS = {
    HierMem: AsyncHierMem,
    Tenant: AsyncTenant,
    Thread: AsyncThread,
    MemoryService: AsyncMemoryService,
    Updates: AsyncUpdates,
    Patterns: AsyncPatterns,
    SessionLog: AsyncSessionLog,
}

ON_HIERMEM = {
    "tenant": lambda hiermem: hiermem.tenant("acme"),
    "health": lambda hiermem: hiermem.health(),
    "doctor": lambda hiermem: hiermem.doctor(repair=True),
    "when_idle": lambda hiermem: hiermem.when_idle(60),
    "reindex": lambda hiermem: hiermem.reindex(FakeEmbedder(32)),
    "backup": lambda hiermem: hiermem.backup(f"{SCRATCH.name}/{next(_numbers)}"),
}

ON_TENANT = {
    "thread": lambda tenant: tenant.thread("t1"),
    "threads": lambda tenant: tenant.threads(),
    "session": lambda tenant: tenant.session("s1"),
    "sessions": lambda tenant: tenant.sessions(),
    "stats": lambda tenant: tenant.stats(),
    "generation": lambda tenant: tenant.generation(),
    "remember": lambda tenant: tenant.remember("answers are numbered", namespace="notes"),
    "recall": lambda tenant: tenant.recall("which question"),
    "forget": lambda tenant: tenant.forget(namespace="notes"),
    "export": lambda tenant: tenant.export(io.BytesIO(), vectors=True),
    "audit": lambda tenant: tenant.audit(),
    "import_export": lambda tenant: tenant.import_export(EXPORT),
}

ON_MEMORY = {
    "store": lambda memory: memory.store("likes tea", id="e3", namespace="drinks"),
    "write": lambda memory: memory.write(["likes rain"], deleting=[("drinks", "hot")]),
    "retrieve": lambda memory: memory.retrieve("e1", include_embedding=True),
    "update": lambda memory: memory.update("e1", content="likes green tea"),
    "search": lambda memory: memory.search("tea", namespace="drinks"),
    "search_semantic": lambda memory: memory.search_semantic("tea", 2),
    "list_namespaces": lambda memory: memory.list_namespaces(),
    "bulk_insert": lambda memory: memory.bulk_insert([{"content": "one", "id": "b1"}, "two"]),
    "bulk_get": lambda memory: memory.bulk_get(["e1", "e2", "none"]),
    "bulk_update": lambda memory: memory.bulk_update([("e1", {"tags": ["hot"]})]),
    "bulk_delete": lambda memory: memory.bulk_delete(["e1", "none"]),
    "delete": lambda memory: memory.delete("e2"),
    "clear_namespace": lambda memory: memory.clear_namespace("drinks"),
    "purge_expired": lambda memory: memory.purge_expired(),
    "generation": lambda memory: memory.generation(),
    "wait_for_index": lambda memory: memory.wait_for_index(60),
    "health": lambda memory: memory.health(),
    "stats": lambda memory: memory.stats(),
    "forget": lambda memory: memory.forget(ids=["e1", "e2"]),
}

ON_THREAD = {
    "append": lambda thread: thread.append([{"role": "user", "content": "more", "id": "more"}]),
    "turns": lambda thread: thread.turns(),
    "count": lambda thread: thread.count(),
    "known": lambda thread: thread.known(["q1", "other"]),
    "info": lambda thread: thread.info(),
    "edit_turn": lambda thread: thread.edit_turn("q1", "edited"),
    "delete_turns": lambda thread: thread.delete_turns(["q1", "a1"]),
    "replace": lambda thread: thread.replace([{"role": "user", "content": "new", "id": "new"}]),
    "prune": lambda thread: thread.prune(max_turns=2),
    "state": lambda thread: thread.state(),
    "generation": lambda thread: thread.generation(),
    "reset": lambda thread: thread.reset(),
    "save_context": lambda thread: thread.save_context(),
    "learn": lambda thread: thread.learn(lambda state, turns: None),
    "context": lambda thread: thread.context(budget_tokens=500),
    "recall": lambda thread: thread.recall("which question"),
    "delete": lambda thread: thread.delete(),
}

ON_PATTERNS = {
    "learn": lambda patterns: patterns.learn("retry", {"then": "wait"}),
    "get": lambda patterns: patterns.get("retry"),
    "list": lambda patterns: patterns.list(min_confidence=0.1),
    "find": lambda patterns: patterns.find("wait", k=2),
    "reinforce": lambda patterns: patterns.reinforce("retry", success=True),
    "delete": lambda patterns: patterns.delete("retry"),
}

ON_SESSION = {
    "start": lambda session: session.start({"task": 1}),
    "log": lambda session: session.log("look", state={"a": 1}),
    "log_calls": lambda session: session.log_calls(TOOL_TURNS),
    "steps": lambda session: session.steps(after=1),
    "end": lambda session: session.end("failed"),
    "get": lambda session: session.get(),
    "delete": lambda session: session.delete(),
}

IMMEDIATE = {"tenant", "thread", "session"}
"""Methods that touch nothing and are not awaited on the async side either."""

OPENING_AND_CLOSING = {"open", "opened", "close"}

SEED = [
    {"role": role, "content": f"{text} {number}", "id": f"{text[0]}{number}"}
    for number in (1, 2, 3)
    for role, text in (("user", "question"), ("assistant", "answer"))
]

ENTRIES = [
    {"content": "likes coffee", "id": "e1", "namespace": "drinks", "key": "hot"},
    {"content": "likes water", "id": "e2", "namespace": "drinks"},
    {"content": "was here for an hour", "id": "gone", "ttl": 3600},
]


TOOL_TURNS = [
    TurnDraft(role="user", content="where?"),
    TurnDraft(role="assistant", tool_calls=[ToolCall("c1", "look", {"at": "map"})]),
    TurnDraft(role="tool", content="there", tool_call_id="c1", id="r1"),
]


def seed_runs(tenant):
    """Give a tenant the pattern and the session that the operations start from."""
    tenant.patterns.learn("retry", {"then": "wait"})
    tenant.session("s1").log("look")


def public_methods(kind):
    """Return the names of a class's public methods, properties left out."""
    return {name for name, value in inspect.getmembers(kind, callable) if not name.startswith("_")}
