"""Notes are learned from stored turns."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from hiermem_core import HierMem
from hiermem_core.testing.contracts import LearnedTurnsContract, LearningContract


class TestLearningInFiles(LearningContract, LearnedTurnsContract):
    @pytest.fixture
    def opened(self, tmp_path):
        with ExitStack() as stack:
            yield lambda **options: stack.enter_context(
                HierMem.open(tmp_path / "memory", inline_updates=True, **options)
            )


class TestLearningInMemory(LearningContract, LearnedTurnsContract):
    @pytest.fixture
    def opened(self):
        with ExitStack() as stack:
            yield lambda **options: stack.enter_context(
                HierMem.open(":memory:", inline_updates=True, **options)
            )
