"""A tenant with an empty memory, and sources to import into it."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest
from importing.served import connection_to
from sqlalchemy import text

from hiermem_core import HierMem
from hiermem_core.importing import import_memories
from hiermem_core.testing import FakeClock, FakeEmbedder

NOW = datetime(2026, 11, 30, 15, tzinfo=UTC)


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


class Place:
    """A memory whose clock and embedder are ours, and a folder of sources beside it."""

    def __init__(self, folder, backend="hybrid"):
        self.folder = folder / "project"
        self.folder.mkdir()
        self.clock = FakeClock(NOW)
        self.embedder = FakeEmbedder()
        self.memory = HierMem.open(
            folder / "place", clock=self.clock, embedder=self.embedder, backend=backend
        )
        self.tenant = self.memory.tenant("alice")

    def load(self, source=None, **options):
        """Import a source, the whole folder where none is named; it must not change."""
        source = self.folder if source is None else source
        before = digests(self.folder)
        report = import_memories(source, self.tenant, **options)
        assert digests(self.folder) == before
        assert report.found == (report.imported + report.updated + report.skipped + report.failed)
        return report

    def entries(self):
        """Return all entries, by namespace and key, or by id."""
        found = self.tenant.memory.search(limit=1000)
        return {(one.namespace, one.key) if one.key else one.id: one for one in found}

    def contents(self):
        return {name: entry.content for name, entry in self.entries().items()}

    def write(self, name, value):
        """Write a file: JSON, or bytes as they are."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        path.write_bytes(data)
        return path

    def database(self, name, *statements, rows=()):
        """Make a database; `rows` are a statement with its values each."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as connection, connection:
            for statement in statements:
                connection.execute(statement)
            for statement, values in rows:
                connection.executemany(statement, values)
        return path


@pytest.fixture
def place(tmp_path):
    one = Place(tmp_path)
    yield one
    one.memory.close()


def digests(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def database(postgres_url):
    """Run statements in a database of the test's own; return its URL."""

    def fill(*statements, rows=()):
        with connection_to(postgres_url) as connection:
            for statement in statements:
                connection.execute(text(statement))
            for statement, values in rows:
                connection.execute(text(statement), values)
        return postgres_url

    return fill
