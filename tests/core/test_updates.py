"""Updates of notes in the background."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from hiermem_core import HierMem
from hiermem_core.testing.contracts import HostMemoryContract, UpdatingContract


class TestUpdates(UpdatingContract, HostMemoryContract):
    @pytest.fixture
    def opened(self, tmp_path):
        with ExitStack() as stack:
            yield lambda **options: stack.enter_context(
                HierMem.open(tmp_path / "memory", **options)
            )
