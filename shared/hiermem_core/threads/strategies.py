"""Which strategy loads a thread: the profile's, else the HierMem's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hiermem_core.models.threads import ModelInfo, Profile, Strategy, ThreadLoad
    from hiermem_core.protocols import ThreadMemory


class Strategies:
    """The built-in thread memory: a strategy for each call."""

    def __init__(self, strategies: Mapping[Strategy, ThreadMemory], *, default: Strategy) -> None:
        self._strategies = strategies
        self._default = default

    def load(
        self,
        *,
        tenant_id: str,
        thread_id: str,
        budget_tokens: int,
        model: ModelInfo,
        profile: Profile,
    ) -> ThreadLoad:
        """Return what the chosen strategy loads.

        Raises:
            ConfigurationError: The profile names an unknown strategy.
            ThreadNotFoundError: The tenant has no such thread.
        """
        name = profile.working_memory.strategy or self._default
        if name not in self._strategies:
            known = ", ".join(self._strategies)
            raise ConfigurationError("strategy", f"{name!r} is unknown; use one of {known}")
        return self._strategies[name].load(
            tenant_id=tenant_id,
            thread_id=thread_id,
            budget_tokens=budget_tokens,
            model=model,
            profile=profile,
        )
