"""The progress bar of an import: on stderr, and only on a terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hiermem_core.importing import ImportProgress


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Callable[[ImportProgress], None] | None]:
    """Draw a bar while the block runs and give what moves it; `None` where there is no bar."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - rich is not needed for --help
    from rich.progress import Progress  # noqa: PLC0415 - as above

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("importing", total=None)

        def move(step: ImportProgress) -> None:
            bar.update(task, total=step.total_bytes, completed=step.read_bytes)

        yield move
