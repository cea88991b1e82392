"""What all tests share: no network, one event loop, and how hard hypothesis tries."""

from __future__ import annotations

import socket

import pytest
from hypothesis import settings

settings.register_profile(
    "ordinary", max_examples=25, derandomize=True, deadline=None, database=None
)
settings.register_profile("long", max_examples=1000, deadline=None, database=None, print_blob=True)
settings.register_profile("fuzz", max_examples=3000, deadline=None, database=None, print_blob=True)
settings.load_profile("ordinary")


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def no_network():
    """Refuse every socket that could leave this machine."""
    plain = socket.socket.__init__

    def local_only(self, family=-1, type=-1, proto=-1, fileno=None):  # noqa: A002 - socket's names
        if fileno is None and family != socket.AF_UNIX:
            raise AssertionError("a test opened a network socket")
        plain(self, family, type, proto, fileno)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "__init__", local_only)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_local_embedder():
    """Leave the local embedder to the tests that ask for it; it takes half a second to load."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIERMEM_LOCAL_EMBEDDER", "false")
        yield
