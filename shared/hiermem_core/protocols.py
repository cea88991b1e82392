"""What users and backends implement: every interface, with its contract, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

    from hiermem_core.backends.records import (
        Attempt,
        Derivation,
        EntryCounts,
        EntryWrite,
        Kept,
        Scored,
        Settled,
        Vector,
        VectorCounts,
        Waiting,
    )
    from hiermem_core.backends.restrictions import Restrictions, Scope
    from hiermem_core.models.calls import CallMeta, Completion, PromptMessage
    from hiermem_core.models.entries import MemoryEntry
    from hiermem_core.models.events import Event
    from hiermem_core.models.notes import ThreadState
    from hiermem_core.models.patterns import Pattern
    from hiermem_core.models.threads import ModelInfo, Profile, ThreadLoad
    from hiermem_core.models.turns import TurnDraft


class Clock(Protocol):
    """The source of time."""

    def now(self) -> datetime:
        """Return the present as an aware datetime in UTC."""

    def monotonic(self) -> float:
        """Return seconds that never step back."""


@runtime_checkable
class TokenCounter(Protocol):
    """Count tokens.

    Counts are whole numbers, at least 0, deterministic, offline and defined for every text. Counts
    are stored with turns under `id`, so an id stands for one way of counting for good. A counter
    that only estimates says so by an attribute `exact = False`.
    """

    @property
    def id(self) -> str:
        """Name this way of counting."""

    def count(self, text: str) -> int:
        """Return the tokens of a text."""

    def count_turn(self, turn: TurnDraft) -> int:
        """Return the tokens of a turn with framing, name, parts and tool calls."""


@runtime_checkable
class Embedder(Protocol):
    """Turn texts into vectors.

    Equal texts give equal vectors, up to rounding. `model_id` stands for one model for good: the
    vectors stored under it are compared with new ones. An embedder whose questions are embedded
    another way than its texts has a method `embed_query(text)` besides.
    """

    @property
    def model_id(self) -> str:
        """Name the model."""

    @property
    def dimensions(self) -> int:
        """The length of every vector."""

    def embed(self, texts: Sequence[str]) -> Iterable[Iterable[float]]:
        """Return one vector a text, in order; a numpy array of that shape will do."""


class Observer(Protocol):
    """Get told of every committed change. What it raises is logged and affects nothing."""

    def __call__(self, event: Event, /) -> None:
        """Take one event."""


@runtime_checkable
class ChatModel(Protocol):
    """Complete a prompt. Called from a background thread, one call at a time a HierMem.

    A model that knows the sizes of its models has a method `model_info(model_id)` besides, which
    returns a `ModelInfo` or `None`.
    """

    def complete(
        self,
        messages: Sequence[PromptMessage],
        *,
        model_id: str | None,
        max_tokens: int,
        meta: CallMeta,
    ) -> Completion:
        """Return the reply to the messages.

        Args:
            model_id: The model to call and no other; `None`: its own.
            max_tokens: What the reply may take.
        """


@runtime_checkable
class Codec(Protocol):
    """Encode what is kept, such as by encryption, and decode it again.

    Called from any thread, within transactions. What it raises is told by the type alone, since its
    text might hold content.
    """

    def encode(self, text: str) -> str:
        """Return a text that a database takes: no NUL, no lone surrogate."""

    def decode(self, text: str) -> str:
        """Return the text that `encode` was given; raise where the text is not what it made."""


class UsageGuard(Protocol):
    """Allow or deny calls of a chat model, and hear what they took."""

    def check(self, meta: CallMeta, estimated_tokens: int) -> None:
        """Allow a call by returning.

        Args:
            estimated_tokens: Of the prompt, and of the longest reply.

        Raises:
            UsageDeniedError: The call must not be made.
        """

    def record(self, meta: CallMeta, completion: Completion) -> None:
        """Take note of a call that was made."""


@runtime_checkable
class ThreadMemory(Protocol):
    """The memory of threads: the seam for a strategy of your own, which replaces the built-in one.

    `load` returns everything the model should know from a thread, sized for this call: the turns
    read verbatim, in order, the current exchange last, and notes. It never calls a model and never
    writes. What it returns beyond the budget is trimmed by the assembler, oldest first.

    All but `save_context` raise `ThreadNotFoundError` for an unknown thread; other exceptions
    propagate to the caller.
    """

    def load(
        self,
        *,
        tenant_id: str,
        thread_id: str,
        budget_tokens: int,
        model: ModelInfo,
        profile: Profile,
    ) -> ThreadLoad:
        """Return window and notes within `budget_tokens`."""

    def save_context(
        self,
        *,
        tenant_id: str,
        thread_id: str,
        user_id: str | None,
        profile: Profile,
        cheap_model_id: str | None,
        meta: CallMeta,
        request: Any = None,
        result: Any = None,
    ) -> None:
        """Learn from an answer that is stored. Called from a background thread.

        What it raises is reported as an `UpdateFailed` and nothing else.

        Args:
            request: What the answer was made for, as the application gave it.
            result: The model's answer, as given; `None` where a human wrote or edited it.
        """

    def get_state(self, *, tenant_id: str, thread_id: str) -> ThreadState:
        """Return the notes of a thread. Never calls a model. Never writes."""

    def reset(self, *, tenant_id: str, thread_id: str) -> None:
        """Clear the notes of a thread, and count every turn so far as seen."""


class EntryReader(Protocol):
    """The living entries of one tenant at one moment.

    An entry that expired is absent here, so that nothing above has to ask.

    Attributes:
        now: The moment.
    """

    now: datetime

    def by_id(self, ids: Collection[str]) -> Mapping[str, Kept]:
        """Return those that exist."""

    def by_key(self, keys: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], Kept]:
        """Return those that exist, by namespace and key."""

    def by_digest(self, digests: Collection[str]) -> Mapping[str, Kept]:
        """Return for each digest the first entry that bears it."""

    def by_number(self, numbers: Collection[int]) -> Mapping[int, Kept]:
        """Return those that exist, by row number."""

    def listed(
        self, restrictions: Restrictions, *, limit: int, offset: int = 0
    ) -> Sequence[MemoryEntry]:
        """Return the entries within, newest change first, then by id."""

    def namespaces(self, under: str | None, *, limit: int, offset: int = 0) -> Sequence[str]:
        """Return, sorted, the namespaces at or below `under` that hold an entry."""

    def vectors_of(self, number: int) -> Sequence[tuple[float, ...]]:
        """Return the vectors of a row, as given: one, or one a passage; none while it waits."""

    def patterns(self, ids: Collection[str]) -> Mapping[str, Pattern]:
        """Return by id the patterns of living entries that are the text of one."""

    def listed_patterns(self, *, min_confidence: float, limit: int) -> Sequence[Pattern]:
        """Return the patterns of living entries, the most confident first, then by name."""

    def pattern_count(self) -> int:
        """Return how many patterns are kept, those of expired entries too."""

    def turn_roles(self, ids: Collection[str]) -> Mapping[str, str]:
        """Return the roles of those of the tenant's active turns that have these ids."""


class EntryWriter(EntryReader, Protocol):
    """A write transaction on the entries of one tenant; it sees what it wrote."""

    def admit(self, entry: MemoryEntry, old: MemoryEntry | None) -> None:
        """Count an entry that is to be put, in place of `old`, against the tenant's quota.

        Raises:
            QuotaExceededError: There is no room for it; it was not counted.
        """

    def put(self, writes: Sequence[EntryWrite]) -> None:
        """Write entries and patterns; an expired one of the same id or key makes room.

        The pattern of an entry that bears its name no more is removed.
        """

    def put_pattern(self, pattern: Pattern) -> None:
        """Write a pattern that is there anew; its entry stays as it is."""

    def remove(self, numbers: Collection[int]) -> None:
        """Remove rows with everything that hangs on them, patterns too."""

    def refresh(self, moments: Mapping[int, datetime]) -> None:
        """Have rows expire at other moments; neither version nor time of change moves."""

    def remove_expired(self, *, limit: int) -> tuple[int, int]:
        """Remove up to `limit` expired entries; return how many, and how many are left."""

    def traces(
        self, restrictions: Restrictions, ids: Collection[str] | None = None
    ) -> Mapping[int, str]:
        """Return row number and id of all entries within, expired ones too.

        Args:
            ids: Only these.
        """

    def derivations(self) -> Mapping[str, Derivation]:
        """Return by id how each entry was derived that was, expired ones too."""

    def rederive(self, sources: Mapping[int, tuple[str, ...]]) -> None:
        """Name other sources for rows; each entry's version grows.

        They are stale then: neither words nor vectors find them until they are put again.
        """

    def vector_count(self) -> int:
        """Return how many vectors are kept."""


class Backend(Protocol):
    """Keep entries, and find them again.

    Rules live above: a backend gets values that are checked, and decides nothing about them. All
    methods are safe to call from several threads. Embedders are never called here.

    Attributes:
        name: As in the setting `backend`.
        modes: The search modes it has an index for, beside those that need none.
    """

    name: str
    modes: frozenset[str]

    def read(self, tenant: str, now: datetime) -> AbstractContextManager[EntryReader]:
        """Read on one snapshot."""

    def write(self, tenant: str, now: datetime) -> AbstractContextManager[EntryWriter]:
        """Write in one transaction: one writer at a time, undone when the block raises."""

    def has_rows(self, scope: Scope) -> bool:
        """Tell whether there is a row in scope."""

    def keyword(self, scope: Scope, question: str, *, limit: int) -> Scored:
        """Return the rows with words of the question, by BM25, above 0 and best first."""

    def nearest(self, scope: Scope, vector: Vector, *, limit: int) -> Scored:
        """Return the rows with the nearest vectors, by cosine, best first.

        Of a row with several vectors the best counts. Finds every committed vector; never a row
        that is gone or whose content has changed since.
        """

    def cosines(self, scope: Scope, vector: Vector, rows: Iterable[int]) -> Mapping[int, float]:
        """Return the cosine of each of these rows that has a vector, the best of several."""

    def waiting(self, tenant: str, *, limit: int, due_ms: int | None = None) -> Waiting:
        """Return up to `limit` rows that wait for their vector, and what is embedded of them.

        With `due_ms`, rows stay alone whose pause after a failure ends later.
        """

    def settle(
        self, tenant: str, waiting: Waiting, tried: Mapping[int, Attempt], *, now_ms: int
    ) -> Settled:
        """Store the vectors of rows whose text is still the same, and note the failures.

        A row that failed five times waits no more; a failure of an outage does not count.
        """

    def entry_counts(self, tenant: str, now: datetime) -> EntryCounts:
        """Return what the tenant keeps."""

    def vector_counts(self, tenant: str) -> VectorCounts:
        """Return how the tenant's rows stand with their vectors."""

    def engines(self, tenant: str) -> Mapping[str, str]:
        """Say for each search mode what answers it now, in words."""

    def generation(self, tenant: str) -> int:
        """Return a figure that grows with every committed change of the tenant's entries."""
