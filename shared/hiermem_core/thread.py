"""The handle of one thread."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from hiermem_core.errors import InvalidInputError, ThreadNotFoundError
from hiermem_core.models.threads import Profile, TurnList
from hiermem_core.operations import watched
from hiermem_core.recall.recaller import asked_of
from hiermem_core.threads import reading
from hiermem_core.threads.newest import MOST
from hiermem_core.threads.pruning import prune

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import timedelta

    from hiermem_core.context.assembler import Current
    from hiermem_core.context.fitting import OverBudget
    from hiermem_core.learning.learner import MakeNotes
    from hiermem_core.models.calls import CallMeta
    from hiermem_core.models.context import Context
    from hiermem_core.models.notes import ThreadState
    from hiermem_core.models.queries import Hit, RecallResult, RecallThreads, TurnHit
    from hiermem_core.models.threads import ModelInfo, PruneReport, ThreadInfo
    from hiermem_core.models.turns import Status, Turn
    from hiermem_core.protocols import TokenCounter
    from hiermem_core.services import Services
    from hiermem_core.threads.drafts import TurnLike


@watched(
    writes="append edit_turn delete_turns replace reset prune delete",
    reads="turns context recall state",
)
class Thread:
    """One conversation of one tenant."""

    def __init__(
        self, services: Services, tenant_id: str, thread_id: str, *, actor: str | None = None
    ) -> None:
        self._watch = (services.memories.operations, tenant_id, thread_id, actor)
        self.tenant_id = tenant_id
        self.id = thread_id
        self._services = services
        self._key = (tenant_id, thread_id)

    @property
    def counter(self) -> TokenCounter:
        """The counter whose figures are stored with the turns."""
        return self._services.counter

    def append(
        self,
        turns: Sequence[TurnLike],
        *,
        expected_seq: int | None = None,
        removing: Sequence[str] = (),
        status: Status = "active",
    ) -> TurnList:
        """Store turns at the end, as one contiguous batch, and return them as stored.

        Repeating an append is harmless where turns have ids. An empty batch does nothing.

        Args:
            turns: `TurnDraft` values or `{"role": ..., "content": ...}` mappings.
            expected_seq: Store only if this is the newest seq.
            removing: Ids of active turns that are archived in the same transaction.
            status: `"archived"`: they are kept beside the thread; nothing is removed then.

        Raises:
            InvalidInputError: A turn cannot be stored. Nothing was stored.
            NotFoundError: A turn to remove is not there. Nothing was stored.
            TurnConflictError: An id is stored with other content. Nothing was stored.
            VersionConflictError: `expected_seq` is not the newest seq. Nothing was stored.
        """
        if status == "archived":
            return self._services.store.append_archived(*self._key, turns)
        return self._services.store.append(
            *self._key, turns, expected_seq=expected_seq, removing=removing
        )

    def turns(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        first: int | None = None,
        last: int | None = None,
        status: Status | None = "active",
    ) -> TurnList:
        """Return turns in ascending seq; with `first` or `last`, the oldest or newest that many.

        Args:
            status: `None`: active and archived ones.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        for figure in (first, last):
            check_page(0 if figure is None else figure, 0)
        is_newest = (after, before, first, status) == (0, None, None, "active")
        with self._services.database.read() as connection:
            if is_newest and last is not None and last <= MOST:
                _, turns = self._services.newest_turns.read(connection, *self._key, last)
                return TurnList(reversed(turns))
            head = reading.require_head(connection, *self._key)
            return reading.turns_between(
                connection,
                head.number,
                after=after,
                before=before,
                first=first,
                last=last,
                status=status,
            )

    def count(self, status: Status | None = "active") -> int:
        """Return how many turns of a status there are; reads none.

        Args:
            status: `None`: active and archived ones.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        with self._services.database.read() as connection:
            head = reading.require_head(connection, *self._key)
            return reading.count_of(connection, head.number, status)

    def known(self, turn_ids: Iterable[str]) -> set[str]:
        """Return those of these ids that turns of the thread have, archived ones too.

        A new thread has none. Reads no turn.
        """
        with self._services.database.read() as connection:
            return reading.known_ids(connection, *self._key, list(turn_ids))

    def info(self) -> ThreadInfo:
        """Return counts and times of the thread, without reading its turns.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        with self._services.database.read() as connection:
            return reading.require_head(connection, *self._key).info()

    def generation(self) -> tuple[int, int]:
        """Return figures that change with everything that can change what is recalled.

        Those of `Tenant.generation`, as a recall finds entries of the tenant.
        """
        return self._services.generation(self.tenant_id)

    def edit_turn(self, turn_id: str, content: str, *, user_id: str | None = None) -> Turn:
        """Replace a turn's content; id, seq and tool calls stay, the revision grows.

        Raises:
            NotFoundError: There is no such thread or active turn.
        """
        return self._services.store.edit_turn(*self._key, turn_id, content, user_id=user_id)

    def delete_turns(
        self, turn_ids: Iterable[str], *, status: Status = "active"
    ) -> dict[str, bool]:
        """Delete turns of a status; say for each id whether there was one."""
        if status == "active":
            return self._services.store.delete_turns(*self._key, turn_ids)
        wanted = list(turn_ids)
        gone = self._services.store.erase(*self._key, status, wanted)
        return {turn_id: any(turn.id == turn_id for turn in gone) for turn_id in wanted}

    def replace(
        self,
        turns: Sequence[TurnLike] | None,
        *,
        old: Literal["archive", "delete"] = "archive",
        status: Status = "active",
    ) -> TurnList:
        """Give the thread new turns in one transaction.

        `None` changes nothing; an empty list empties the thread. Turns that stand at the same
        place already are left as they are, where the old ones are archived.

        Args:
            old: `"delete"`: the old ones, and those archived before, are deleted for good.
            status: Of the new ones, where the old ones are deleted.
        """
        if turns is None:
            self._services.database.check_open()
            return TurnList()
        if old == "delete":
            return self._services.store.renew(*self._key, turns, status)
        return self._services.store.replace(*self._key, turns)

    def state(self) -> ThreadState:
        """Return the notes of the thread; empty where none were ever written.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        return self._services.thread_memory.get_state(tenant_id=self.tenant_id, thread_id=self.id)

    def reset(self) -> None:
        """Clear the notes and mark every turn so far as seen; the turns stay.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        self._services.thread_memory.reset(tenant_id=self.tenant_id, thread_id=self.id)

    def save_context(
        self,
        *,
        user_id: str | None = None,
        profile: Profile | None = None,
        meta: CallMeta | None = None,
        request: Any = None,
        result: Any = None,
    ) -> None:
        """Learn from the newest answer, in the background; call it after each.

        The turns must be stored. Returns at once and raises nothing: what fails is told to the
        observer as `UpdateFailed`, and the turns stay due. Under the sliding window it does
        nothing.

        Args:
            user_id: Whose answer it is; for the usage guard.
            meta: Its trace id is passed on to the chat model.
            request: For a thread memory of your own; the built-in one reads the stored turns.
            result: As `request`.

        Raises:
            ClosedError: The HierMem was closed.
        """
        self._services.updates.save(
            self.tenant_id,
            self.id,
            user_id=user_id,
            profile=profile,
            meta=meta,
            request=request,
            result=result,
        )

    def learn(self, make: MakeNotes) -> None:
        """Have notes made by a function of your own, in the background; for your own strategies.

        The function gets the notes so far and the answered turns that they do not cover, in order,
        and returns new notes, whose `turn_count` is the seq of the newest turn they cover, or
        `None` for no change. They are committed as those of the built-in strategy are: only if no
        turn it was given has changed meanwhile and nothing was reset; else it is called again, on
        what is there then. What it raises is told to the observer as `UpdateFailed`.

        Raises:
            ClosedError: The HierMem was closed.
        """
        self._services.updates.learn_by(self.tenant_id, self.id, make)

    def prune(
        self,
        *,
        max_turns: int | None = None,
        max_age: timedelta | None = None,
        max_bytes: int | None = None,
        dry_run: bool = False,
    ) -> PruneReport:
        """Delete the oldest whole exchanges until the thread is within every limit given.

        The newest exchange and standing turns stay; under the summary buffer those too that the
        notes do not cover. The notes stay as they are.
        """
        learns = self._services.strategies.learns(Profile())
        return prune(
            self._services.store,
            self._key,
            self.turns(),
            max_turns=max_turns,
            oldest=None if max_age is None else self._services.clock.now() - max_age,
            max_bytes=max_bytes,
            covered_seq=self.state().turn_count if learns else None,
            dry_run=dry_run,
        )

    def delete(self, status: Status | None = None) -> bool:
        """Delete the thread with all its turns; say whether there was one.

        Args:
            status: Delete its turns of this status only; say whether there were any.
        """
        if status is None:
            return self._services.store.delete_thread(*self._key)
        with suppress(ThreadNotFoundError):
            return bool(self._services.store.erase(*self._key, status))
        return False

    def context(
        self,
        *,
        current: Current = None,
        budget_tokens: int | None = None,
        model: ModelInfo | None = None,
        system: str = "",
        tools: Sequence[Mapping[str, Any]] = (),
        prefix_tokens: int = 0,
        profile: Profile | None = None,
        output_reserve: int | None = None,
        on_over_budget: OverBudget = "truncate",
        recall: bool = True,
        recall_threads: RecallThreads | None = "this",
        recall_namespace: str | None = None,
        recalled: Sequence[Hit | TurnHit] | None = None,
        recall_limit: int | None = None,
        query: str | None = None,
        question_follows: bool = False,
        window: Sequence[TurnLike] | None = None,
    ) -> Context:
        """Return what a model call gets of this thread, in at most the budget.

        Never writes a turn; calls no model but the embedder, for recall. See
        `ContextAssembler.build` for the arguments.

        Raises:
            ThreadNotFoundError: No such thread, and no `current`.
            BudgetExceededError: What must be kept does not fit.
        """
        return self._services.assembler.build(
            tenant_id=self.tenant_id,
            thread_id=self.id,
            current=current,
            budget_tokens=budget_tokens,
            model=model,
            system=system,
            tools=tools,
            prefix_tokens=prefix_tokens,
            profile=profile,
            output_reserve=output_reserve,
            on_over_budget=on_over_budget,
            recall=recall,
            recall_threads=recall_threads,
            recall_namespace=recall_namespace,
            recalled=recalled,
            recall_limit=recall_limit,
            query=query,
            question_follows=question_follows,
            window=window,
        )

    def recall(
        self,
        question: str,
        /,
        *,
        threads: RecallThreads | None = "this",
        before: int | None = None,
        limit: int = 10,
        explain: bool = False,
        **restrictions: Any,
    ) -> RecallResult:
        """Return the entries of the tenant and turns that answer a question, best first.

        Args:
            threads: `"this"`: turns of this thread; `"all"`: of every thread; `None`: entries only.
            before: Of this thread only turns before this seq, as the others are at hand; nothing is
                embedded then where there is nothing to find.
            restrictions: On entries, as in `MemoryQuery`: `namespace`, `filter`, `type`, ...

        Raises:
            InvalidInputError: A restriction cannot be understood.
            EmbedderMismatchError: The location's vectors are by another embedder.
        """
        self._services.database.check_open()
        asked = asked_of(
            self.tenant_id,
            question,
            thread_id=self.id,
            threads=threads,
            limit=limit,
            explain=explain,
            restrictions=restrictions,
            cleaner=self._services.memories.redaction.cleaner("query", *self._key),
        )
        recaller = self._services.recaller
        if before is None:
            return recaller.recall(asked)
        return recaller.recall_beside(replace(asked, before_seq=before))

    def __repr__(self) -> str:
        """Name thread and tenant."""
        return f"Thread({self.id!r}, tenant={self.tenant_id!r})"


def check_page(limit: int, offset: int) -> None:
    """Raise `InvalidInputError` where a page is negative."""
    for name, figure in (("limit", limit), ("offset", offset)):
        if isinstance(figure, bool) or not isinstance(figure, int) or figure < 0:
            raise InvalidInputError(name, "must be a whole number, at least 0")
