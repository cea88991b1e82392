"""Embedders and clocks that show what a store of entries does when they misbehave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.testing.clocks import FakeClock
from hiermem_core.testing.embedders import FakeEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime


class Uneven(FakeEmbedder):
    """Gives the vectors of some texts a number too many.

    Attributes:
        is_uneven: Tells those texts.
    """

    is_uneven: Callable[[str], bool] = staticmethod(lambda _: False)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in order."""
        return [
            [*vector, 0.5] if self.is_uneven(text) else vector
            for text, vector in zip(texts, super().embed(texts), strict=True)
        ]


class Reentering(FakeEmbedder):
    """Calls something that may embed, whenever it embeds.

    Attributes:
        action: What it calls.
    """

    action: Callable[[], object] | None = None

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in order."""
        action, self.action = self.action, None
        if action is not None:
            action()
        return super().embed(texts)


class Meddling(FakeClock):
    """Does something between two looks at the time.

    Attributes:
        action: Done once, at the second look from now on.
    """

    action: Callable[[], object] | None = None
    _looks = 0

    def now(self) -> datetime:
        """Return the moment it stands at."""
        if self.action is not None:
            self._looks += 1
            if self._looks == 2:
                action, self.action = self.action, None
                action()
        return super().now()
