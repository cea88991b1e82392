"""Forgetting, on each backend, and its pure rules."""

from __future__ import annotations

from core.memory_backends import EVERY, on
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core.forgetting.derivation import descendants, fallout
from hiermem_core.forgetting.selectors import selector_of
from hiermem_core.testing.contracts.forgetting import ForgettingContract


class TestForgetting(ForgettingContract):
    opened = on(*EVERY)
