"""Redaction, on each backend."""

from __future__ import annotations

from functools import partial

import pytest
from core.memory_backends import EVERY, on

from hiermem_core.testing.contracts import RedactionContract
from hiermem_core.testing.contracts.redacting import files_with


class TestRedaction(RedactionContract):
    opened = on(*EVERY)

    @pytest.fixture
    def places_with(self, tmp_path):
        return partial(files_with, tmp_path)
