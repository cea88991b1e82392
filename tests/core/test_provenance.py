"""Sources and trust, on each backend."""

from __future__ import annotations

from core.memory_backends import EVERY, on

from hiermem_core.testing.contracts import ProvenanceContract


class TestProvenance(ProvenanceContract):
    opened = on(*EVERY)
