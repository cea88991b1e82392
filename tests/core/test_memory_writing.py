"""Writes of many kinds at once, and entries with several vectors, on each backend."""

from __future__ import annotations

from core.memory_backends import EVERY, WITH_VECTORS, on

from hiermem_core.testing.contracts import PassageContract, WritingContract


class TestPassages(PassageContract):
    opened = on(*WITH_VECTORS)


class TestWriting(WritingContract):
    opened = on(*EVERY)
