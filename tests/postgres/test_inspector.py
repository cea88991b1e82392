"""The inspector of a location on PostgreSQL."""

from __future__ import annotations

import httpx
import pytest
from inspector_door import DOOR, HOME, OWN

from hiermem_core import HierMem
from hiermem_core.inspector.pages import create_app


@pytest.fixture
def memory(location):
    with HierMem.open(location) as memory:
        alice = memory.tenant("alice")
        alice.thread("trip").append([{"role": "user", "content": "Where is the harbour?"}])
        alice.thread("trip").append([{"role": "assistant", "content": "By the ferry."}])
        alice.remember("The ferry leaves at nine", namespace="notes", key="ferry")
        yield memory


@pytest.fixture
async def client(memory):
    transport = httpx.ASGITransport(create_app(memory, tenants=["alice"], door=DOOR))
    async with httpx.AsyncClient(transport=transport, base_url=HOME + "/") as client:
        yield client


@pytest.mark.parametrize(
    ("page", "query", "shown"),
    [
        ("tenant", {}, "trip"),
        ("thread", {"thread": "trip"}, "By the ferry."),
        ("turns", {"thread": "trip"}, "Where is the harbour?"),
        ("context", {"thread": "trip", "question": "When does the ferry leave?"}, "recalled: 1"),
        ("timeline", {"thread": "trip"}, "2 window"),
        ("entries", {"namespace": "notes"}, "The ferry leaves at nine"),
        ("search", {"q": "ferry"}, "why it was found"),
        ("forget", {"thread": "trip"}, "would be forgotten"),
    ],
)
async def test_every_page_shows_what_is_on_the_server(client, page, query, shown):
    answer = await client.get(page, params={"tenant": "alice"} | query)

    assert answer.status_code == 200
    assert shown in answer.text


async def test_what_is_forgotten_is_gone_from_the_server(client, memory):
    alice = memory.tenant("alice")
    entry = alice.memory.retrieve(namespace="notes", key="ferry")

    for query in ({"thread": "trip"}, {"entry": entry.id}):
        answer = await client.post("forget", params={"tenant": "alice"} | query, headers=OWN)
        assert answer.status_code == 200
        assert "forgotten" in answer.text

    assert alice.threads() == []
    assert alice.memory.retrieve(entry.id) is None
