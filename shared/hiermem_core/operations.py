"""Operations: what is called on the handles, watched in one place for audit and telemetry.

Without a watcher a call costs one look more.
"""

from __future__ import annotations

import functools
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager

Kind = Literal["write", "read"]
T = TypeVar("T")


@dataclass(slots=True)
class Operation:
    """One call of a handle's method, while it runs and after it.

    Attributes:
        arguments: As given; may hold content.
        ids: Of the entries or turns that the running transaction wrote or removed so far.
        has_written: It wrote or removed anything.
        rows: Rows of the audit log that were written of it.
        result: What it returned; may hold content.
        error: What it raised.
    """

    name: str
    kind: Kind
    tenant_id: str
    thread_id: str | None = None
    actor: str | None = None
    arguments: tuple[tuple[Any, ...], Mapping[str, Any]] = ((), {})
    ids: list[str] = field(default_factory=list)
    has_written: bool = False
    rows: int = 0
    result: Any = None
    error: BaseException | None = None


class Watcher(Protocol):
    """Sees operations begin and end."""

    def watching(self, operation: Operation) -> AbstractContextManager[None]:
        """Return what is entered before the operation and left after it; never raises."""


class Operations:
    """Run operations before the eyes of watchers."""

    def __init__(self, watchers: Iterable[Watcher]) -> None:
        self._watchers = tuple(watchers)

    def run(self, operation: Operation, method: Callable[..., Any], handle: Any) -> Any:
        """Call a method of a handle."""
        with ExitStack() as stack:
            for watcher in self._watchers:
                stack.enter_context(watcher.watching(operation))
            token = _running.set(operation)
            try:
                positional, named = operation.arguments
                operation.result = method(handle, *positional, **named)
            except BaseException as error:  # watchers tell of cancelled ones too; it goes on
                operation.error = error
                raise
            finally:
                _running.reset(token)
            return operation.result


def running() -> Operation | None:
    """Return the operation that runs here."""
    return _running.get()


def touched(ids: Iterable[Any]) -> None:
    """Say that the running transaction writes or removes something, and which entries or turns."""
    operation = _running.get()
    if operation is not None:
        operation.has_written = True
        operation.ids += map(str, ids)


def untouched() -> None:
    """Say that what the transaction touched was undone."""
    operation = _running.get()
    if operation is not None:
        operation.has_written = False
        operation.ids.clear()


def performed(handle: Any, name: str, kind: Kind, function: Callable[[], T]) -> T:
    """Run a function as an operation on a handle; for what is no method of it."""
    return cast("T", _watched(lambda _: function(), name, kind)(handle))


def watched(*, writes: str, reads: str) -> Callable[[type[T]], type[T]]:
    """Have methods of a handle run as operations.

    A handle has `_watch`: who runs them, `None` where nobody watches, and the tenant, thread and
    actor they are of.

    Args:
        writes: Names of methods, parted by spaces.
        reads: As `writes`.
    """
    kinds: dict[Kind, str] = {"write": writes, "read": reads}

    def decorate(handle: type[T]) -> type[T]:
        for kind, names in kinds.items():
            for name in names.split():
                setattr(handle, name, _watched(getattr(handle, name), name, kind))
        return handle

    return decorate


def _watched(method: Callable[..., Any], name: str, kind: Kind) -> Callable[..., Any]:
    @functools.wraps(method)
    def run(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        operations, tenant_id, thread_id, actor = self._watch
        if operations is None:
            return method(self, *args, **kwargs)
        operation = Operation(name, kind, tenant_id, thread_id, actor, (args, kwargs))
        return operations.run(operation, method, self)

    return run


_running: ContextVar[Operation | None] = ContextVar("hiermem_operation", default=None)
