"""What recall must hold, over entries and turns, with and without an embedder."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.errors import InvalidInputError, NotFoundError
from hiermem_core.models.queries import Hit, TurnHit
from hiermem_core.models.turns import TurnDraft
from hiermem_core.testing.clocks import FakeClock
from hiermem_core.testing.contracts.samples import asked_and_answered

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hiermem_core import HierMem, Tenant, Thread

FACT = "My sister Ebba keeps llamas in Norrland"


class RecallContract:
    """Every promise of `recall`.

    A subclass gives the fixture `hiermem`, opened with the fixture `clock`.
    """

    @pytest.fixture
    def clock(self) -> FakeClock:
        """Give the clock that `hiermem` must be opened with."""
        return FakeClock()

    @pytest.fixture
    def hiermem(self, clock: FakeClock) -> Any:
        """Give an empty HierMem."""
        raise NotImplementedError

    @pytest.fixture
    def tenant(self, hiermem: HierMem) -> Tenant:
        """Give the handle of a tenant with nothing in it."""
        return hiermem.tenant("acme")

    @pytest.fixture
    def thread(self, tenant: Tenant) -> Thread:
        """Give a thread with one fact early in a long talk about other things."""
        thread = tenant.thread("talk")
        thread.append([TurnDraft(role="user", content=FACT, id="fact")])
        thread.append(asked_and_answered(f"weather of day {number}" for number in range(60)))
        return thread

    def test_a_turn_is_recalled_by_what_it_says(self, thread: Thread) -> None:
        hit = thread.recall("Who keeps llamas?")[0]

        assert isinstance(hit, TurnHit)
        assert (hit.id, hit.seq, hit.role, hit.content) == ("fact", 1, "user", FACT)
        assert hit.thread_id == "talk"
        assert 0 < hit.score <= 1

    def test_entries_and_turns_stand_in_one_ranking(self, tenant: Tenant, thread: Thread) -> None:
        entry_id = tenant.remember("Llamas eat hay, says the vet")

        hits = thread.recall("What do the llamas eat, and who keeps llamas?")

        assert {entry_id, "fact"} <= {hit.id for hit in hits[:4]}
        assert {type(hit) for hit in hits[:4]} == {Hit, TurnHit}
        assert [hit.score for hit in hits] == sorted((h.score for h in hits), reverse=True)

    def test_threads_restrict_whose_turns_are_recalled(
        self, tenant: Tenant, thread: Thread
    ) -> None:
        tenant.thread("other").append([TurnDraft(role="user", content="llamas spit", id="spit")])

        assert ids(tenant.thread("other").recall("llamas")) == ["spit"]
        assert "spit" not in ids(thread.recall("llamas"))
        assert {"spit", "fact"} <= set(ids(thread.recall("llamas", threads="all")))
        assert {"spit", "fact"} <= set(ids(tenant.recall("llamas")))
        assert ids(tenant.recall("llamas", threads=None)) == []

    def test_restrictions_are_on_entries(self, tenant: Tenant) -> None:
        inside = tenant.remember("llamas live long", namespace="zoo/llamas")
        tenant.remember("llamas cost money", namespace="bank")

        assert ids(tenant.recall("llamas", namespace="zoo")) == [inside]
        with pytest.raises(InvalidInputError):
            tenant.recall("llamas", colour="red")

    def test_a19_a_mistyped_namespace_is_warned_of_with_the_right_one(self, tenant: Tenant) -> None:
        tenant.remember("llamas live long", namespace="zoo/llamas")

        told = tenant.recall("llamas", namespace="zoo/lamas").warnings
        right = tenant.recall("llamas", namespace="zoo/llamas").warnings

        assert [(one.code, one.detail["close"]) for one in told] == [
            ("unknown_namespace", ["zoo/llamas"])
        ]
        assert right == ()

    def test_a16_nothing_of_another_tenant_is_recalled(
        self, hiermem: HierMem, thread: Thread
    ) -> None:
        other = hiermem.tenant("acme2")
        other.remember("llamas of a stranger")
        other.thread("talk").append([TurnDraft(role="user", content="llamas too", id="stranger")])

        assert "stranger" not in ids(thread.recall("llamas", threads="all", limit=100))
        assert all("stranger" not in hit.content for hit in thread.recall("llamas", limit=100))
        assert set(ids(other.recall("llamas", limit=100))) & {"fact"} == set()

    def test_an_edited_turn_is_recalled_by_its_new_content_only(self, thread: Thread) -> None:
        thread.edit_turn("fact", "My sister Ebba keeps ostriches in Norrland")

        assert ids(thread.recall("ostriches"))[0] == "fact"
        assert all("llamas" not in hit.content for hit in thread.recall("llamas"))

    def test_a_deleted_replaced_or_removed_turn_is_not_recalled(
        self, tenant: Tenant, thread: Thread
    ) -> None:
        second = tenant.thread("second")
        second.append([TurnDraft(role="user", content="llamas again", id="again")])
        third = tenant.thread("third")
        third.append([TurnDraft(role="user", content="llamas thrice", id="thrice")])

        thread.delete_turns(["fact"])
        second.replace([{"role": "user", "content": "something else"}])
        third.delete()

        gone = {"fact", "again", "thrice"}
        assert gone.isdisjoint(ids(tenant.recall("llamas", limit=200)))

    def test_a42_an_expired_entry_is_not_recalled(self, tenant: Tenant, clock: FakeClock) -> None:
        entry_id = tenant.remember("llamas are here for a minute", ttl=60)

        before = ids(tenant.recall("llamas"))
        clock.advance(60)

        assert before == [entry_id]
        assert ids(tenant.recall("llamas")) == []

    def test_system_and_tool_turns_are_not_recalled(self, tenant: Tenant) -> None:
        thread = tenant.thread("tools")
        thread.append(
            [
                {"role": "system", "content": "llamas are your subject"},
                {"role": "user", "content": "go on"},
                {"role": "assistant", "tool_calls": [{"id": "c", "name": "llamas", "args": {}}]},
                {"role": "tool", "tool_call_id": "c", "content": "llamas found: 3"},
            ]
        )

        assert {hit.content for hit in thread.recall("llamas")} <= {"go on"}

    def test_blank_questions_and_no_limit_find_nothing(self, thread: Thread) -> None:
        assert list(thread.recall("  \n")) == []
        assert list(thread.recall("llamas", limit=0)) == []
        with pytest.raises(InvalidInputError):
            thread.recall("llamas", limit=-1)

    @pytest.mark.parametrize(
        "question", ['"', "*", "AND", "-x", "NEAR(", "col:x", "scope:t1", "💥"]
    )
    def test_a37_no_character_of_a_question_is_an_operator(
        self, thread: Thread, question: str
    ) -> None:
        thread.recall(question)

        assert "fact" in ids(thread.recall(f"{question} llamas"))

    def test_other_languages_are_recalled(self, tenant: Tenant) -> None:
        thread = tenant.thread("languages")
        said = {
            "ja": "私はPythonでADKを使っています",
            "zh": "你好世界",
            "ru": "Моя сестра разводит лам",
            "ar": "أختي تربي الجمال في الشمال",
            "ko": "저는 파이썬을 좋아합니다",
        }
        thread.append([TurnDraft(role="user", content=c, id=i) for i, c in said.items()])

        for question, expected in [
            ("世界", "zh"),
            ("Python", "ja"),
            ("разводит", "ru"),
            ("الجمال", "ar"),
            ("파이썬", "ko"),
        ]:
            assert ids(thread.recall(question))[0] == expected

    def test_turns_share_a_part_until_a_long_pause(self, tenant: Tenant, clock: FakeClock) -> None:
        thread = tenant.thread("pauses")
        for text in ("llamas one", "llamas two"):
            thread.append([{"role": "user", "content": text}])
            clock.advance(timedelta(hours=1).total_seconds())
        clock.advance(timedelta(hours=5).total_seconds())
        thread.append([{"role": "user", "content": "llamas three"}])

        hits = thread.recall("llamas")
        parts = {hit.content: hit.part for hit in hits if isinstance(hit, TurnHit)}

        assert parts["llamas one"] == parts["llamas two"] != parts["llamas three"]

    def test_who_is_asked_about_is_preferred(self, tenant: Tenant) -> None:
        thread = tenant.thread("names")
        lines = [("Ann", "I feed the llamas at six"), ("Bo", "I feed the llamas at nine")] * 2
        thread.append(
            [
                TurnDraft(role="user", name=name, content=f"{text}, day {n}", id=f"{name}{n}")
                for n, (name, text) in enumerate(lines)
            ]
        )

        first = ids(thread.recall("When does Bo feed the llamas?"))[:2]

        assert set(first) == {"Bo1", "Bo3"}

    def test_an_explanation_says_how_a_hit_came_by_its_score(self, thread: Thread) -> None:
        explained = thread.recall("Who keeps llamas?", explain=True)[0].explanation
        plain = thread.recall("Who keeps llamas?")[0].explanation

        assert {"keyword", "bm25", "plan"} <= set(explained)
        assert plain == {}

    def test_recall_writes_nothing_of_its_own(self, tenant: Tenant, thread: Thread) -> None:
        tenant.memory.wait_for_index()
        generation, info = tenant.memory.generation(), thread.info()

        thread.recall("llamas")

        assert (tenant.memory.generation(), thread.info()) == (generation, info)

    def test_a_million_characters_are_searched_by_their_words(self, tenant: Tenant) -> None:
        thread = tenant.thread("long")
        thread.append([TurnDraft(role="user", content="llama " + "x" * 1_000_000, id="long")])

        assert ids(thread.recall("llama")) == ["long"]

    def test_an_unknown_thread_recalls_entries_only(self, tenant: Tenant) -> None:
        entry_id = tenant.remember("llamas hum")

        assert ids(tenant.thread("nowhere").recall("llamas")) == [entry_id]
        with pytest.raises(NotFoundError):
            tenant.thread("nowhere").turns()


def ids(hits: Iterable[Hit | TurnHit]) -> list[str]:
    """Return the ids of hits, in order."""
    return [hit.id for hit in hits]
