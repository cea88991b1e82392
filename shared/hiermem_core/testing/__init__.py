"""A test kit: a clock, faults, and the contract every implementation must hold.

Needs no network and no model. `contracts` holds test classes to subclass with pytest.
"""

from hiermem_core.testing.clocks import FakeClock
from hiermem_core.testing.faults import FaultPlan, InjectedFault

__all__ = ["FakeClock", "FaultPlan", "InjectedFault"]
