"""What all tests share: no network, one event loop, and how hard hypothesis tries."""

from __future__ import annotations

import socket

import pytest
from chroma_server import chroma_server  # noqa: F401 - a fixture of all tests
from hypothesis import settings
from postgres_server import (  # noqa: F401 - fixtures of all tests
    postgres_database,
    postgres_location,
    postgres_server,
    postgres_url,
)
from servers import (  # noqa: F401 - fixtures of all tests
    durable_location,
    only_those_with_a_location,
    servers,
)

settings.register_profile(
    "ordinary", max_examples=15, derandomize=True, deadline=None, database=None
)
settings.register_profile("long", max_examples=1000, deadline=None, database=None, print_blob=True)
settings.register_profile("fuzz", max_examples=3000, deadline=None, database=None, print_blob=True)
settings.load_profile("ordinary")


def pytest_collection_modifyitems(items):
    only_those_with_a_location(items)


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


LOOPBACK = {"127.0.0.1", "::1"}


@pytest.fixture(scope="session", autouse=True)
def no_network():
    """Refuse every connection that would leave this machine."""
    plain = socket.socket.connect

    def local_only(self, address):
        if self.family != socket.AF_UNIX and address[0] not in LOOPBACK:
            raise AssertionError("a test reached for the network")
        return plain(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", local_only)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_local_embedder():
    """Leave the local embedder to the tests that ask for it; it takes half a second to load."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIERMEM_LOCAL_EMBEDDER", "false")
        yield
