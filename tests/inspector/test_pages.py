"""What each page shows, and what it must not."""

from __future__ import annotations

import pytest
from inspector_door import IMAGE, OWN, SCRIPT

from hiermem_core import NotFoundError
from hiermem_core.inspector.reading import PAGE, most_tokens, page_of


async def page(client, name, **query):
    answer = await client.get(name, params={"tenant": "alice", **query})
    assert answer.status_code == 200, answer.text
    assert SCRIPT not in answer.text
    assert IMAGE not in answer.text
    return answer.text


async def test_the_start_lists_the_tenants_that_may_be_opened(client):
    text = (await client.get("")).text

    assert "alice" in text
    assert "carol" in text
    assert "bob" not in text


@pytest.mark.parametrize("name", ["tenant", "entries", "search", "thread", "context", "forget"])
@pytest.mark.parametrize("tenant", ["bob", "", "alice ", "nobody"])
async def test_a_tenant_that_may_not_be_opened_is_not_there(client, name, tenant):
    query = {"tenant": tenant, "thread": "trip", "q": "secret"}

    answer = await client.get(name, params=query)

    assert answer.status_code == 404
    assert "secret of bob" not in answer.text


async def test_a_tenant_shows_its_threads_and_figures(client):
    text = await page(client, "tenant")

    assert "trip" in text
    assert "82 turns" in text
    assert "&lt;script&gt;" in text


async def test_a_tenant_with_nothing_is_an_empty_page(client):
    assert "There is no thread yet" in await page(client, "tenant", tenant="carol")
    assert "Nothing is remembered here yet" in await page(client, "entries", tenant="carol")
    assert "nothing was found" in await page(client, "search", tenant="carol", q="anything")


async def test_a_thread_shows_what_is_remembered_and_its_turns(client):
    text = await page(client, "thread", thread="trip")

    assert "Prices are in SEK" in text
    assert "Answer 39: it rains again." in text
    assert "Question 5 about" not in text.split('id="turns"')[1]


async def test_older_turns_come_page_by_page(client):
    seen = await page(client, "turns", thread="trip", before=30)

    assert "#29" in seen
    assert "#30" not in seen
    assert f"#{30 - PAGE}" in seen
    assert "Older turns" in seen
    assert "Older turns" not in await page(client, "turns", thread="trip", before=5)


async def test_a_context_keeps_to_the_budget_of_the_slider(client):
    text = await page(client, "context", thread="trip", budget=400, question="Who is allergic?")

    assert "of 400 tokens" in text
    assert "turns_trimmed" in text
    assert "recall" in text


async def test_the_timeline_marks_what_is_recalled_and_what_is_left_out(client):
    query = {"thread": "trip", "budget": 400, "question": "What is Tobias allergic to?"}

    text = await page(client, "timeline", **query)

    assert "hm-recalled" in text
    assert "hm-trimmed" in text


async def test_entries_are_paged_and_kept_apart_by_namespace(client):
    first = await page(client, "entries")
    second = await page(client, "entries", offset=PAGE)

    assert first.count("Forget this memory") == PAGE
    assert second.count("Forget this memory") == 32 - PAGE
    assert (await page(client, "entries", namespace="profile")).count("Forget this memory") == 1


async def test_a_search_explains_each_hit(client):
    text = await page(client, "search", q="What is Tobias allergic to?")

    assert "why it was found" in text
    assert "bm25" in text


async def test_asking_to_forget_forgets_nothing(client, memory):
    text = await page(client, "forget", thread="trip")

    assert "would be forgotten" in text
    assert memory.tenant("alice").thread("trip").info().turns == 82


async def test_a_conversation_is_forgotten_with_its_notes_and_the_receipt_shown(client, memory):
    query = {"tenant": "alice", "thread": "trip"}

    answer = await client.post("forget", params=query, headers=OWN)

    assert answer.status_code == 200
    assert "complete: nothing of it is left" in answer.text
    with pytest.raises(NotFoundError):
        memory.tenant("alice").thread("trip").info()


async def test_a_memory_is_forgotten_by_its_id_alone(client, memory):
    alice = memory.tenant("alice")
    entry = alice.memory.retrieve(namespace="profile", key="meetings")

    answer = await client.post("forget", params={"tenant": "alice", "entry": entry.id}, headers=OWN)

    assert "complete" in answer.text
    assert alice.memory.retrieve(entry.id) is None
    assert alice.memory.stats().entries == 31


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"thread": "trip", "entry": "x"}, 400),
        ({}, 400),
        ({"thread": "nowhere"}, 404),
        ({"entry": "nothing"}, 404),
        ({"tenant": "bob", "entry": "x"}, 404),
    ],
)
async def test_what_cannot_be_forgotten_is_said(client, query, status):
    answer = await client.post("forget", params={"tenant": "alice"} | query, headers=OWN)

    assert answer.status_code == status


async def test_a_form_from_elsewhere_forgets_nothing(client, memory):
    query = {"tenant": "alice", "thread": "trip"}

    answer = await client.post("forget", params=query, headers={"origin": "https://evil.example"})

    assert answer.status_code == 403
    assert memory.tenant("alice").thread("trip").info().turns == 82


@pytest.mark.parametrize(
    "query",
    [
        {"budget": "many"},
        {"budget": "-1"},
        {"budget": "9" * 5000},
        {"budget": "٣"},
        {"budget": "1e3"},
        {"thread": ""},
        {"thread": "x" * 50_000},
        {"question": "\x00\ud800".encode("utf-8", "surrogatepass")},
        {"question": "昨日は雨でした " * 500},
    ],
)
async def test_bad_input_is_answered_and_breaks_nothing(client, query):
    answer = await client.get("context", params={"tenant": "alice", "thread": "trip"} | query)

    assert answer.status_code in {200, 400, 404}
    assert "Traceback" not in answer.text


async def test_what_is_not_there_is_not_found(client):
    assert (await client.get("no-such-page")).status_code == 404
    assert (await client.get("static/../pages.py")).status_code == 404
    assert (await client.get("static/%2e%2e/pages.py")).status_code == 404
    assert (await client.post("tenant", headers=OWN)).status_code == 405


async def test_the_vendored_script_is_served_and_has_its_licence(client):
    script = await client.get("static/htmx.min.js")
    licence = await client.get("static/htmx.LICENSE.txt")

    assert script.headers["content-type"].startswith("text/javascript")
    assert licence.text.startswith("Zero-Clause BSD")


def test_a_page_knows_its_neighbours():
    assert page_of(list(range(PAGE)), 0).older is None
    assert page_of(list(range(PAGE + 1)), 0).older == PAGE
    assert page_of([], PAGE).newer == 0


def test_the_slider_reaches_the_whole_of_a_long_thread(memory):
    info = memory.tenant("alice").thread("trip").info()

    assert most_tokens(info) == 16_000
    assert most_tokens(type(info)("t", 1, 1, {"c": 80_000}, None, None)) == 100_000
