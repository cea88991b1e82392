"""A tenant with an empty memory, and source files to import into it."""

from __future__ import annotations

import json

import pytest

from hiermem_core import HierMem


@pytest.fixture
def memory(tmp_path):
    with HierMem.open(tmp_path / "memory") as memory:
        yield memory


@pytest.fixture
def alice(memory):
    return memory.tenant("alice")


@pytest.fixture
def source(tmp_path):
    """Write a source: bytes and text as they are, a list as one JSON value per line."""

    def write(content, name="talk.jsonl"):
        path = tmp_path / name
        if isinstance(content, list):
            content = "".join(json.dumps(value) + "\n" for value in content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def said(alice):
    """Return role and content of every turn of a thread."""

    def read(thread="talk"):
        return [(turn.role, turn.content) for turn in alice.thread(thread).turns()]

    return read
