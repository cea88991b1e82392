"""What every store must hold of where entries come from, and how far they are trusted."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.models.turns import TurnDraft
from hiermem_core.testing.contracts.entries_base import (
    MemoryContract,
    found,
    modes_of,
    read,
    settle,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import HierMem
    from hiermem_core.service.memory_service import MemoryService


class ProvenanceContract(MemoryContract):
    """Every promise of sources and trust.

    A subclass gives the fixture `opened`.
    """

    def test_a75_an_entry_is_trusted_no_further_than_what_it_was_derived_from(
        self, memory: MemoryService
    ) -> None:
        result = memory.store("the tool says so", source="tool")
        claim = memory.store("so it is", trust=0.9, derived_from=[result])
        system = memory.store("a rule", source="system")

        deep = memory.store("and thus", source="system", derived_from=[claim, system])

        assert [read(memory, one).trust for one in (result, claim, deep)] == [0.3, 0.3, 0.3]
        assert found(memory, min_trust=0.5) == {system}
        assert found(memory, source="tool") == {result}
        assert claim not in {hit.id for hit in memory.search("so it is", min_trust=0.31)}

    def test_a75_a_turn_of_a_tool_is_a_source_like_an_entry(self, hiermem: HierMem) -> None:
        tenant = hiermem.tenant("acme")
        turns = tenant.thread("t1").append(
            [
                TurnDraft(role="user", content="Is it so?"),
                TurnDraft(role="tool", content="It is so.", tool_call_id="c"),
            ]
        )

        asked, told = (
            tenant.remember(f"from {turn.role}", trust=0.9, derived_from=[str(turn.id)])
            for turn in turns
        )

        assert read(tenant.memory, asked).trust == 0.8
        assert read(tenant.memory, told).trust == 0.3

    def test_a75_holds_in_a_bulk_insert_in_order_and_for_updates(
        self, memory: MemoryService
    ) -> None:
        ids = memory.bulk_insert(
            [
                {"content": "tool", "id": "a", "source": "tool"},
                {"content": "derived", "id": "b", "trust": 1.0, "derived_from": ["a"]},
                {"content": "free", "id": "c", "trust": 1.0},
            ]
        ).ids
        assert ids == ("a", "b", "c")

        memory.update("b", trust=0.7)
        memory.update("c", derived_from=["a", "nobody"])

        assert read(memory, "b").trust == 0.3
        assert read(memory, "c").trust == 0.3

    def test_a_source_of_another_tenant_is_as_one_that_does_not_exist(
        self, hiermem: HierMem
    ) -> None:
        hiermem.tenant("other").remember("theirs", id="a", source="tool")
        memory = hiermem.tenant("acme").memory

        entry_id = memory.store("mine", derived_from=["a"])

        assert read(memory, entry_id).trust == 0.8

    @pytest.mark.parametrize("way", ["delete", "key", "bulk_delete", "clear", "write"])
    def test_what_was_derived_only_from_a_deleted_entry_goes_with_it(
        self, opened: Callable[..., HierMem], way: str
    ) -> None:
        memory = opened().tenant("acme").memory
        memory.store("source", id="s", key="k", namespace="n")
        other = memory.store("another source")
        only = memory.store("only", derived_from=["s"])
        deep = memory.store("deep", derived_from=[only])
        both = memory.store("both", derived_from=["s", other])
        ways: dict[str, Callable[[], Any]] = {
            "delete": lambda: memory.delete("s"),
            "key": lambda: memory.delete(namespace="n", key="k"),
            "bulk_delete": lambda: memory.bulk_delete(["s", "nobody"]),
            "clear": lambda: memory.clear_namespace("n"),
            "write": lambda: memory.write(deleting=[("n", "k")]),
        }

        ways[way]()

        assert memory.bulk_get(["s", only, deep]) == {"s": None, only: None, deep: None}
        assert read(memory, both).derived_from == (other,)
        assert found(memory) == {other, both}

    @pytest.mark.parametrize("way", ["delete", "forget"])
    def test_what_lost_a_source_is_stale_and_not_recalled_until_it_is_written_anew(
        self, opened: Callable[..., HierMem], way: str
    ) -> None:
        tenant = opened().tenant("acme")
        memory = tenant.memory
        lost, other = memory.store("the boat is red", id="s"), memory.store("the tide is high")
        both = memory.store("zebra sails", derived_from=[lost, other], key="k")
        near = [memory.store(f"zebra number {number}") for number in range(3)]
        settle(memory)

        if way == "delete":
            memory.delete(lost)
        else:
            tenant.forget(ids=[lost])

        modes = [mode for mode in modes_of(memory) if mode in {"keyword", "semantic", "hybrid"}]
        for mode in modes:
            hits = memory.search("zebra sails", mode=mode, limit=3)
            assert sorted(hit.id for hit in hits[:3] if hit.id in near) == sorted(near)
        assert both not in {hit.id for hit in tenant.recall("zebra sails")}
        assert both in found(memory)
        assert read(memory, both).derived_from == (other,)
        memory.update(both, content="zebra sails again")
        settle(memory)
        for mode in modes:
            assert both in {hit.id for hit in memory.search("zebra sails again", mode=mode)}
        assert tenant.recall("zebra sails again")[0].id == both
