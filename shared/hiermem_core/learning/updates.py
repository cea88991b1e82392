"""Updates of notes in the background: the stored turns and the mark are the queue."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import ClosedError, ConfigurationError
from hiermem_core.faults import reach
from hiermem_core.forks import renewed_after_fork
from hiermem_core.learning.due import Due, count_due, due_threads, forgive
from hiermem_core.models.calls import CallMeta
from hiermem_core.models.events import UpdateFailed
from hiermem_core.models.ids import new_id
from hiermem_core.models.threads import Profile, ThreadOptions
from hiermem_core.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from hiermem_core.learning.learner import Learner, MakeNotes
    from hiermem_core.models.events import Event, Stage
    from hiermem_core.protocols import Clock, ThreadMemory
    from hiermem_core.storage.database import Database

LONGEST_CLOSE = 5.0
"""Seconds that closing waits for a model at most. What it leaves is due at the next open."""

_LEARNING = Profile("resume", ThreadOptions(strategy="summary_buffer"))


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer that is stored, to be learned from; as `ThreadMemory.save_context` takes it."""

    tenant_id: str
    thread_id: str
    user_id: str | None
    profile: Profile
    cheap_model_id: str | None
    meta: CallMeta
    request: Any = None
    result: Any = None


_FIELDS = tuple(field.name for field in fields(Answered))


class UpdateQueue:
    """Hand answers to the thread memory, in a background thread, one at a time.

    Args:
        learner: Commits what a caller's function makes.
        learns: Tells whether the thread memory learns from answers under a profile; `None`: it
            is the caller's own, and gets every answer.
        can_learn: There is a chat model.
        every: As the setting `update_every_turns`.
        cheap_model_id: As the setting.
        is_inline: Learn in the caller's thread.
        tell: Takes events.
    """

    def __init__(
        self,
        database: Database,
        memory: ThreadMemory,
        learner: Learner,
        *,
        learns: Callable[[Profile], bool] | None,
        can_learn: bool,
        every: int,
        cheap_model_id: str | None,
        is_inline: bool,
        clock: Clock,
        tell: Callable[[Event], None],
    ) -> None:
        self._database = database
        self._memory = memory
        self._learner = learner
        self._learns = learns
        self._can_learn = can_learn
        self._every = every
        self._cheap_model_id = cheap_model_id
        self._is_inline = is_inline
        self._clock = clock
        self._tell = tell
        self._worker: Worker[Callable[[], None]] = Worker("hiermem-learn", lambda job: job())
        self._inside = threading.local()
        renewed_after_fork(self)

    def resume(self, tenant: str | None = None) -> int:
        """Have every thread learned that is due; see `Updates.resume`."""
        self._database.check_open()
        if self._learns is None:
            raise ConfigurationError("thread_memory", "keeps its own notes; resume them there")
        if not self._can_learn:
            raise ConfigurationError("chat_model", "is missing; give one to learn with")
        with self._database.write() as connection:
            forgive(connection, tenant)
            found = due_threads(connection, tenant, every=self._every)
        for key in found:
            self._hand_over(self._answered(*key, profile=_LEARNING))
        return len(found)

    def save(
        self,
        tenant_id: str,
        thread_id: str,
        *,
        user_id: str | None,
        profile: Profile | None,
        meta: CallMeta | None,
        request: Any,
        result: Any,
    ) -> None:
        """Have an answer learned from; see `Thread.save_context`."""
        self._database.check_open()
        try:
            given = self._answered(
                tenant_id, thread_id, profile=profile or Profile(), user_id=user_id
            )
            trace_id = (meta and meta.trace_id) or given.meta.trace_id
            given = replace(given, meta=replace(given.meta, trace_id=trace_id))
            if self._learns is None or self._learns(given.profile):
                self._hand_over(replace(given, request=request, result=result))
        except Exception as error:  # noqa: BLE001 - an answer is never broken by what is learned
            self._tell(UpdateFailed(tenant_id, thread_id, "enqueue", type(error).__name__))

    def learn_by(self, tenant_id: str, thread_id: str, make: MakeNotes) -> None:
        """Have notes made by a function; see `Thread.learn`."""
        self._database.check_open()
        key = (tenant_id, thread_id)
        self._take(key, ("by", *key), "host", partial(self._learner.learn_by, *key, make))

    def when_idle(self, timeout: float | None = None) -> bool:
        """Wait until this process has nothing to learn; see `HierMem.when_idle`."""
        self._database.check_open()
        return not self._is_inside and self._worker.when_idle(timeout)

    def count(self, tenant: str | None) -> Due:
        """Return how many threads are due and given up.

        Without a chat model only those count that were learned or tried with one before.
        """
        if self._learns is None:
            return Due()
        with self._database.read() as connection:
            return count_due(connection, tenant, every=self._every, only_noted=not self._can_learn)

    def after_fork(self) -> None:
        """Begin outside of the update that forked, in the child."""
        self._inside = threading.local()

    def close(self, timeout: float | None) -> None:
        """Take no more, and wait a while for what runs. Idempotent."""
        longest = LONGEST_CLOSE if timeout is None else min(timeout, LONGEST_CLOSE)
        self._worker.close(longest)

    def _answered(
        self, tenant_id: str, thread_id: str, *, profile: Profile, user_id: str | None = None
    ) -> Answered:
        trace_id = new_id(self._clock.now())
        return Answered(
            tenant_id,
            thread_id,
            user_id,
            profile,
            profile.cheap_model_id or self._cheap_model_id,
            CallMeta("MEMORY_WORKING", tenant_id, thread_id, user_id, trace_id),
        )

    def _hand_over(self, answered: Answered) -> None:
        """Have an answer learned from.

        Of a thread and profile the last one waits; of a caller's own memory every one.
        """
        key = (answered.tenant_id, answered.thread_id)
        is_host = self._learns is None
        save = partial(
            self._memory.save_context, **{name: getattr(answered, name) for name in _FIELDS}
        )
        place = object() if is_host else (*key, answered.profile)
        self._take(key, place, "host" if is_host else "commit", save)

    def _take(
        self, key: tuple[str, str], place: Hashable, stage: Stage, learn: Callable[[], None]
    ) -> None:
        """Learn now, or in the background; what comes from inside an update waits for the next."""
        job = partial(self._run, key, stage, learn)
        if self._is_inline:
            if not self._is_inside:
                job()
        elif self._worker.put(place, job):
            reach("updates.after_enqueue")
        else:
            self._tell(UpdateFailed(*key, "enqueue", "no_thread"))

    def _run(self, key: tuple[str, str], stage: Stage, learn: Callable[[], None]) -> None:
        try:
            with self._learning():
                learn()
        except ClosedError:
            return  # what is not learned is due at the next open
        except (Exception, SystemExit) as error:  # noqa: BLE001 - somebody else's may raise anything
            self._tell(UpdateFailed(*key, stage, type(error).__name__))

    @property
    def _is_inside(self) -> bool:
        return getattr(self._inside, "update", False)

    @contextmanager
    def _learning(self) -> Iterator[None]:
        self._inside.update = True
        try:
            yield
        finally:
            self._inside.update = False
