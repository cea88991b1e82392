"""What everything that works for a tenant must hold: of another tenant nothing is ever seen."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.errors import HierMemError
from hiermem_core.importing.importer import import_memories
from hiermem_core.models.turns import ToolCall, TurnDraft
from hiermem_core.testing.clocks import FakeClock
from hiermem_core.testing.embedders import FakeEmbedder
from hiermem_core.testing.models import ScriptedModel
from hiermem_core.working.wrapping import create_working_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from hiermem_core import HierMem, Tenant
    from hiermem_core.models.events import Event
    from hiermem_core.models.notes import ThreadState as State
    from hiermem_core.models.turns import Turn

    OpenAt = Callable[..., HierMem]
    Call = Callable[[Tenant, Path], Any]

MINE, THEIRS = "test", "test1"
"""Tenants of which one's name begins with the other's."""

_FRESH = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[457][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_SAME = ("the boat sails on Monday", "tea is better than coffee", "the invoice is due in May")


class LeakContract:
    """Run everything for one tenant beside another with equal ids and texts, and without it.

    All that comes back must be the same, and all of the other must stay; the figures of scores are
    left out, as a keyword index may know words over all tenants. A subclass gives the fixture
    `open_at`, and may give `calls`: what else works for a tenant.
    """

    @pytest.fixture
    def open_at(self) -> OpenAt:
        """Give a function that opens a HierMem at a folder, with some options."""
        raise NotImplementedError

    @pytest.fixture
    def calls(self) -> Mapping[str, Call]:
        """Give what is run, in order, by name; each may use a folder."""
        return CALLS

    def test_a16_beside_another_tenant_everything_answers_as_if_it_were_alone(
        self, open_at: OpenAt, calls: Mapping[str, Call], tmp_path: Path
    ) -> None:
        alone = self._answers(open_at, calls, tmp_path / "alone", with_others=False)
        beside = self._answers(open_at, calls, tmp_path / "beside", with_others=True)

        assert list(alone) == list(beside)
        assert {
            name: (alone[name], beside[name]) for name in alone if alone[name] != beside[name]
        } == {}
        assert not [name for name, answer in beside.items() if "theirs" in answer]

    def test_a16_what_runs_for_a_tenant_changes_nothing_of_another_and_tells_nothing_of_it(
        self, open_at: OpenAt, calls: Mapping[str, Call], tmp_path: Path
    ) -> None:
        events: list[Event] = []
        hiermem = _opened(open_at, tmp_path / "memory", events)
        theirs = fill(hiermem.tenant(THEIRS), "theirs")
        fill(hiermem.tenant(MINE), "mine")
        before = _exported(theirs)
        hiermem.when_idle(60)
        events.clear()

        for call in calls.values():
            _outcome(call, hiermem.tenant(MINE), tmp_path)
        hiermem.when_idle(60)

        assert _exported(theirs) == before
        assert {event.tenant_id for event in events} == {MINE}
        assert "theirs" not in repr(events)

    def _answers(
        self, open_at: OpenAt, calls: Mapping[str, Call], folder: Path, *, with_others: bool
    ) -> dict[str, str]:
        hiermem = _opened(open_at, folder / "memory", [])
        if with_others:
            others = fill(hiermem.tenant(THEIRS), "theirs")
            for call in ("retrieve", "search", "recall", "context", "working memory"):
                _outcome(CALLS[call], others, folder)
        mine = fill(hiermem.tenant(MINE), "mine")
        answers = {name: _outcome(call, mine, folder) for name, call in calls.items()}
        hiermem.when_idle(60)
        answers["afterwards"] = _exported(mine)
        return {
            name: text.replace(mine.location, "").replace(str(folder), "")
            for name, text in answers.items()
        }


def fill(tenant: Tenant, whose: str) -> Tenant:
    """Store entries and turns whose ids, keys and texts are equal for all, and some that are not.

    Args:
        whose: Stands in what differs, and nowhere in what is equal.
    """
    memory = tenant.memory
    for number, text in enumerate(_SAME):
        place = {"namespace": "notes", "key": f"k{number}", "id": f"e{number}"}
        memory.store(text, tags=["a"], metadata={"n": number}, user_id="u", **place)
    memory.store(f"the boat is {whose}", id="own", namespace=f"own/{whose}", tags=[whose])
    memory.store(f"expired {whose}", id="gone", ttl=0.001)
    thread = tenant.thread("t1")
    thread.append(
        [
            TurnDraft(role="user", content=_SAME[0], id="q1", name="Ann"),
            TurnDraft(
                role="assistant", id="c1", tool_calls=[ToolCall("call", "find", {"q": whose})]
            ),
            TurnDraft(role="tool", content=f"it is {whose}", id="r1", tool_call_id="call"),
            TurnDraft(role="assistant", content=_SAME[1], id="a1"),
            TurnDraft(role="user", content=f"and the boat of {whose}?", id="q2"),
            TurnDraft(role="assistant", content="It sails.", id="a2"),
        ]
    )
    tenant.thread(f"only {whose[0]}").append(
        [TurnDraft(role="user", content=f"boat {whose}", id="o")]
    )
    tenant.patterns.learn("p", {"then": _SAME[1]}, user_id="u")
    tenant.patterns.learn(f"of {whose[0]}", {"then": whose})
    session = tenant.session("s1")
    session.start({"a": 1}, user_id="u")
    session.log("find", state=_SAME[0], next_state=whose, id="s1")
    tenant.session(f"of {whose[0]}").log(f"find {whose}", id="s2")
    memory.wait_for_index(60)
    return tenant


def _noted(state: State, turns: list[Turn]) -> State:
    return replace(state, summary=f"{len(turns)} turns", turn_count=turns[-1].seq)


def _imported(tenant: Tenant, folder: Path) -> Any:
    source = folder / "talk.jsonl"
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(json.dumps({"role": "user", "content": _SAME[0], "id": "q1"}) + "\n")
    report = import_memories(source, tenant)
    return report.imported, report.items, report.threads


def _through_an_export(tenant: Tenant, folder: Path) -> Any:
    path = folder / "export.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    written = tenant.export(path, replace=True)
    read = tenant.import_export(path)
    return written.entries, read.imported, read.reasons


def _asked_twice(tenant: Tenant, _: Path) -> Any:
    searcher = create_working_memory(tenant.memory)
    return [[hit.id for hit in searcher.search("boat")] for _ in range(2)], searcher.stats()


CALLS: dict[str, Call] = {
    "retrieve": lambda tenant, _: [tenant.memory.retrieve(i) for i in ("e0", "own", "gone", "no")],
    "by key": lambda tenant, _: tenant.memory.retrieve(namespace="notes", key="k1"),
    "bulk_get": lambda tenant, _: tenant.memory.bulk_get(["e0", "own", "no"]),
    "list_namespaces": lambda tenant, _: tenant.memory.list_namespaces(),
    "search": lambda tenant, _: [
        _found(tenant, "boat", mode=mode)
        for mode in (None, "exact", "prefix", "keyword", "semantic")
    ],
    "listing": lambda tenant, _: _found(tenant, None, filter={"n": {"$gte": 0}}),
    "by tag": lambda tenant, _: _found(tenant, None, tags=["theirs"]),
    "search_semantic": lambda tenant, _: [h.id for h in tenant.memory.search_semantic("boat", 3)],
    "another namespace": lambda tenant, _: tenant.memory.search(namespace="own/their").warnings,
    "patterns": lambda tenant, _: (
        tenant.patterns.list(),
        [tenant.patterns.get(name) for name in ("p", "of t")],
        [hit.pattern for hit in tenant.patterns.find("coffee", k=9)],
    ),
    "sessions": lambda tenant, _: (
        tenant.sessions(),
        [_session(tenant, name) for name in ("s1", "of t")],
    ),
    "recall": lambda tenant, _: [_texts(tenant.recall("boat")), _texts(tenant.recall("of theirs"))],
    "working memory": _asked_twice,
    "threads": lambda tenant, _: tenant.threads(),
    "stats": lambda tenant, _: (tenant.stats(), tenant.memory.stats()),
    "generation": lambda tenant, _: (tenant.generation(), tenant.memory.generation()),
    "health": lambda tenant, _: _health(tenant),
    "audit": lambda tenant, _: [one.operation for one in tenant.audit()],
    "export": _through_an_export,
    "turns": lambda tenant, _: (
        tenant.thread("t1").turns(status=None),
        tenant.thread("t1").count(),
    ),
    "a foreign thread": lambda tenant, _: tenant.thread("only t").turns(),
    "info": lambda tenant, _: tenant.thread("t1").info(),
    "known": lambda tenant, _: tenant.thread("t1").known(["q1", "o", "none"]),
    "context": lambda tenant, _: _context(tenant),
    "recall in a thread": lambda tenant, _: _texts(
        tenant.thread("t1").recall("boat", threads="all")
    ),
    "state": lambda tenant, _: tenant.thread("t1").state(),
    "store": lambda tenant, _: tenant.memory.store("the boat is new", id="e0"),
    "by the same key": lambda tenant, _: tenant.remember("other", namespace="notes", key="k1"),
    "the same text": lambda tenant, _: tenant.remember(_SAME[2], id="e9"),
    "update": lambda tenant, _: tenant.memory.update("e1", content="changed", expected_version=2),
    "a wrong version": lambda tenant, _: tenant.memory.update("e1", tags=[], expected_version=1),
    "write": lambda tenant, _: tenant.memory.write(
        [{"content": "w", "id": "w"}], deleting=[("notes", "k2")], refreshing=[("notes", "k1")]
    ),
    "bulk_insert": lambda tenant, _: (
        tenant.memory.bulk_insert([{"content": "b1", "id": "b1"}, {"content": "", "id": "b2"}]).ids
    ),
    "bulk_update": lambda tenant, _: dict(tenant.memory.bulk_update([("b1", {"tags": ["x"]})])),
    "append": lambda tenant, _: tenant.thread("t1").append(
        [{"role": "user", "content": "x", "id": "q3"}]
    ),
    "the same turn": lambda tenant, _: tenant.thread("t1").append(
        [{"role": "user", "content": "other", "id": "q3"}]
    ),
    "edit_turn": lambda tenant, _: tenant.thread("t1").edit_turn("q3", "edited"),
    "learn": lambda tenant, _: tenant.thread("t1").learn(_noted),  # type: ignore[arg-type]  # a list will do
    "save_context": lambda tenant, _: tenant.thread("t1").save_context(),
    "learn a pattern": lambda tenant, _: tenant.patterns.learn("p", {"then": "other"}),
    "reinforce": lambda tenant, _: tenant.patterns.reinforce("p", success=True),
    "a foreign pattern": lambda tenant, _: tenant.patterns.reinforce("of t", success=True),
    "start": lambda tenant, _: tenant.session("s1").start({"a": 2}),
    "log": lambda tenant, _: tenant.session("s1").log("go on", id="s3"),
    "log_calls": lambda tenant, _: tenant.session("s1").log_calls(
        tenant.thread("t1").turns(status=None)
    ),
    "the same step": lambda tenant, _: tenant.session("s1").log("other", id="s2"),
    "end": lambda tenant, _: tenant.session("s1").end("failed"),
    "a foreign session": lambda tenant, _: tenant.session("of t").end(),
    "delete a session": lambda tenant, _: [
        tenant.session(name).delete() for name in ("of m", "of t")
    ],
    "delete a pattern": lambda tenant, _: [
        tenant.patterns.delete(name) for name in ("of m", "of t")
    ],
    "import": _imported,
    "delete_turns": lambda tenant, _: tenant.thread("t1").delete_turns(["q2", "o"]),
    "prune": lambda tenant, _: tenant.thread("t1").prune(max_turns=2, dry_run=True),
    "reset": lambda tenant, _: tenant.thread("t1").reset(),
    "replace": lambda tenant, _: tenant.thread("t1").replace(
        [{"role": "user", "content": "n", "id": "n"}]
    ),
    "delete": lambda tenant, _: [tenant.memory.delete(i) for i in ("e1", "own", "none")],
    "bulk_delete": lambda tenant, _: dict(tenant.memory.bulk_delete(["w", "none"])),
    "purge_expired": lambda tenant, _: tenant.memory.purge_expired(),
    "clear_namespace": lambda tenant, _: tenant.memory.clear_namespace("notes"),
    "wait_for_index": lambda tenant, _: tenant.memory.wait_for_index(60),
    "delete a thread": lambda tenant, _: (
        tenant.thread("t1").delete(),
        tenant.thread("t1").delete(),
    ),
    "forget a thread": lambda tenant, _: tenant.forget(thread_id="only m").counts,
    "forget a user": lambda tenant, _: tenant.forget(user_id="u").counts,
    "forget everything": lambda tenant, _: tenant.forget(everything=True).counts,
    "what is left": lambda tenant, _: (tenant.threads(), tenant.memory.list_namespaces()),
}
"""Every public operation of a tenant's handles, by what it shows."""


def _found(tenant: Tenant, text: str | None, **query: Any) -> Any:
    try:
        return [(hit.id, hit.content) for hit in tenant.memory.search(text, **query)]
    except HierMemError as error:
        return str(error)


def _session(tenant: Tenant, name: str) -> Any:
    session = tenant.session(name)
    return session.get(), session.steps()


def _texts(hits: Any) -> list[Any]:
    return [hit.content for hit in hits]


def _health(tenant: Tenant) -> Any:
    health = tenant.memory.health()
    return health.status, health.index_lag, health.queue_depth, health.dead_jobs


def _context(tenant: Tenant) -> Any:
    context = tenant.thread("t1").context(
        current="Where is the boat?", budget_tokens=600, recall_threads="all"
    )
    return context.messages, context.warnings, context.receipt


def _opened(open_at: OpenAt, folder: Path, events: list[Event]) -> HierMem:
    model = ScriptedModel(['{"summary": "They spoke.", "facts": ["A fact."], "retract": []}'])
    return open_at(
        folder,
        clock=FakeClock(),
        embedder=FakeEmbedder(32),
        chat_model=model,
        update_every_turns=2,
        inline_updates=True,
        observer=events.append,
        audit=True,
    )


def _outcome(call: Call, tenant: Tenant, folder: Path) -> str:
    """Return what a call returns or raises, without what is new in every run."""
    try:
        answer = repr(call(tenant, folder))
    except HierMemError as error:
        answer = f"{type(error).__name__}: {error}"
    return _FRESH.sub("fresh", answer)


def _exported(tenant: Tenant) -> str:
    """Return what a tenant has, in an order that does not follow from ids."""
    file = io.BytesIO()
    tenant.export(file)
    lines = [json.loads(line) for line in file.getvalue().splitlines()[1:-1]]
    plain = [json.dumps({name: v for name, v in line.items() if name != "sum"}) for line in lines]
    return "\n".join(sorted(_FRESH.sub("fresh", line) for line in plain))
