"""The error tree: every error HierMem raises on purpose.

    HierMemError
    ├── ConfigurationError (ValueError)
    ├── MissingExtraError (ImportError)
    ├── InvalidInputError (ValueError)
    │   ├── MissingIdentityError
    │   ├── LimitExceededError
    │   ├── InvalidNamespaceError
    │   ├── InvalidFilterError
    │   └── DimensionMismatchError
    ├── NotFoundError (LookupError)
    │   ├── ThreadNotFoundError
    │   ├── PatternNotFoundError
    │   └── SessionNotFoundError
    ├── ConflictError
    │   ├── VersionConflictError
    │   ├── KeyConflictError
    │   └── TurnConflictError
    ├── BudgetExceededError
    ├── UsageDeniedError
    ├── QuotaExceededError
    ├── RedactionError
    │   └── RejectedByRedactorError
    ├── UnsupportedSearchError
    ├── EmbedderMismatchError
    ├── BackendError
    │   ├── BackendUnavailableError
    │   ├── IndexUnavailableError
    │   └── MigrationError
    └── ClosedError (RuntimeError)

An error keeps its facts as attributes, ends with the remedy, survives pickling, and never holds
content or secrets. Errors of SQL drivers are chained as the cause and never leak by themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def _rebuild(kind: type[HierMemError], text: str, facts: dict[str, Any]) -> HierMemError:
    error = kind.__new__(kind, text)
    error.args = (text,)
    error.__dict__.update(facts)
    return error


class HierMemError(Exception):
    """Root of every error HierMem raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by text and facts, so that no constructor runs again."""
        return _rebuild, (type(self), str(self), dict(self.__dict__))


class ConfigurationError(HierMemError, ValueError):
    """An option or setting is unknown, contradictory or out of range."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        super().__init__(f"{name}: {reason}")


class MissingExtraError(HierMemError, ImportError):
    """A feature needs an optional dependency that is not installed."""

    def __init__(self, extra: str, *, feature: str) -> None:
        self.extra = extra
        self.feature = feature
        super().__init__(f'{feature} needs an extra; run: pip install "hiermem-core[{extra}]"')


class InvalidInputError(HierMemError, ValueError):
    """A value given by the caller cannot be accepted."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"{name}: {reason}")


class MissingIdentityError(InvalidInputError):
    """A tenant or thread is needed and none was named."""

    def __init__(self, name: str) -> None:
        super().__init__(name, f"no {name} was given and there is no default; name one")


class LimitExceededError(InvalidInputError):
    """A value is larger than its documented limit. Nothing was cut."""

    def __init__(self, name: str, *, limit: int, actual: int) -> None:
        super().__init__(name, f"{actual} exceeds the limit of {limit}; send less at once")
        self.limit = limit
        self.actual = actual


class InvalidNamespaceError(InvalidInputError):
    """A namespace is no path of named segments."""

    def __init__(self, reason: str) -> None:
        super().__init__("namespace", reason)


class InvalidFilterError(InvalidInputError):
    """A filter holds an unknown operator, or one with an operand it cannot take."""

    def __init__(self, field: str, operator: str, reason: str) -> None:
        super().__init__("filter", f"{field!r} {operator}: {reason}")
        self.field = field
        self.operator = operator


class DimensionMismatchError(InvalidInputError):
    """A vector has another length than the embedder's vectors. Nothing was stored."""

    def __init__(self, *, expected: int, actual: int) -> None:
        reason = f"{actual} numbers where {expected} are expected; use one embedder throughout"
        super().__init__("embedding", reason)
        self.expected = expected
        self.actual = actual


class NotFoundError(HierMemError, LookupError):
    """The thing asked for does not exist for this tenant."""


class ThreadNotFoundError(NotFoundError):
    """The tenant has no such thread. A foreign tenant's thread gives the same error."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"thread {thread_id!r} not found; append a turn to create it")


class PatternNotFoundError(NotFoundError):
    """The tenant has no such pattern."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"pattern {name!r} not found; learn it first")


class SessionNotFoundError(NotFoundError):
    """The tenant has no such session."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"session {session_id!r} not found; start it first")


class ConflictError(HierMemError):
    """The stored state is not the one the caller expected. Nothing was changed."""


class VersionConflictError(ConflictError):
    """Another writer was faster."""

    def __init__(self, *, expected: int, actual: int) -> None:
        self.expected = expected
        self.actual = actual
        super().__init__(f"expected {expected}, found {actual}; read again and retry")


class KeyConflictError(ConflictError):
    """An id and a key name two different entries."""

    def __init__(self, entry_id: str, key: str) -> None:
        self.entry_id = entry_id
        self.key = key
        super().__init__(
            f"id {entry_id!r} and key {key!r} name two entries; store under one of them"
        )


class TurnConflictError(ConflictError):
    """The thread holds another content under this turn id.

    Attributes:
        places: Of the turns to append, those it is true of, from 0; `turn_id` is the first one's.
    """

    def __init__(self, turn_id: str, places: tuple[int, ...] = (0,)) -> None:
        self.turn_id = turn_id
        self.places = places
        super().__init__(
            f"turn {turn_id!r} is stored with other content; use edit_turn or another id"
        )


class BudgetExceededError(HierMemError):
    """The parts that must be kept do not fit the budget.

    Attributes:
        needed: Tokens the mandatory parts take.
        available: Tokens of the budget.
        parts: Tokens per mandatory part, by section name.
    """

    def __init__(self, *, needed: int, available: int, parts: Mapping[str, int]) -> None:
        self.needed = needed
        self.available = available
        self.parts = dict(parts)
        listed = ", ".join(f"{name} {tokens}" for name, tokens in self.parts.items())
        super().__init__(
            f"{needed} tokens needed, {available} available ({listed}); "
            f"raise the budget or shorten {max(self.parts, key=self.parts.__getitem__)}"
        )


class UsageDeniedError(HierMemError):
    """A usage guard denied a call of a chat model. Raised by guards; no call was made."""

    def __init__(self, reason: str = "the allowance is used up; raise it or wait") -> None:
        self.reason = reason
        super().__init__(f"the call was denied: {reason}")


class QuotaExceededError(HierMemError):
    """A write is beyond the tenant's quota. It was not made.

    Attributes:
        name: `max_entries`, `max_bytes` or `writes_per_minute`.
        used: What the tenant has of it.
        requested: What the write would add.
    """

    def __init__(self, name: str, *, limit: int, used: int, requested: int) -> None:
        self.name = name
        self.limit = limit
        self.used = used
        self.requested = requested
        remedy = "wait a minute" if name == "writes_per_minute" else "delete something"
        super().__init__(
            f"{name}: {used} used and {requested} more exceed {limit}; {remedy} or raise the quota"
        )


class RedactionError(HierMemError):
    """The redactor failed at a text. Nothing of it was stored, embedded or sent.

    What the redactor raised is named by its type alone, since its text might hold the content.

    Attributes:
        kind: What the text belongs to: `entry`, `turn`, `query`, `prompt` or `notes`.
    """

    def __init__(self, kind: str, reason: str) -> None:
        self.kind = kind
        self.reason = reason
        super().__init__(f"{kind}: {reason}; nothing was stored, mend the redactor")


class RejectedByRedactorError(RedactionError):
    """The redactor rejected a text. Nothing of it was stored, embedded or sent."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(kind, reason)
        self.args = (f"{kind} rejected: {reason}; nothing was stored, leave that out",)


class UnsupportedSearchError(HierMemError):
    """The backend has no index for a search mode."""

    def __init__(self, mode: str, backend: str, remedy: str) -> None:
        self.mode = mode
        self.backend = backend
        super().__init__(f"{mode} search needs what backend {backend!r} has not; {remedy}")


class EmbedderMismatchError(HierMemError):
    """The location's vectors were made by another embedder.

    Attributes:
        stored: What the location was written with, such as `all-MiniLM-L6-v2 (384)`.
        given: What it was opened with.
    """

    def __init__(self, *, stored: str, given: str) -> None:
        self.stored = stored
        self.given = given
        super().__init__(
            f"vectors here are by {stored}, the embedder given is {given}; "
            'give the first, or open with on_embedder_change="degrade" and reindex'
        )


class BackendError(HierMemError):
    """The storage below HierMem failed. The driver's error is the cause."""

    def __init__(self, operation: str, reason: str) -> None:
        self.operation = operation
        self.reason = reason
        super().__init__(f"{operation} failed: {reason}")


class BackendUnavailableError(BackendError):
    """The storage cannot be reached or stays locked."""


class IndexUnavailableError(BackendError):
    """The vector index cannot answer. Nothing is lost; it can be rebuilt from the rows."""


class MigrationError(BackendError):
    """The stored schema cannot be used by this version."""

    def __init__(self, *, stored: int, supported: int, reason: str) -> None:
        self.stored = stored
        self.supported = supported
        super().__init__(
            "opening",
            f"the location has schema {stored}, this version supports {supported}: {reason}",
        )


class ClosedError(HierMemError, RuntimeError):
    """The HierMem was closed."""

    def __init__(self) -> None:
        super().__init__("this HierMem is closed; open the location again")
