"""Every public method, as a call that can be made on a sync handle and on its async twin."""

from __future__ import annotations

import inspect

from hiermem_core import HierMem
from hiermem_core.aio import AsyncHierMem, AsyncTenant, AsyncThread
from hiermem_core.tenant import Tenant
from hiermem_core.thread import Thread

TWINS = {HierMem: AsyncHierMem, Tenant: AsyncTenant, Thread: AsyncThread}

ON_HIERMEM = {
    "tenant": lambda hiermem: hiermem.tenant("acme"),
    "health": lambda hiermem: hiermem.health(),
}

ON_TENANT = {
    "thread": lambda tenant: tenant.thread("t1"),
    "threads": lambda tenant: tenant.threads(),
    "stats": lambda tenant: tenant.stats(),
}

ON_THREAD = {
    "append": lambda thread: thread.append([{"role": "user", "content": "more", "id": "more"}]),
    "turns": lambda thread: thread.turns(),
    "info": lambda thread: thread.info(),
    "edit_turn": lambda thread: thread.edit_turn("q1", "edited"),
    "delete_turns": lambda thread: thread.delete_turns(["q1", "a1"]),
    "replace": lambda thread: thread.replace([{"role": "user", "content": "new", "id": "new"}]),
    "prune": lambda thread: thread.prune(max_turns=2),
    "state": lambda thread: thread.state(),
    "reset": lambda thread: thread.reset(),
    "context": lambda thread: thread.context(budget_tokens=500),
    "delete": lambda thread: thread.delete(),
}

IMMEDIATE = {"tenant", "thread"}
"""Methods that touch nothing and are not awaited on the async side either."""

OPENING_AND_CLOSING = {"open", "opened", "close"}

SEED = [
    {"role": role, "content": f"{text} {number}", "id": f"{text[0]}{number}"}
    for number in (1, 2, 3)
    for role, text in (("user", "question"), ("assistant", "answer"))
]


def public_methods(kind):
    """Return the names of a class's public methods, properties left out."""
    return {name for name, value in inspect.getmembers(kind, callable) if not name.startswith("_")}
