"""HTML in which everything that is not known to be HTML is escaped. Pure."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Self

from hiermem_core.displays.printing import printable

if TYPE_CHECKING:
    from collections.abc import Iterable


class Html(str):
    """Text that is HTML already: whoever makes one has escaped what was not."""

    __slots__ = ()

    def __html__(self) -> Self:
        """Return itself; template engines ask for it and then escape nothing."""
        return self


def escaped(text: object) -> Html:
    """Return a text as HTML that shows it: no markup, no quote, nothing that turns its direction.

    What is HTML already stays as it is.
    """
    if isinstance(text, Html):
        return text
    return Html(escape(printable(str(text))))


def element(name: str, *children: object, **attributes: object) -> Html:
    """Return an element; what it holds and its attributes' values are escaped.

    Args:
        attributes: `class_` for `class`, `aria_label` for `aria-label`; `None` leaves one out.
    """
    told = [
        f' {key.rstrip("_").replace("_", "-")}="{escaped(value)}"'
        for key, value in attributes.items()
        if value is not None
    ]
    return Html(f"<{name}{''.join(told)}>{joined(children)}</{name}>")


def joined(parts: Iterable[object]) -> Html:
    """Return parts one after the other, each escaped."""
    return Html("".join(map(escaped, parts)))


def grid(head: tuple[str, ...], rows: list[tuple[object, ...]], *, class_: str = "") -> Html:
    """Return a table; columns of figures stand to the right."""
    columns = list(zip(*rows, strict=True)) if rows else []
    sides = ["hm-figure" if all(map(_is_figure, cells)) else None for cells in columns]
    cells = [
        element("tr", *(element("td", c, class_=side) for c, side in zip(row, sides, strict=True)))
        for row in rows
    ]
    titles = [
        element("th", title, scope="col", class_=side)
        for title, side in zip(head, sides or [None] * len(head), strict=True)
    ]
    top = element("thead", element("tr", *titles)) if any(head) else Html()
    table = element("table", top, element("tbody", *cells), class_=f"hm-table {class_}".strip())
    return element("div", table, class_="hm-wide")


def _is_figure(cell: object) -> bool:
    return (
        not isinstance(cell, Html)
        and str(cell).lstrip("-").replace(",", "").replace(".", "").isdigit()
    )
