"""Where the plugins' tests keep what they store: in files, or on servers.

With TEST_ON_SERVERS set, the tests that ask for a location keep everything in PostgreSQL and on a
Chroma server, and no others run: what needs no location does not change with it. Those marked
`files` are about what a location on disk does.
"""

from __future__ import annotations

import os

import pytest

ON_SERVERS = bool(os.environ.get("TEST_ON_SERVERS"))


@pytest.fixture
def durable_location(request, tmp_path):
    """Return a location where nothing is stored yet, and that outlives a process."""
    if not ON_SERVERS:
        return tmp_path / "memory"
    monkeypatch = request.getfixturevalue("monkeypatch")
    location = request.getfixturevalue("postgres_location")
    monkeypatch.setenv("HIERMEM_CHROMA", request.getfixturevalue("chroma_server").url)
    monkeypatch.setenv("HIERMEM_LOCATION", location)  # dumps do not hold the password
    monkeypatch.setenv("HIERMEM_GENERATION_CHECK_SECONDS", "0")  # another handle's writes show
    return location


def only_those_with_a_location(items):
    """Keep the tests that store something, where they run on servers."""
    if ON_SERVERS:
        places = {"location", "durable_location"}
        items[:] = [
            item
            for item in items
            if places & set(item.fixturenames) and item.get_closest_marker("files") is None
        ]
