"""The memory service, on each backend."""

from __future__ import annotations

from core.memory_backends import EVERY, on

from hiermem_core.testing.contracts import EntryContract


class TestEntries(EntryContract):
    opened = on(*EVERY)
