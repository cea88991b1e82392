"""Hooks around a fork, where the platform forks at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def around_fork(
    *,
    before: Callable[[], None] = lambda: None,
    in_parent: Callable[[], None] = lambda: None,
    in_child: Callable[[], None] = lambda: None,
) -> None:
    """Have functions called around every fork of this process; do nothing on Windows."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)
