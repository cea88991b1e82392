"""Redaction, on each backend."""

from __future__ import annotations

import pytest
from core.memory_backends import EVERY, on

from hiermem_core.testing.contracts import RedactionContract


class TestRedaction(RedactionContract):
    opened = on(*EVERY)

    @pytest.fixture
    def location(self, tmp_path):
        return tmp_path / "memory"
