"""The options of a working memory, checked."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import ConfigurationError
from hiermem_core.working.answers import tells_of_failure

if TYPE_CHECKING:
    from hiermem_core.models.events import Event
    from hiermem_core.protocols import Clock

Scope = Sequence[Hashable] | Callable[[], Sequence[Hashable]]


def _system_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Options:
    """How a working memory serves; see `WorkingMemory`.

    Attributes:
        tenant: Named in events where the searcher does not say whose it is: the scope's first part.
    """

    scope: Callable[[], Sequence[Hashable]]
    tenant: str
    ttl_seconds: float
    max_entries: int
    enabled: bool
    monotonic: Callable[[], float]
    now: Callable[[], datetime]
    normalize: Callable[[Any], Any] | None
    is_failure: Callable[[Any], bool]
    auto_populate: bool
    observer: Callable[[Event], None] | None


def checked_options(
    *,
    scope: Scope = (),
    ttl_seconds: float = 60.0,
    max_entries: int = 100,
    enabled: bool = True,
    clock: Callable[[], float] | Clock = time.monotonic,
    normalize: Callable[[Any], Any] | None = None,
    is_failure: Callable[[Any], bool] | None = None,
    auto_populate: bool = False,
    observer: Callable[[Event], None] | None = None,
) -> Options:
    """Return options that hold every rule.

    Raises:
        ConfigurationError: One is out of range.
    """
    if not _is_number(ttl_seconds) or math.isnan(ttl_seconds) or ttl_seconds < 0:
        raise ConfigurationError("ttl_seconds", "must be 0 or more seconds; give 0 to keep nothing")
    if type(max_entries) is not int or max_entries < 1:
        raise ConfigurationError("max_entries", "must be a whole number above 0; give at least 1")
    if not callable(getattr(clock, "monotonic", clock)):
        raise ConfigurationError("clock", "must be a Clock, or a function that returns seconds")
    check_function("normalize", normalize)
    check_function("is_failure", is_failure)
    check_function("observer", observer)
    return Options(
        scope=_checked_scope(scope),
        tenant=_first_text(scope),
        ttl_seconds=float(ttl_seconds),
        max_entries=max_entries,
        enabled=enabled,
        monotonic=clock if callable(clock) else clock.monotonic,
        now=getattr(clock, "now", _system_now),
        normalize=normalize,
        is_failure=tells_of_failure if is_failure is None else is_failure,
        auto_populate=auto_populate,
        observer=observer,
    )


def check_function(name: str, value: Any) -> None:
    """Check an option that is a function or `None`.

    Raises:
        ConfigurationError: It cannot be called.
    """
    if value is not None and not callable(value):
        raise ConfigurationError(name, "must be a function; leave it out for the usual one")


def _checked_scope(scope: Scope) -> Callable[[], Sequence[Hashable]]:
    if callable(scope):
        return scope
    if isinstance(scope, str | bytes):
        raise ConfigurationError("scope", "is one part; give a sequence of parts, such as (part,)")
    if not isinstance(scope, Iterable):
        raise ConfigurationError("scope", "must be a sequence of parts; give (part,) for one")
    return _constant(tuple(scope))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _first_text(scope: Scope) -> str:
    first = next(iter(scope), "") if not callable(scope) else ""
    return first if isinstance(first, str) else ""


def _constant(scope: Sequence[Hashable]) -> Callable[[], Sequence[Hashable]]:
    return lambda: scope
