"""What every store must hold of redaction: nothing enters but through the redactor."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

import io
import logging
import re
from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core import HierMem
from hiermem_core.errors import RedactionError, RejectedByRedactorError
from hiermem_core.models.calls import Completion
from hiermem_core.models.redaction import RedactionContext, Reject
from hiermem_core.models.turns import Origin, ToolCall, TurnDraft
from hiermem_core.testing.contracts.entries_base import MemoryContract, everything, modes_of
from hiermem_core.testing.models import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hiermem_core import Tenant
    from hiermem_core.models.events import Event
    from hiermem_core.testing.embedders import FakeEmbedder

    PlacesWith = Callable[[str], list[str]]

CARD = "4111 1111 1111 1111"
NOTES = f'{{"summary": "Paid by {CARD}.", "facts": ["The card is {CARD}."], "retract": []}}'
_CARDS = re.compile(r"\b\d{4}( ?\d{4}){3}\b")
_CALLS = (
    TurnDraft(role="user", content=f"pay with {CARD}"),
    TurnDraft(role="assistant", tool_calls=[ToolCall("c", "pay", {"card": CARD})]),
    TurnDraft(role="tool", content=f"declined {CARD}", tool_call_id="c", id="r"),
)
_DUMP = f'{{"type": "human", "data": {{"content": "{CARD}", "extra": {{"{CARD}": ["{CARD}"]}}}}}}'


def without_cards(text: str, _: RedactionContext) -> str:
    """Return a text with each card number masked; a `Redactor`."""
    return _CARDS.sub("[card]", text)


class RedactionContract(MemoryContract):
    """Every promise of redaction.

    A subclass gives the fixture `opened`.
    """

    @pytest.fixture
    def places_with(self) -> PlacesWith:
        """Give a function that names the files, or the server's tables, that hold a text."""
        raise NotImplementedError

    def test_a76_no_file_log_embedder_call_prompt_event_or_answer_holds_the_number(
        self,
        opened: Callable[..., HierMem],
        places_with: PlacesWith,
        embedder: FakeEmbedder,
        events: list[Event],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        model = ScriptedModel([Completion(NOTES)])
        caplog.set_level(logging.DEBUG)
        hiermem = opened(
            redactor=without_cards, chat_model=model, inline_updates=True, update_every_turns=2
        )
        tenant = hiermem.tenant("acme")

        shown = [str(one) for one in _everything_with_a_card(tenant)]
        exported = io.BytesIO()
        tenant.export(exported)

        prompts = [message.content for call in model.calls for message in call.messages]
        assert prompts
        assert not [text for text in prompts if CARD in text]
        assert not [text for call in embedder.calls for text in call if CARD in text]
        assert CARD not in caplog.text
        assert CARD not in str(events)
        assert not [one for one in shown if CARD in one]
        assert "[card]" in tenant.thread("t1").state().summary
        assert places_with("[card]")
        assert places_with(CARD) == []
        assert CARD.encode() not in exported.getvalue()

    def test_a76_what_is_redacted_is_found_by_what_was_stored(
        self, opened: Callable[..., HierMem]
    ) -> None:
        memory = opened(redactor=without_cards).tenant("acme").memory
        entry_id = memory.store(f"paid with {CARD}", key=f"k {CARD}", tags=[CARD], namespace="n")

        assert memory.store("paid again", key=f"k {CARD}", tags=[CARD], namespace="n") == entry_id
        assert [hit.id for hit in memory.search(key=f"k {CARD}")] == [entry_id]
        assert [hit.id for hit in memory.search(tags=[CARD])] == [entry_id]
        assert [hit.id for hit in memory.search(f"k {CARD}", mode="exact")] == [entry_id]
        assert memory.retrieve(namespace="n", key=f"k {CARD}") is not None
        assert memory.delete(namespace="n", key=f"k {CARD}")

    def test_a76_a_pattern_is_found_by_the_name_it_was_learnt_by(
        self, opened: Callable[..., HierMem]
    ) -> None:
        patterns = opened(redactor=without_cards).tenant("acme").patterns

        learnt = patterns.learn(f"pay {CARD}", {"then": CARD})

        assert (learnt.name, learnt.data) == ("pay [card]", {"then": "[card]"})
        assert patterns.get(f"pay {CARD}") == learnt
        assert patterns.reinforce(f"pay {CARD}", success=True).uses == 1
        assert patterns.delete(f"pay {CARD}")

    def test_a76_what_an_export_brings_is_redacted(
        self, opened: Callable[..., HierMem], places_with: PlacesWith, tmp_path: Path
    ) -> None:
        path = tmp_path / "export.jsonl"
        with HierMem.open(":memory:", local_embedder=False) as elsewhere:
            given = elsewhere.tenant("acme")
            given.remember(f"paid with {CARD}")
            given.patterns.learn(f"pay {CARD}", {CARD: [CARD]}, text=f"pays {CARD}")
            given.session("s1").start({CARD: CARD})
            given.session("s1").log(f"pay {CARD}", state=[CARD], next_state={CARD: CARD})
            given.export(path)

        report = opened(redactor=without_cards).tenant("acme").import_export(path)
        path.unlink()

        assert (report.imported, report.failed) == (4, 0)
        assert places_with("[card]")
        assert places_with(CARD) == []

    def test_a77_a_redactor_that_raises_lets_nothing_in(
        self,
        opened: Callable[..., HierMem],
        places_with: PlacesWith,
        embedder: FakeEmbedder,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        def fail(text: str, _: RedactionContext) -> str:
            raise ValueError(text)

        caplog.set_level(logging.DEBUG)
        hiermem = opened(redactor=fail)
        tenant, model_of = hiermem.tenant("acme"), tenant_calls
        for call in model_of(tenant):
            with pytest.raises(RedactionError) as failed:
                call()
            assert "xyzzy" not in f"{failed.value} {failed.value.__dict__}"
            assert failed.value.__cause__ is None
        bulk = tenant.memory.bulk_insert(["xyzzy one", "xyzzy two"])

        assert [type(one.error) for one in bulk.failed] == [RedactionError] * 2
        assert everything(tenant.memory) == []
        assert [*tenant.threads(), *tenant.sessions(), *tenant.patterns.list()] == []
        assert embedder.calls == []
        assert "xyzzy" not in caplog.text
        assert places_with("xyzzy") == []

    def test_a_rejected_item_fails_alone_and_nothing_of_it_is_stored(
        self, opened: Callable[..., HierMem], places_with: PlacesWith
    ) -> None:
        def reject(text: str, _: RedactionContext) -> str | Reject:
            return Reject("holds a secret") if "xyzzy" in text else text

        tenant = opened(redactor=reject).tenant("acme")

        bulk = tenant.memory.bulk_insert(["one", "xyzzy", "three"])
        for call in tenant_calls(tenant):
            with pytest.raises(RejectedByRedactorError, match="holds a secret"):
                call()

        assert [one is None for one in bulk.ids] == [False, True, False]
        assert {entry.content for entry in everything(tenant.memory)} == {"one", "three"}
        assert places_with("xyzzy") == []

    def test_a_redactor_that_returns_no_text_is_an_error(
        self, opened: Callable[..., HierMem]
    ) -> None:
        memory = opened(redactor=lambda _text, _context: None).tenant("acme").memory

        with pytest.raises(RedactionError, match="NoneType"):
            memory.store("text")

    def test_the_redactor_is_told_where_a_text_belongs(
        self, opened: Callable[..., HierMem]
    ) -> None:
        seen: set[RedactionContext] = set()

        def look(text: str, context: RedactionContext) -> str:
            seen.add(context)
            return text

        tenant = opened(redactor=look).tenant("acme")
        tenant.remember("text")
        tenant.recall("text")
        tenant.thread("t1").append([{"role": "user", "content": "text"}])
        tenant.session("s1").log("text")

        assert seen == {
            RedactionContext("acme", "entry"),
            RedactionContext("acme", "query"),
            RedactionContext("acme", "turn", "t1"),
            RedactionContext("acme", "session"),
        }

    def test_the_dump_of_a_turn_is_kept_where_nothing_in_it_is_redacted(
        self, opened: Callable[..., HierMem]
    ) -> None:
        thread = opened(redactor=without_cards).tenant("acme").thread("t1")
        clean = Origin("langchain", "human", '{"type": "human"}')

        thread.append([TurnDraft(role="user", content="hello", origin=clean)])
        thread.append(
            [TurnDraft(role="user", content="hi", origin=Origin("langchain", "human", _DUMP))]
        )

        first, second = thread.turns()
        assert first.origin == clean
        assert (second.content, second.origin) == ("hi", None)


def tenant_calls(tenant: Tenant) -> Iterator[Callable[[], Any]]:
    """Yield calls that let a text in, "xyzzy", each in another way."""
    memory, thread, session = tenant.memory, tenant.thread("t1"), tenant.session("s1")
    call = ToolCall("c", "find", {"q": ["xyzzy"]})
    dump = Origin("langchain", "human", '{"kwargs": {"xyzzy": 1}}')
    drafts = (
        TurnDraft(role="user", content="xyzzy"),
        TurnDraft(role="assistant", tool_calls=[call]),
        TurnDraft(role="user", content=None, origin=dump),
        TurnDraft(role="user", parts=[{"type": "text", "text": "xyzzy"}]),
        TurnDraft(role="user", content="", metadata={"a": {"xyzzy": 1}}),
    )
    yield lambda: memory.store("xyzzy")
    yield lambda: memory.store("text xyzzy", key="xyzzy")
    yield lambda: memory.write([{"content": "xyzzy", "metadata": {"a": ["xyzzy"]}}])
    yield lambda: memory.search("xyzzy", mode="prefix")
    yield lambda: memory.search(tags=["xyzzy"])
    yield lambda: memory.retrieve(key="xyzzy")
    yield lambda: tenant.recall("xyzzy")
    yield lambda: thread.context(current="xyzzy", budget_tokens=100)
    yield lambda: tenant.patterns.learn("xyzzy", {"a": 1})
    yield lambda: tenant.patterns.learn("name", {"a": ["xyzzy"]}, text="text")
    yield lambda: session.start({"xyzzy": 1})
    yield lambda: session.log("xyzzy")
    yield lambda: session.log("act", state={"a": ["xyzzy"]})
    yield lambda: session.log("act", next_state="xyzzy")
    for draft in drafts:
        yield lambda draft=draft: thread.append([draft])  # type: ignore[misc]  # the loop's value


def _everything_with_a_card(tenant: Tenant) -> Iterator[Any]:
    """Store, change, search and learn with a card number in every text; yield what comes back."""
    memory, thread = tenant.memory, tenant.thread("t1")
    told: dict[str, Any] = {
        "content": f"paid with {CARD}",
        "tags": [CARD, "b"],
        "metadata": {CARD: [{"a": CARD}], "b": f"x {CARD}"},
        "passages": [f"one {CARD}", "two"],
    }
    entry_id = memory.store({**told, "key": f"k {CARD}"})
    memory.bulk_insert([{**told, "content": f"{n} {CARD}"} for n in range(5)]).raise_for_errors()
    memory.update(entry_id, content=f"changed {CARD}", metadata={"c": CARD}, tags=[CARD])
    memory.bulk_update([(entry_id, {"content": f"again {CARD}"})])
    memory.write([f"written {CARD}"], deleting=[("default", f"no {CARD}")])
    call = ToolCall("c1", "pay", {"card": CARD, "deep": [{CARD: CARD}]})
    thread.append(
        [
            TurnDraft(role="user", content=CARD, origin=Origin("langchain", "human", _DUMP)),
            TurnDraft(role="assistant", tool_calls=[call]),
            TurnDraft(role="tool", content=f"declined {CARD}", tool_call_id="c1"),
            TurnDraft(role="assistant", content=f"Not {CARD}", name=CARD, metadata={"a": CARD}),
            TurnDraft(role="user", parts=[{"type": "text", "text": f"why? {CARD}"}], id="u2"),
            TurnDraft(role="assistant", tool_calls=[ToolCall("c2", "pay", f"[{CARD}]")]),
            TurnDraft(role="tool", content="no", tool_call_id="c2"),
            TurnDraft(role="assistant", content="so"),
        ]
    )
    thread.edit_turn("u2", f"edited {CARD}")
    tenant.patterns.learn(f"pay {CARD}", {CARD: [{"a": CARD}]}, text=f"pays {CARD}")
    session = tenant.session("s1")
    session.start({CARD: CARD})
    session.log(f"pay {CARD}", state={CARD: CARD}, next_state=[CARD])
    session.log_calls(_CALLS)
    session.end("completed", {"card": CARD})
    thread.save_context()
    memory.wait_for_index(60)
    for mode in modes_of(memory):
        yield list(memory.search(f"paid with {CARD}", mode=mode, explain=True))
    yield list(tenant.recall(f"which card? {CARD}"))
    yield list(thread.recall(f"which card? {CARD}"))
    context = thread.context(
        current=f"and {CARD}?", system=f"System {CARD}", budget_tokens=2000, query=CARD
    )
    yield context.messages
    yield thread.state()
    yield everything(memory)
    yield thread.turns(status=None)
    yield tenant.patterns.find(f"pay {CARD}"), tenant.patterns.list()
    yield session.get(), session.steps()


def files_with(folder: Path, text: str) -> list[str]:
    """Return the names of the files in a folder that hold a text."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if text.encode() in path.read_bytes()]
