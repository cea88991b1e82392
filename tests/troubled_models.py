"""Chat models that fail to learn, each in its way, and what a good one replies."""

from __future__ import annotations

import threading

from hiermem_core import UsageDeniedError
from hiermem_core.testing import ScriptedModel
from hiermem_core.testing.contracts.learning_base import reply

GOOD = reply("They plan a trip to Kyoto.", ["They land on 4 May"])


class Closed:
    """A usage guard that allows nothing."""

    def check(self, meta, estimated_tokens):
        raise UsageDeniedError

    def record(self, meta, completion):
        raise AssertionError("nothing was called")


def troubles():
    """Return the options of a HierMem that learns nothing, by what its model does."""
    hanging = ScriptedModel([GOOD])
    hanging.gate = threading.Event()
    return {
        "raises": {"chat_model": ScriptedModel([ConnectionError("no network")])},
        "hangs": {"chat_model": hanging},
        "garbage": {"chat_model": ScriptedModel(["They plan a trip. {'summary': "])},
        "empty": {"chat_model": ScriptedModel([""])},
        "denied": {"chat_model": ScriptedModel([GOOD]), "usage_guard": Closed()},
    }
