"""Working memory, Layer 1: an LRU and TTL cache with single flight in front of any search."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import InvalidInputError
from hiermem_core.working.keys import NOT_GIVEN, Frozen, Key, UnkeyableError, freeze
from hiermem_core.working.options import Options, checked_options
from hiermem_core.working.serving import Call, Serving
from hiermem_core.working.shapes import Searcher, recognise

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hiermem_core.models.events import Event
    from hiermem_core.protocols import Clock
    from hiermem_core.working.options import Scope
    from hiermem_core.working.values import Served, WorkingMemoryStats


class WorkingMemory:
    """Answer repeated and simultaneous searches without asking the searcher again.

    An answer equals the searcher's own in type, fields, order and values, and is a copy that
    nobody else sees. A changed entry is never missed: where the searcher has a `generation`, it is
    compared at every call. Content is as of the newest write of what it searches; scores, and the
    order they give, may differ from fresh ones where only other rows, such as those of another
    tenant, changed how rare a word is. Safe to use from threads, tasks and several event
    loops at once, and keeps no process alive: a load nobody waits for ends with it.

    Args:
        searcher: A `MemoryService` or a tenant, or their async twins; a retriever of LangChain or
            LlamaIndex; anything with `search`; a function. See `hiermem_core.working.shapes`.
        scope: What the searcher is bound to, such as the tenant; a function where that changes
            from call to call. Part of every key. What the public fields of a retriever are set to
            is part of it already; what else a searcher is set to belongs here.
        ttl_seconds: How old an answer may get, from the start of its load; 0 keeps nothing and
            still lets simultaneous calls share a load.
        max_entries: Answers kept at most; the least recently used one leaves first.
        enabled: `False`: every call goes to the searcher.
        clock: Gives monotonic seconds. A `Clock` also gives the present for entries that expire.
        normalize: Returns what of a query counts for its key; by default all of it, unless the
            searcher declares what it ignores.
        is_failure: Tells whether a result says that it failed; such a one is not kept. By default:
            `success` is false, or `error` is not null.
        auto_populate: After an entry was added through `create_working_memory`, ask the pinned
            queries, and the one that equals the new content, again.
        observer: Is told a `RecallServed` of each call.
        generation: Returns a figure that changes with all that can change an answer; stands for
            the searcher's own.

    Raises:
        ConfigurationError: An option is out of range, or nothing searches.
    """

    def __init__(
        self,
        searcher: Any,
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
        generation: Callable[[], Frozen] | None = None,
    ) -> None:
        options = checked_options(
            scope=scope,
            ttl_seconds=ttl_seconds,
            max_entries=max_entries,
            enabled=enabled,
            clock=clock,
            normalize=normalize,
            is_failure=is_failure,
            auto_populate=auto_populate,
            observer=observer,
        )
        known = searcher if isinstance(searcher, Searcher) else recognise(searcher, generation)
        self._searcher = known
        self._asking = Asking(options)

    def search(self, /, *args: Any, **arguments: Any) -> Any:
        """Return what the searcher's own search returns, from what is kept where that is current.

        Raises:
            ConfigurationError: The searcher can only be awaited; call `asearch`.
            Exception: What the searcher raises, unchanged.
        """
        return self._asking.ask(self._searcher, args, arguments).result

    async def asearch(self, /, *args: Any, **arguments: Any) -> Any:
        """Return what `search` returns; shares its answers and flights.

        Cancelling a caller ends its waiting, and nothing else.

        Raises:
            Exception: What the searcher raises, unchanged.
        """
        return (await self._asking.aask(self._searcher, args, arguments)).result

    def search_with_source(self, /, *args: Any, **arguments: Any) -> Served[Any]:
        """Return what `search` returns, and where it came from."""
        return self._asking.ask(self._searcher, args, arguments)

    async def asearch_with_source(self, /, *args: Any, **arguments: Any) -> Served[Any]:
        """Return what `asearch` returns, and where it came from."""
        return await self._asking.aask(self._searcher, args, arguments)

    def get(self, /, *args: Any, **arguments: Any) -> Any:
        """Return what is kept of a search; `None` where nothing is. Loads and counts nothing."""
        return self._asking.find(self._searcher, args, arguments)

    async def aget(self, /, *args: Any, **arguments: Any) -> Any:
        """Return what `get` returns."""
        return await self._asking.afind(self._searcher, args, arguments)

    def invalidate(self, query: Any = None) -> int:
        """Drop every answer of a query, whatever else was asked, or all; return how many.

        Pins stay, and hold the next answers. Loads in progress answer their callers and are not
        kept.
        """
        if query is None:
            return self._asking.serving.table.drop(lambda key: True)  # noqa: ARG005 - all keys
        return self._asking.drop_query(self._searcher, query)

    def clear(self) -> None:
        """Drop all answers and all pins, and count from 0."""
        self._asking.serving.table.clear()

    def stats(self) -> WorkingMemoryStats:
        """Return how it served, as figures of one moment."""
        return self._asking.serving.table.stats()

    def pin(self, /, *args: Any, **arguments: Any) -> None:
        """Keep the answer of a search whatever its age and use, and load it if it is absent.

        It holds with `ttl_seconds=0` too. A write or `invalidate` still drops it; the next search
        loads it, and it is pinned again.

        Raises:
            LimitExceededError: Half of `max_entries` is pinned. Nothing changed.
            InvalidInputError: An argument has no stable key.
            Exception: What the searcher raises; the pin is not set then.
        """
        asking, searcher = self._asking, self._searcher
        key = asking.set_pin(searcher, args, arguments)
        try:
            asking.ask(searcher, args, arguments)
        except BaseException:  # what was not answered is not pinned
            asking.take_pin(key)
            raise

    async def apin(self, /, *args: Any, **arguments: Any) -> None:
        """Do what `pin` does."""
        asking, searcher = self._asking, self._searcher
        key = asking.set_pin(searcher, args, arguments)
        try:
            await asking.aask(searcher, args, arguments)
        except BaseException:  # what was not answered is not pinned
            asking.take_pin(key)
            raise

    def unpin(self, /, *args: Any, **arguments: Any) -> bool:
        """Have an answer age like others again; say whether it was pinned."""
        return self._asking.unpin(self._searcher, args, arguments)

    def __repr__(self) -> str:
        """Show how it serves."""
        told = self.stats()
        return f"WorkingMemory({told.entries} entries, hit rate {told.hit_rate:.2f})"


class Asking:
    """Ask searchers through one `Serving`; what `WorkingMemory` and wrapped things share."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.serving = Serving(options)

    def ask(self, searcher: Searcher, args: Sequence[Any], given: Mapping[str, Any]) -> Served[Any]:
        """Answer a call in this thread."""
        return self.serving.serve(self._call(searcher, args, given))

    async def aask(
        self, searcher: Searcher, args: Sequence[Any], given: Mapping[str, Any]
    ) -> Served[Any]:
        """Answer a call by awaiting."""
        return await self.serving.aserve(self._call(searcher, args, given))

    def find(self, searcher: Searcher, args: Sequence[Any], given: Mapping[str, Any]) -> Any:
        """Return what is kept; `None` where nothing is."""
        call = self._call(searcher, args, given)
        if call.key is None:
            return None
        generation = None if call.generation is None else call.generation()
        answer = self.serving.table.find(call.key, generation)
        return None if answer is None else answer.make()

    async def afind(self, searcher: Searcher, args: Sequence[Any], given: Mapping[str, Any]) -> Any:
        """Return what is kept, by awaiting the generation."""
        call = self._call(searcher, args, given)
        if call.key is None:
            return None
        answer = self.serving.table.find(call.key, await self.serving.agenerate(call))
        return None if answer is None else answer.make()

    def drop_query(self, searcher: Searcher, query: Any) -> int:
        """Drop every answer of a query in this scope."""
        text = searcher.form.read((), {searcher.form.query or "query": query}).query
        scope = self._scope()

        def is_meant(key: Key) -> bool:
            return key.scope == scope and key.query == freeze(
                self._counted(searcher, text, dict(key.arguments))
            )

        return self.serving.table.drop(is_meant)

    def drop_scope(self) -> None:
        """Drop every answer of this scope."""
        scope = self._scope()
        self.serving.table.drop(lambda key: key.scope == scope)

    def set_pin(
        self, searcher: Searcher, args: Sequence[Any], given: Mapping[str, Any]
    ) -> Key | None:
        """Set a pin; return its key where it is new."""
        if not self.options.enabled:
            return None
        key = self._call(searcher, args, given).key
        if key is None:
            raise InvalidInputError("query", "has an argument without a stable key; pin it without")
        return key if self.serving.table.pin(key, (searcher, args, given)) else None

    def take_pin(self, key: Key | None) -> None:
        """Take a pin back that was just set."""
        if key is not None:
            self.serving.table.unpin(key)

    def unpin(self, searcher: Searcher, args: Sequence[Any], given: Mapping[str, Any]) -> bool:
        """Take a pin; say whether there was one."""
        key = self._call(searcher, args, given).key
        return key is not None and self.serving.table.unpin(key)

    def repeated(
        self, searchers: Sequence[Searcher], content: str | None
    ) -> list[tuple[Searcher, Sequence[Any], Mapping[str, Any]]]:
        """Return what is asked again after an entry was added."""
        calls = list(self.serving.table.pins)
        if content is not None:
            calls += [(searcher, (content,), {}) for searcher in searchers[:1]]
        return calls

    def _call(self, searcher: Searcher, args: Sequence[Any], given: Mapping[str, Any]) -> Call:
        return Call(
            self._key(searcher, tuple(args), given),
            None if searcher.ask is None else partial(searcher.ask, *args, **given),
            None if searcher.aask is None else partial(searcher.aask, *args, **given),
            searcher.generation,
            searcher.agenerate,
            searcher.tenant or self.options.tenant,
        )

    def _key(
        self, searcher: Searcher, args: tuple[Any, ...], given: Mapping[str, Any]
    ) -> Key | None:
        try:
            asked = searcher.form.read(args, given)
            query = self._counted(searcher, asked.query, asked.arguments)
            arguments = searcher.form.arguments(asked.arguments)
            settings = None if searcher.settings is None else searcher.settings()
            return Key(self._scope(), searcher.method, freeze(query), arguments, settings)
        except (UnkeyableError, RecursionError):
            return None

    def _counted(self, searcher: Searcher, query: Any, arguments: Mapping[str, Any]) -> Any:
        """Return what of a query counts."""
        if query is NOT_GIVEN:
            return query
        if self.options.normalize is not None:
            return self.options.normalize(query)
        if searcher.same_text is not None and type(query) is str:
            return searcher.same_text(query, arguments)
        return query

    def _scope(self) -> tuple[Frozen, ...]:
        scope = self.options.scope()
        return tuple(map(freeze, scope)) if scope else ()
