"""The built-in thread memory: for each call the strategy of its profile, else of the HierMem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core.errors import ConfigurationError, InvalidInputError

if TYPE_CHECKING:
    from hiermem_core.learning.summary_buffer import SummaryBuffer
    from hiermem_core.models.calls import CallMeta
    from hiermem_core.models.notes import ThreadState
    from hiermem_core.models.threads import ModelInfo, Profile, Strategy, ThreadLoad
    from hiermem_core.threads.sliding_window import SlidingWindow


class Strategies:
    """Load by the sliding window or by the summary buffer; learn under the second only.

    Notes stay through a time of the sliding window, which neither shows nor updates them.
    """

    def __init__(self, window: SlidingWindow, buffer: SummaryBuffer, *, default: Strategy) -> None:
        self._window = window
        self._buffer = buffer
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
        strategy = self._buffer if self.learns(profile) else self._window
        return strategy.load(
            tenant_id=tenant_id,
            thread_id=thread_id,
            budget_tokens=budget_tokens,
            model=model,
            profile=profile,
        )

    def learns(self, profile: Profile) -> bool:
        """Tell whether an answer under this profile is learned from.

        Raises:
            ConfigurationError: The profile names an unknown strategy.
            InvalidInputError: Its `update_every_turns` is below 1.
        """
        every = profile.working_memory.update_every_turns
        if every is not None and every < 1:
            raise InvalidInputError("update_every_turns", "must be at least 1")
        name = profile.working_memory.strategy or self._default
        if name not in _NAMES:
            known = ", ".join(_NAMES)
            raise ConfigurationError("strategy", f"{name!r} is unknown; use one of {known}")
        return name == "summary_buffer"

    def save_context(
        self,
        *,
        tenant_id: str,
        thread_id: str,
        user_id: str | None,
        profile: Profile,
        cheap_model_id: str | None,
        meta: CallMeta,
        request: Any = None,
        result: Any = None,
    ) -> None:
        """Learn from a stored answer, under the summary buffer.

        Raises:
            ConfigurationError: The profile names an unknown strategy.
        """
        if self.learns(profile):
            self._buffer.save_context(
                tenant_id=tenant_id,
                thread_id=thread_id,
                user_id=user_id,
                profile=profile,
                cheap_model_id=cheap_model_id,
                meta=meta,
                request=request,
                result=result,
            )

    def get_state(self, *, tenant_id: str, thread_id: str) -> ThreadState:
        """Return the notes of a thread, whatever the strategy.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        return self._buffer.get_state(tenant_id=tenant_id, thread_id=thread_id)

    def reset(self, *, tenant_id: str, thread_id: str) -> None:
        """Clear the notes and mark every turn so far as seen; the turns stay.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        self._buffer.reset(tenant_id=tenant_id, thread_id=thread_id)


_NAMES = ("sliding_window", "summary_buffer")
