"""What every store of entries must hold of text, of time, and of input it cannot take."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.errors import (
    DimensionMismatchError,
    HierMemError,
    InvalidFilterError,
    InvalidInputError,
)
from hiermem_core.models.events import TextSanitised
from hiermem_core.models.warnings import warning_of
from hiermem_core.testing.contracts.entries_base import (
    DIMENSIONS,
    MemoryContract,
    everything,
    found,
    ids_of,
    modes_of,
    read,
    settle,
    unit,
    unlike,
)

if TYPE_CHECKING:
    from hiermem_core.models.events import Event
    from hiermem_core.service.memory_service import MemoryService
    from hiermem_core.testing.clocks import FakeClock

CONTENTS = {
    "hi \ud83d": "hi \ufffd",
    "a\x00b": "a\ufffdb",
    "\u202eabc\u2066 x\u2069": "\u202eabc\u2066 x\u2069",
    "four bytes 👩‍👩‍👧 \U0010ffff": "four bytes 👩‍👩‍👧 \U0010ffff",
    "e\u0301 is not \u00e9": "e\u0301 is not \u00e9",
    "\ufeff\u200b tab\t line\r\n": "\ufeff\u200b tab\t line\r\n",
}
"""Texts, and how each is stored."""

UNSTORABLE = ("a\x00b", "hi \ud83d", "\udc00")

UNFIT: tuple[dict[str, Any], ...] = (
    *({"content": content} for content in ("", " \n\t\u2003", None, 7, b"x")),
    *({"embedding": e} for e in ([1.0] * (DIMENSIONS + 1), [], [0.0] * DIMENSIONS, "abc")),
    *({"embedding": [x] + [1.0] * (DIMENSIONS - 1)} for x in (float("nan"), 1e39, None)),
    *({"trust": trust} for trust in (-0.1, 1.1, float("nan"), "high", True)),
    *({"tags": tags} for tags in ("abc", [1], [""], None, 5)),
    *({"key": key} for key in ("", 5)),
    *({"derived_from": ids} for ids in ("abc", [""], [1], None)),
    {"unknown": 1},
)
"""Fields that no entry can have."""

NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - a naive moment is what is refused


class TextContract(MemoryContract):
    """Every promise of text, time and input that cannot be taken."""

    @pytest.mark.parametrize("given", CONTENTS)
    def test_a73_content_keeps_every_code_point_that_can_be_stored(
        self, memory: MemoryService, events: list[Event], given: str
    ) -> None:
        stored = CONTENTS[given]
        by_store = memory.store(given, id="a", metadata={given: [given]})
        by_update = memory.store("other", id="b")
        memory.update(by_update, content=given)
        (by_bulk,) = memory.bulk_insert([{"content": given, "id": "c"}]).ids

        assert [read(memory, str(one)).content for one in (by_store, by_update, by_bulk)] == [
            *[stored] * 3
        ]
        assert read(memory, by_store).metadata == {stored: [stored]}
        replaced = [event.replaced for event in events if isinstance(event, TextSanitised)]
        assert replaced == ([3, 1, 1] if given != stored else [])
        stored.encode()

    @pytest.mark.parametrize("text", UNSTORABLE)
    def test_a73_a_name_that_cannot_be_stored_is_refused(
        self, memory: MemoryService, events: list[Event], text: str
    ) -> None:
        memory.store("one", id="one", key="k")
        before, told = everything(memory), len(events)

        for attempt in (
            lambda: memory.store("x", key=text),
            lambda: memory.store("x", tags=["fine", text]),
            lambda: memory.store("x", id=text),
            lambda: memory.store("x", user_id=text),
            lambda: memory.store("x", namespace=text),
            lambda: memory.store("x", derived_from=[text]),
            lambda: memory.update("one", key=text),
            lambda: memory.update("one", tags=[text]),
            lambda: memory.retrieve(text),
            lambda: memory.retrieve(namespace="default", key=text),
            lambda: memory.delete(namespace="default", key=text),
            lambda: memory.delete(text),
            lambda: memory.search(key=text),
            lambda: memory.search(tags=[text]),
            lambda: memory.search(user_id=text),
            lambda: memory.search(text, mode="exact"),
            lambda: memory.search(text, mode="prefix"),
            lambda: memory.search(text, mode="tag"),
            lambda: memory.search(filter={"f": text}),
            lambda: memory.search(filter={text: 1}),
        ):
            with pytest.raises(InvalidInputError) as refused:
                attempt()
            str(refused.value).encode()

        assert len(events) == told
        assert everything(memory) == before

    @pytest.mark.parametrize("text", UNSTORABLE)
    def test_a_question_that_cannot_be_stored_is_asked_without_what_cannot(
        self, memory: MemoryService, text: str
    ) -> None:
        entry_id = memory.store("alpha harbour")

        for mode in set(modes_of(memory)) & {"keyword", "semantic", "hybrid"}:
            assert ids_of(memory.search(f"harbour {text}", mode=mode)) == [entry_id]

    def test_a74_a_naive_datetime_is_refused(self, memory: MemoryService) -> None:
        memory.store("one")
        before = everything(memory)

        with pytest.raises(InvalidInputError) as refused:
            memory.store("two", created_at=NAIVE)
        assert refused.value.name == "created_at"
        for name in ("created_after", "created_before", "updated_after", "updated_before"):
            with pytest.raises(InvalidInputError) as refused:
                memory.search(**{name: NAIVE})
            assert refused.value.name == name

        assert memory.bulk_insert([{"content": "two", "created_at": NAIVE}]).ids == (None,)
        assert everything(memory) == before

    def test_a74_every_datetime_returned_is_in_utc(self, memory: MemoryService) -> None:
        east = timezone(timedelta(hours=5, minutes=30))
        created = datetime(2026, 5, 1, 12, 0, 0, 123_456, tzinfo=east)

        memory.store("one", id="one", created_at=created, ttl=60)
        updated = memory.update("one", user_id="u")

        assert updated is not None
        for entry in (read(memory, "one"), updated, *memory.search()):
            for moment in (entry.created_at, entry.updated_at, entry.expires_at):
                assert moment is not None
                assert moment.tzinfo is UTC
            assert entry.created_at == created.replace(microsecond=123_000)

    def test_times_are_kept_to_the_millisecond(
        self, memory: MemoryService, clock: FakeClock
    ) -> None:
        clock.advance(0.0009994)
        memory.store("one", id="one", ttl=1.0004)
        clock.advance(5.0000009)
        memory.store("two", id="two")
        updated = memory.update("two", user_id="u")

        assert updated == read(memory, "two")
        for entry in everything(memory):
            for moment in (entry.created_at, entry.updated_at):
                assert moment.microsecond % 1000 == 0

    def test_restrictions_of_time_hold_the_first_moment_and_not_the_last(
        self, memory: MemoryService, clock: FakeClock
    ) -> None:
        moments = []
        for name in "abc":
            memory.store(name, id=name)
            moments.append(clock.now())
            clock.advance(1)
        memory.update("a", user_id="u")

        assert found(memory, created_after=moments[1]) == {"b", "c"}
        assert found(memory, created_before=moments[1]) == {"a"}
        assert found(memory, created_after=moments[1], created_before=moments[2]) == {"b"}
        assert found(memory, updated_after=clock.now()) == {"a"}
        assert found(memory, updated_before=clock.now()) == {"b", "c"}
        west = moments[1].astimezone(timezone(timedelta(hours=-8)))
        assert found(memory, created_after=west) == {"b", "c"}

    def test_input_that_cannot_be_stored_is_refused_and_nothing_is_lost(
        self, memory: MemoryService
    ) -> None:
        memory.store("one", id="one", key="k", tags=["t"])
        before = everything(memory)

        for fields in UNFIT:
            given = {"content": "two", **fields}
            is_long = len(fields.get("embedding") or ()) > DIMENSIONS
            for attempt in (
                lambda given=given: memory.store(given),
                lambda fields=fields: memory.update("one", fields),
                lambda given=given: memory.bulk_insert([given]).raise_for_errors(),
            ):
                with pytest.raises(InvalidInputError) as refused:
                    attempt()
                assert isinstance(refused.value, DimensionMismatchError) == is_long
            (failure,) = memory.bulk_update([("one", fields)]).failed  # type: ignore[list-item]  # wrong on purpose
            assert failure.index == 0

        assert everything(memory) == before

    def test_a_question_of_another_length_is_refused(self, memory: MemoryService) -> None:
        memory.store("one")

        with pytest.raises(HierMemError):
            memory.search(vector=[1.0] * (DIMENSIONS + 1))

    def test_an_unknown_operator_or_field_of_a_query_is_refused(
        self, memory: MemoryService
    ) -> None:
        memory.store("one")

        with pytest.raises(InvalidFilterError):
            memory.search(filter={"f": {"$near": 1}})
        with pytest.raises(InvalidInputError):
            memory.search(metadata={"f": 1})
        with pytest.raises(InvalidInputError):
            memory.search(mode="fuzzy")
        with pytest.raises(InvalidInputError):
            memory.search(type="fact")

    def test_a_million_characters_are_stored_whole(self, memory: MemoryService) -> None:
        content = "wort" * 250_000
        memory.store("short", id="short")

        memory.store(content, id="long", tags=["long"])

        assert read(memory, "long").content == content
        assert found(memory, tags=["long"]) == {"long"}
        assert memory.stats().index.shortened == 1
        assert memory.update("long", content="short again") is not None
        settle(memory)
        assert memory.stats().index.shortened == 0

    def test_a_given_vector_comes_back(self, memory: MemoryService) -> None:
        vector = unit(0.5)
        memory.store("one", id="one", embedding=vector)

        entry = memory.retrieve("one", include_embedding=True)

        assert entry is not None
        assert entry.embedding == pytest.approx(vector, abs=1e-6)
        assert read(memory, "one") == unlike(entry, embedding=None)
        assert warning_of(memory.search("one").warnings, "semantic_unavailable") is None
