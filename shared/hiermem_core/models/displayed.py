"""Values that show themselves."""

from __future__ import annotations

from typing import Any


class Displayed:
    """A value that shows itself: `str` gives text for people, a notebook gets HTML.

    The HTML is escaped, asks for nothing outside, and is read on light and dark pages.
    """

    __slots__ = ()

    def __str__(self) -> str:
        """Say it in text for people, which cannot steer a terminal."""
        from hiermem_core.displays.showing import text_of  # noqa: PLC0415 - only what is shown

        return text_of(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: FBT001 - IPython calls it
        """Say it in IPython and where a notebook shows text."""
        del cycle
        printer.text(str(self))

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        from hiermem_core.displays.showing import page_of  # noqa: PLC0415 - only what is shown

        return page_of(self)
