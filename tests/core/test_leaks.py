"""Two tenants with equal ids and texts, on each backend."""

from __future__ import annotations

import pytest
from core.memory_backends import EVERY, OPTIONS
from core.operations import ON_MEMORY, ON_PATTERNS, ON_SESSION, ON_TENANT, ON_THREAD

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing.contracts import LeakContract
from hiermem_core.testing.contracts.leaking import CALLS


class TestLeaks(LeakContract):
    @pytest.fixture(params=EVERY)
    def open_at(self, request):
        handles = []

        def open_one(folder, **options):
            given = OPTIONS[request.param] | options
            handles.append(HierMem.open(folder, counter=ApproximateCounter(), **given))
            return handles[-1]

        yield open_one
        for handle in handles:
            handle.close()


ON_HANDLES = {*ON_MEMORY, *ON_TENANT, *ON_THREAD, *ON_PATTERNS, *ON_SESSION}
EVERY_OPERATION = sorted(ON_HANDLES - {"thread", "session"})


@pytest.mark.parametrize("name", EVERY_OPERATION)
def test_every_public_operation_is_among_the_calls(name):
    used = {word for call in CALLS.values() for word in _names_in(call)}

    assert name in {*used, "remember"}


def _names_in(function):
    code = [function.__code__]
    names = set()
    while code:
        one = code.pop()
        names |= set(one.co_names)
        code += [const for const in one.co_consts if hasattr(const, "co_names")]
        for name in one.co_names:
            helper = function.__globals__.get(name)
            if name.startswith("_") and hasattr(helper, "__code__"):
                code.append(helper.__code__)
    return names
