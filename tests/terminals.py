"""Terminals for tests: what was written to one."""

from __future__ import annotations

import os


def drained(terminal):
    """Return all that was written to a terminal whose other side has closed."""
    shown = b""
    try:
        while piece := os.read(terminal, 4096):
            shown += piece
    except OSError:
        pass
    os.close(terminal)
    return shown.decode()
