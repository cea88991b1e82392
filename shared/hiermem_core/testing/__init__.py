"""A test kit: a clock, an embedder, a chat model, faults, and what every implementation must hold.

Needs no network and no model. `contracts` holds test classes to subclass with pytest.
"""

from hiermem_core.testing.clocks import FakeClock
from hiermem_core.testing.embedders import FakeEmbedder
from hiermem_core.testing.faults import FaultPlan, InjectedFault
from hiermem_core.testing.hostile import HOSTILE
from hiermem_core.testing.models import ModelCall, ScriptedModel

__all__ = [
    "HOSTILE",
    "FakeClock",
    "FakeEmbedder",
    "FaultPlan",
    "InjectedFault",
    "ModelCall",
    "ScriptedModel",
]
