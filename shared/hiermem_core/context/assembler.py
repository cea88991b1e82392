"""The assembler: one thread, one budget, one context."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hiermem_core.context.budgets import budget_of, check_figure
from hiermem_core.context.fitting import (
    Mandatory,
    Material,
    OverBudget,
    first_kept_seq,
    fit,
    question_of,
)
from hiermem_core.context.placing_memory import has_slot
from hiermem_core.context.reporting import tokens_in
from hiermem_core.errors import (
    BudgetExceededError,
    ClosedError,
    HierMemError,
    InvalidInputError,
    ThreadNotFoundError,
)
from hiermem_core.models.events import Event, TurnsTrimmed
from hiermem_core.models.redaction import Redaction
from hiermem_core.models.threads import ModelInfo, Profile, ThreadLoad
from hiermem_core.models.turns import Turn, is_blank, is_standing
from hiermem_core.models.warnings import ContextWarning, warning_of
from hiermem_core.recall.recaller import Asked, asked_of
from hiermem_core.service.checking import TEXT_LIMIT
from hiermem_core.threads import reading
from hiermem_core.threads.counting import tokens_of, turns_warning
from hiermem_core.threads.drafts import TurnLike, as_drafts, cleaned_drafts
from hiermem_core.threads.placing import counted
from hiermem_core.threads.sliding_window import turns_back_to
from hiermem_core.threads.tally import opens_exchange
from hiermem_core.tokens.counters import ApproximateCounter, GuardedCounter

if TYPE_CHECKING:
    from hiermem_core.models.context import Context
    from hiermem_core.models.queries import Hit, RecallThreads, TurnHit
    from hiermem_core.models.text import TextCleaner
    from hiermem_core.protocols import ThreadMemory, TokenCounter
    from hiermem_core.recall.recaller import Recaller
    from hiermem_core.storage.database import Database

RECALLED = 100
"""Hits recalled for a context at most; its share of the budget decides how many are shown."""

MUCH = 2000
"""Tokens from which on a hit shows what was said before it."""

WITH_PREVIOUS = 3
"""The first hits, which then do."""

Current = str | TurnLike | Sequence[TurnLike] | None

_OF_WINDOWS = frozenset(
    {"turns_trimmed", "turns_not_covered", "leading_turns_dropped", "turn_unreadable"}
)


@dataclass(frozen=True, slots=True)
class _Stored:
    """What is read of a thread before it is loaded.

    Attributes:
        current: The given turns, numbered after the stored ones.
        tied: Stored turns from the exchange on that a given result answers; they are one unit
            with it, whatever the budget.
    """

    current: tuple[Turn, ...]
    standing: tuple[Turn, ...] = ()
    last_seq: int = 0
    tied: tuple[Turn, ...] = ()


class ContextAssembler:
    """Fit system prompt, tools, pinned turns and the window of a thread into a hard budget.

    Never writes. Calls `load` of the thread memory exactly once a build.
    """

    def __init__(
        self,
        database: Database,
        memory: ThreadMemory,
        *,
        counter: TokenCounter,
        window_exchanges: int | None,
        is_host_memory: bool = False,
        tell: Callable[[Event], None],
        recaller: Recaller | None = None,
        recall_share: float = 0.0,
        redaction: Redaction | None = None,
    ) -> None:
        self._database = database
        self._memory = memory
        self._counter = counter
        self._window_exchanges = window_exchanges
        self._is_host_memory = is_host_memory
        self._tell = tell
        self._recaller = recaller
        self._recall_share = recall_share
        self._redaction = redaction or Redaction()

    def build(
        self,
        *,
        tenant_id: str,
        thread_id: str,
        model: ModelInfo | None = None,
        profile: Profile | None = None,
        system: str = "",
        tools: Sequence[Mapping[str, Any]] = (),
        prefix_tokens: int = 0,
        current: Current = None,
        output_reserve: int | None = None,
        budget_tokens: int | None = None,
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
        """Return what a model call gets, in at most the budget.

        Args:
            tools: Tool schemas as sent to the model; they count.
            prefix_tokens: Tokens the caller sends besides; they count, and nothing is returned.
            current: Used and not stored. A text is a user turn. Without it the thread's newest
                user turn is current.
            budget_tokens: Tokens of everything returned; else the model's window less the reserve.
            output_reserve: Tokens kept for the answer; default: the model's output limit, at most
                a quarter of its window.
            recall: Look for what the window lost; nothing is embedded without.
            recall_threads: Whose turns: `"this"` thread's, `"all"` threads', or `None`: entries
                only.
            recall_namespace: Of entries, only those there and below.
            recalled: Hits of an earlier context for the same question; nothing is looked for then.
            recall_limit: Hits at most; default: as many as their share of the budget holds.
            query: What to recall by; default: the current user turn.
            question_follows: The caller adds the question behind what is returned: what is
                remembered then stands in the system prompt, and the thread may be new.
            window: Turns that stand in for the stored ones, before `current`; neither is stored.
                Notes, pinned turns and what is recalled are the thread's.
            on_over_budget: `"truncate"` shortens the current exchange, `"raise"` raises.

        Raises:
            ThreadNotFoundError: No such thread, and no `current`.
            BudgetExceededError: What must be kept does not fit.
        """
        _check_policy(on_over_budget)
        check_figure("prefix_tokens", prefix_tokens)
        _check_prompt(system, tools)
        budget, reserve = budget_of(model, budget_tokens, output_reserve)
        guard = GuardedCounter(self._counter)
        key = (tenant_id, thread_id)
        given = self._current_turns(key, [*(window or ()), *as_drafts(current)], guard)
        stored = self._read(tenant_id, thread_id, given, may_be_new=question_follows)
        standing = [*stored.standing, *(turn for turn in given if is_standing(turn))]
        prompt, others = _prompt_among(
            _system_turns(system, self._redaction.cleaner("prompt", *key)),
            [turn for turn in standing if not is_blank(turn)],
            takes_block=question_follows,
        )
        mandatory = Mandatory(
            prefix_tokens=prefix_tokens,
            system=tuple(prompt),
            tools=tuple(tools),
            standing=tuple(others),
        )
        left = budget - sum(part.tokens for part in mandatory.sections(guard))
        load = ThreadLoad(())
        if stored.last_seq or self._is_host_memory:
            room = max(0, left - tokens_of(stored.current, guard))
            load = self._memory.load(
                tenant_id=tenant_id,
                thread_id=thread_id,
                budget_tokens=max(room, tokens_of(stored.tied, guard)),
                model=model or ModelInfo("", budget),
                profile=_reaching(profile or Profile(), self._cap(profile), stored.tied),
            )
        load = _with_seqs(_of_a_host(load) if self._is_host_memory else load)
        if window is not None:
            load = _notes_of(load)
        last_seq = max([stored.last_seq, *(turn.seq for turn in load.window)])
        material = Material(
            mandatory=mandatory,
            load=load,
            current=_numbered(stored.current, last_seq),
            budget=budget,
            reserve=reserve,
            question_follows=question_follows,
            cap=self._cap(profile),
            on_over_budget=on_over_budget,
            warnings=tuple(_blank_warnings(standing, guard)),
        )
        if recalled is not None:
            material = replace(material, recalled=tuple(recalled), recall_share=self._recall_share)
        elif recall and self._recaller is not None:
            question = question_of(material) if query is None else query
            asked = asked_of(
                tenant_id,
                question[:TEXT_LIMIT],
                thread_id=thread_id,
                threads=recall_threads,
                restrictions={"namespace": recall_namespace},
                cleaner=self._redaction.cleaner("query", *key),
            )
            material = self._with_recall(material, asked, guard, recall_limit)
        context = self._fit(material, guard)
        self._tell_trimmed(tenant_id, thread_id, context)
        return context

    def _with_recall(
        self, material: Material, asked: Asked, guard: GuardedCounter, most: int | None
    ) -> Material:
        """Return the material with what the window, at its least, does not hold."""
        if self._recaller is None:
            return material
        material = replace(material, recall_share=self._recall_share)
        least = first_kept_seq(material, guard)
        room = material.budget - tokens_in(material.mandatory.sections(guard))
        asked = replace(
            asked,
            before_seq=least,
            limit=RECALLED if most is None else most,
            with_previous=WITH_PREVIOUS if most is None and room > MUCH else 0,
            degrades=True,
        )
        try:
            if not self._recaller.has_anything(asked):
                return material
            hits = self._recaller.recall(asked)
        except ClosedError:
            raise
        except HierMemError as error:
            facts = {"error": type(error).__name__}
            failed = ContextWarning("recall_failed", detail=facts)
            return replace(material, warnings=(*material.warnings, failed))
        return replace(
            material, recalled=tuple(hits), warnings=(*material.warnings, *hits.warnings)
        )

    def _cap(self, profile: Profile | None) -> int | None:
        given = profile.working_memory.window_exchanges if profile else None
        return self._window_exchanges if given is None else given

    def _fit(self, material: Material, guard: GuardedCounter) -> Context:
        context = None
        try:
            context = None if guard.failures else fit(material, guard)
        except BudgetExceededError:
            if not guard.failures:
                raise
        if context is not None and not guard.failures:
            return context
        facts = {"counter": guard.id}
        warning = ContextWarning("counter_failed", detail=facts)
        estimate = ApproximateCounter()
        return fit(replace(material, warnings=(*material.warnings, warning)), estimate)

    def _current_turns(
        self, key: tuple[str, str], current: Current, counter: TokenCounter
    ) -> list[Turn]:
        cleaner = self._redaction.cleaner("turn", *key)
        drafts = cleaned_drafts(as_drafts(current), cleaner)
        asked = [draft for draft in drafts if draft.role == "user"]
        if asked and is_blank(asked[-1]):
            raise InvalidInputError("current", "is blank; leave it out or say something")
        return [counted(draft, {counter.id: counter.count_turn(draft)}) for draft in drafts]

    def _read(
        self, tenant_id: str, thread_id: str, given: Sequence[Turn], *, may_be_new: bool
    ) -> _Stored:
        spoken = [turn for turn in given if not is_standing(turn)]
        with self._database.read() as connection:
            head = reading.head_of(connection, tenant_id, thread_id)
            if head is None and not (given or may_be_new or self._is_host_memory):
                raise ThreadNotFoundError(thread_id)
            if head is None:
                return _Stored(current=_numbered(spoken, 0))
            current = _numbered(spoken, head.last_seq)
            linked = reading.linked_to_calls(connection, head, current)
            calls = [turn.call_seq for turn in linked if turn.call_seq is not None]
            stored = [seq for seq in calls if seq <= head.last_seq]
            tied = turns_back_to(connection, head, min(stored)) if stored else ()
            standing = reading.standing_turns(connection, head)
            return _Stored(current, tuple(standing), head.last_seq, tuple(tied))

    def _tell_trimmed(self, tenant_id: str, thread_id: str, context: Context) -> None:
        trimmed = warning_of(context.warnings, "turns_trimmed")
        if trimmed is not None:
            self._tell(TurnsTrimmed(tenant_id, thread_id, trimmed.count, trimmed.tokens))


def _system_turns(system: str, cleaner: TextCleaner) -> list[Turn]:
    return [Turn(role="system", content=cleaner.text(system))] if system else []


def _prompt_among(
    system: Sequence[Turn], standing: Sequence[Turn], *, takes_block: bool
) -> tuple[Sequence[Turn], Sequence[Turn]]:
    """Return the system prompt and the other standing turns.

    Where none is given, the thread's leading system turn is the prompt if it has a slot, or if
    what is remembered has to stand in one.
    """
    lead = standing[0] if standing and not system else None
    if lead is None or lead.role != "system" or not (takes_block or has_slot(lead)):
        return system, standing
    return [lead], standing[1:]


def _blank_warnings(turns: Sequence[Turn], counter: TokenCounter) -> Iterator[ContextWarning]:
    blanks = [turn for turn in turns if is_blank(turn)]
    if blanks:
        yield turns_warning("blank_turns_dropped", blanks, counter)


def _numbered(turns: Sequence[Turn], last_seq: int) -> tuple[Turn, ...]:
    return tuple(replace(turn, seq=last_seq + 1 + place) for place, turn in enumerate(turns))


def _reaching(profile: Profile, cap: int | None, tied: Sequence[Turn]) -> Profile:
    """Return the profile with a cap that lets the tied exchanges be loaded; the fit caps again."""
    if cap is None or not tied:
        return profile
    cap = max(cap, sum(opens_exchange(turn) for turn in tied))
    return replace(profile, working_memory=replace(profile.working_memory, window_exchanges=cap))


def _of_a_host(load: ThreadLoad) -> ThreadLoad:
    """Return a host's load without standing turns, which are read anyway, and its own counts."""
    turns = {turn.id or str(place): turn for place, turn in enumerate(load.window)}
    window = [replace(t, token_counts={}) for t in turns.values() if not is_standing(t)]
    return replace(load, window=tuple(window))


def _notes_of(load: ThreadLoad) -> ThreadLoad:
    """Return the load without its window, and without what is said of that."""
    told = [warning for warning in load.warnings if warning.code not in _OF_WINDOWS]
    return replace(load, window=(), warnings=tuple(told))


def _with_seqs(load: ThreadLoad) -> ThreadLoad:
    """Return the load with ascending seqs, which a host's own turns may lack."""
    seqs = [turn.seq for turn in load.window]
    if all(before < after for before, after in pairwise([0, *seqs])):
        return load
    return replace(load, window=_numbered(load.window, 0))


def _check_prompt(system: str, tools: Sequence[Mapping[str, Any]]) -> None:
    if not isinstance(system, str):
        raise InvalidInputError("system", "must be text")
    if isinstance(tools, str) or not all(isinstance(tool, Mapping) for tool in tools):
        raise InvalidInputError("tools", "must be a list of schemas")


def _check_policy(on_over_budget: str) -> None:
    if on_over_budget not in {"truncate", "raise"}:
        raise InvalidInputError("on_over_budget", 'must be "truncate" or "raise"')
