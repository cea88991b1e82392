"""A location that is not ours stays as it is."""

import sqlite3
import subprocess
import sys

import pytest

from hiermem_core import BackendError, ConfigurationError, HierMem
from hiermem_core.models.events import ValuesReplaced


@pytest.mark.parametrize("create", [True, False])
def test_another_programs_database_is_refused_and_unchanged(tmp_path, create):
    path = tmp_path / "app.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE threads (id INTEGER)")
        connection.execute("CREATE TABLE users (id INTEGER)")
    before = path.read_bytes()

    with pytest.raises(ConfigurationError, match="another program"):
        HierMem.open(path, create=create)

    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_named_as_such(tmp_path):
    path = tmp_path / "notes.db"
    path.write_bytes(b"These are notes. " * 100)

    with pytest.raises(BackendError, match="no database; name another location"):
        HierMem.open(path)


def test_a_platform_that_does_not_fork_can_open_a_memory():
    script = """
import logging, os, random, threading, concurrent.futures.thread  # which ask another way
del os.register_at_fork
from hiermem_core import HierMem
with HierMem.open(":memory:") as hiermem:
    hiermem.tenant("a").thread("t").append([{"role": "user", "content": "hi"}])
"""

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_values_that_no_dump_can_carry_are_told():
    from langchain_core.messages import ToolMessage

    from langchain_hiermem import HierMemChatMessageHistory

    events = []
    with HierMem.open(":memory:", observer=events.append) as hiermem:
        history = HierMemChatMessageHistory(hiermem, tenant_id="alice", thread_id="t1")
        history.add_messages([ToolMessage("ok", tool_call_id="c1", artifact=object())])

    (told,) = [event for event in events if isinstance(event, ValuesReplaced)]
    assert told.paths == ("$.artifact",)
