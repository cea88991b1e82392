"""Every shipped token counter."""

from __future__ import annotations

import pytest
from core.counting import approximate_counter, function_counter, splitting_counter, tiktoken_counter

from hiermem_core.testing.contracts import TokenCounterContract
from hiermem_core.tokens.counters import ApproximateCounter


class TestTiktokenCounter(TokenCounterContract):
    @pytest.fixture(params=[("o200k_base", 1.0), ("cl100k_base", 1.2)], ids=str)
    def counter(self, request):
        encoding, factor = request.param
        return tiktoken_counter(encoding, factor)


class TestApproximateCounter(TokenCounterContract):
    @pytest.fixture
    def counter(self):
        return approximate_counter()


class TestScaledApproximateCounter(TokenCounterContract):
    @pytest.fixture
    def counter(self):
        return ApproximateCounter(factor=1.3)


class TestFunctionCounter(TokenCounterContract):
    @pytest.fixture
    def counter(self):
        return function_counter()


class TestFunctionCounterOfTokens(TokenCounterContract):
    @pytest.fixture
    def counter(self):
        return splitting_counter()
