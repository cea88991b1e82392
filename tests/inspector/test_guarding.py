"""Only who has the address, on this machine, from the inspector's own pages, is answered."""

from __future__ import annotations

import pytest
from inspector_door import DOOR, HOME, OWN

GOOD = {"host": "127.0.0.1:8765"}
PATH = f"/{DOOR.token}/tenant"


def test_the_holder_of_the_token_may_read():
    assert DOOR.refusal("GET", PATH, GOOD) is None
    assert DOOR.refusal("GET", PATH, {"host": "localhost:8765"}) is None


@pytest.mark.parametrize(
    "host", ["evil.example:8765", "127.0.0.1", "127.0.0.1:1", "0.0.0.0:8765", "", None]
)
def test_another_name_of_this_machine_is_refused(host):
    headers = {} if host is None else {"host": host}

    assert DOOR.refusal("GET", PATH, headers)[0] == 421


@pytest.mark.parametrize(
    "path", ["/", "", "/wrong/tenant", f"/{DOOR.token}x/", "/é/", f"//{DOOR.token}"]
)
def test_without_its_token_nothing_is_told(path):
    status, text = DOOR.refusal("GET", path, GOOD)

    assert status == 403
    assert DOOR.token not in text


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "http://127.0.0.1:8765", "sec-fetch-site": "same-site"},
        {"origin": "http://127.0.0.1:8765", "sec-fetch-site": "none"},
    ],
)
def test_a_form_of_another_page_is_refused(headers):
    assert DOOR.refusal("POST", PATH, GOOD | headers)[0] == 403


def test_a_form_of_its_own_page_is_taken():
    assert DOOR.refusal("POST", PATH, GOOD | OWN) is None


async def test_every_answer_says_what_a_browser_must_not_do(client):
    for address in ("tenant?tenant=alice", "nowhere", "static/htmx.min.js", "/"):
        headers = (await client.get(address)).headers

        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


async def test_a_refused_request_is_answered_in_words(client):
    answer = await client.get("http://127.0.0.1:8765/")

    assert answer.status_code == 403
    assert "token" in answer.text
    assert (await client.get(HOME + "/", headers={"host": "evil.example"})).status_code == 421
