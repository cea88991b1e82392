"""What differs between the database engines beneath the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Engine


class Facts(Protocol):
    """Facts of a database that are kept as long as they are taken for valid.

    Attributes:
        is_exact: They are never older than what was committed last, by whomever.
    """

    is_exact: bool

    def value(self, statement: str, parameters: Sequence[Hashable] = ()) -> Any:
        """Return the first column of a statement's first row; `None` without a row."""
        ...

    def written(self) -> None:
        """Hear that this process has committed something."""
        ...

    def close(self) -> None:
        """Let go of what is held. Idempotent."""
        ...


class Hold(Protocol):
    """A lock of a location that is held, until it is released or its session ends."""

    @property
    def is_alive(self) -> bool:
        """Tell whether it is still held, as far as can be told without asking."""
        ...

    def release(self) -> None:
        """Let go of it. Idempotent."""
        ...


class Dialect(Protocol):
    """One database engine: how it is reached, locked and cleaned, and what its errors mean.

    Attributes:
        errors: What the driver raises by itself, without SQLAlchemy around it.
        facts: Keeps facts; `None`: every fact is read anew.
    """

    errors: tuple[type[Exception], ...]
    facts: Facts | None

    def engine(self, pool_size: int) -> Engine:
        """Return a new engine, whose connections begin no transaction by themselves."""
        ...

    def begin_read(self, connection: Connection) -> None:
        """Begin a transaction that reads on one snapshot."""
        ...

    def begin_write(self, connection: Connection, tenant: str | None) -> None:
        """Begin a transaction that no other one writes beside.

        Args:
            tenant: It writes only what is this tenant's, so that others may write what is theirs;
                `None`: it may write anything, alone.
        """
        ...

    def prepare(self, engine: Engine) -> None:
        """Make ready what the tables are created in. Idempotent."""
        ...

    def cleaning(
        self, connection: Connection
    ) -> AbstractContextManager[Sequence[Callable[[], object]]]:
        """Give the steps, each tried until it is not busy, that remove what was removed for good.

        They take room for a second copy of the database while they run; writers wait for them.
        """
        ...

    def hold(self, name: str) -> Hold | None:
        """Hold a lock of the location by its name; `None`: another does, or there are none."""
        ...

    def first(self, connection: Connection, statement: str, parameters: Sequence[Hashable]) -> Any:
        """Return the first value of a statement with a `?` for each parameter, `None` without."""
        ...

    def is_busy(self, error: BaseException) -> bool:
        """Tell whether an error says that others hold what is needed, for now."""
        ...

    def is_unavailable(self, cause: BaseException) -> bool:
        """Tell whether a driver's error says that the engine cannot be reached or used now."""
        ...

    def reason(self, cause: BaseException | None) -> str:
        """Say what a driver's error means, and what to do about it."""
        ...
