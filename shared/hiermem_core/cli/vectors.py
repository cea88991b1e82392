"""Making the vectors that rows wait for, telling how far it is."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hiermem_core.cli.output import note
from hiermem_core.cli.progress import progress_bar
from hiermem_core.displays.wording import counted
from hiermem_core.errors import HierMemError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hiermem_core import Tenant
    from hiermem_core.models.results import IndexStats

_LOOK_SECONDS = 0.5


def make_vectors(tenant: Tenant, *, quiet: bool) -> dict[str, Any] | None:
    """Make the vectors a tenant's rows wait for, and return how they stand.

    What fails is told and raises nothing: the rows are stored, and found by keywords. `None` where
    there is no embedder.
    """
    memory = tenant.memory
    before = memory.stats().index
    if before.model_id is None:
        return None
    error = None
    if before.pending:
        note(f"making {counted(before.pending, 'vector')} by {before.model_id}", quiet=quiet)
        with progress_bar("making vectors", quiet=quiet) as move, _watched(tenant, move):
            try:
                memory.wait_for_index()
            except HierMemError as raised:
                error = raised
    after = memory.stats().index
    _tell_left(after, error, quiet=quiet)
    return {
        "model_id": after.model_id,
        "indexed": after.indexed,
        "pending": after.pending,
        "failed": after.failed,
    }


def _tell_left(index: IndexStats, error: HierMemError | None, *, quiet: bool) -> None:
    left = index.pending + index.failed
    if error is not None or left:
        facts = f" ({error})" if error is not None else ""
        rows = f"{counted(left, 'row')} without a vector, found by keywords{facts}"
        note(f"{rows}; see: hiermem health", quiet=quiet)


@contextmanager
def _watched(tenant: Tenant, move: Callable[[int, int], None] | None) -> Iterator[None]:
    """Move a bar, twice a second, as the rows that wait grow fewer."""
    if move is None:
        yield
        return
    is_over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(tenant, move, is_over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()


def _watch(tenant: Tenant, move: Callable[[int, int], None], is_over: threading.Event) -> None:
    total = 0
    while not is_over.wait(_LOOK_SECONDS):
        try:
            pending = tenant.memory.stats().index.pending
        except HierMemError:
            return
        total = max(total, pending)
        move(total - pending, total)
