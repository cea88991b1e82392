"""Where the plugins' tests keep what they store: in files, or on servers.

With TEST_ON_SERVERS set, the tests that ask for a location keep everything in PostgreSQL and on a
Chroma server, and no others run: what needs no location does not change with it. Those marked
`files` are about what a location on disk does.
"""

from __future__ import annotations

import os

import pytest

ON_SERVERS = bool(os.environ.get("TEST_ON_SERVERS"))
SETTINGS = {"INDEX_THRESHOLD": "0", "EXACT_LIMIT": "0", "GENERATION_CHECK_SECONDS": "0"}
"""Every search by meaning is the Chroma server's; what others commit is seen at once."""


@pytest.fixture
def servers(postgres_location, chroma_server, monkeypatch):
    """Return a location on a PostgreSQL server, whose vectors are on a Chroma server."""
    facts = {**SETTINGS, "CHROMA": chroma_server.url}
    facts["LOCATION"] = postgres_location  # has the password, which dumps leave out
    for name, value in facts.items():
        monkeypatch.setenv(f"HIERMEM_{name}", value)
    return postgres_location


@pytest.fixture
def durable_location(request, tmp_path):
    """Return a location where nothing is stored yet, and that outlives a process."""
    return request.getfixturevalue("servers") if ON_SERVERS else tmp_path / "memory"


def only_those_with_a_location(items):
    """Keep the tests that store something, where they run on servers."""
    if ON_SERVERS:
        places = {"location", "durable_location"}
        items[:] = [
            item
            for item in items
            if places & set(item.fixturenames) and item.get_closest_marker("files") is None
        ]
