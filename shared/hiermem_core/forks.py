"""Hooks around a fork, where the platform forks at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable


class Forked(Protocol):
    """What holds locks or threads, which a forked child must not use."""

    def after_fork(self) -> None:
        """Begin anew in the child, and leave what is the parent's to the parent."""


def around_fork(
    *,
    before: Callable[[], None] = lambda: None,
    in_parent: Callable[[], None] = lambda: None,
    in_child: Callable[[], None] = lambda: None,
) -> None:
    """Have functions called around every fork of this process; do nothing on Windows."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)


def renewed_after_fork(thing: Forked) -> None:
    """Have `thing.after_fork()` called in every forked child, as long as the thing lives."""
    _renewed.add(thing)


_renewed: WeakSet[Forked] = WeakSet()


def _renew() -> None:
    for thing in list(_renewed):
        thing.after_fork()


around_fork(in_child=_renew)
