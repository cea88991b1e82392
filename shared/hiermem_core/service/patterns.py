"""The patterns of one tenant: named, scored ways of doing things, which search finds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import InvalidInputError, MissingIdentityError, PatternNotFoundError
from hiermem_core.models import events
from hiermem_core.models.entries import EntryDraft
from hiermem_core.models.metadata import DATA_DEPTH_LIMIT, DATA_LIMIT, checked_object
from hiermem_core.models.moments import to_the_millisecond
from hiermem_core.models.patterns import (
    FIRST_CONFIDENCE,
    PATTERNS,
    Pattern,
    PatternHit,
    reinforced,
    text_of_pattern,
)
from hiermem_core.models.text import TextCleaner
from hiermem_core.operations import watched
from hiermem_core.service.checking import (
    LIMIT_LIMIT,
    checked_count,
    checked_key,
    checked_share,
)
from hiermem_core.service.derivation import remove_with_derived
from hiermem_core.service.writing import EntryWriting

if TYPE_CHECKING:
    import builtins
    from collections.abc import Mapping

    from hiermem_core.backends.records import Kept
    from hiermem_core.models.entries import MemoryEntry
    from hiermem_core.protocols import EntryReader
    from hiermem_core.service.collaborators import Collaborators
    from hiermem_core.service.memory_service import MemoryService


@watched(writes="learn delete reinforce", reads="get list")
class Patterns:
    """Learn, find and score ways of doing things.

    A pattern and the procedural entry that search finds it by, of namespace `patterns` and with the
    pattern's name as its key, are written in one transaction, and go together, whichever of them is
    deleted or forgotten. An entry there that is moved or given another key is a pattern no more.
    """

    def __init__(self, shared: Collaborators, memory: MemoryService, actor: str | None) -> None:
        self._watch = (shared.operations, memory.tenant_id, None, actor)
        self._shared = shared
        self._memory = memory
        self._tenant = memory.tenant_id
        self._writing = EntryWriting(shared, memory.tenant_id)

    def learn(
        self,
        name: str,
        data: Mapping[str, Any],
        *,
        text: str | None = None,
        confidence: float | None = None,
        user_id: str | None = None,
    ) -> Pattern:
        """Store a pattern, in place of the one of its name; its confidence stays unless given.

        An ordinary entry of that key becomes its text.

        Args:
            data: A JSON object.
            text: What search finds; default: the name and the data as JSON.
            confidence: From 0 to 1; that of a new pattern is 0.5.
            user_id: Whose it is, for `forget`.

        Raises:
            InvalidInputError: It cannot be stored. Nothing was.
            LimitExceededError: Name, data or text is too large. Nothing was stored.
            QuotaExceededError: There is no room for its entry. Nothing was stored.
            RedactionError: The redactor fails at it, or rejects it. Nothing was stored.
        """
        self._shared.check_open()
        name = _name(name, TextCleaner())
        cleaner = self._shared.redaction.cleaner("entry", self._tenant)
        kept = checked_object("data", data, cleaner, limit=DATA_LIMIT, deepest=DATA_DEPTH_LIMIT)
        given = None if confidence is None else checked_share("confidence", confidence)
        draft = EntryDraft(
            content=text_of_pattern(name, kept) if text is None else text,
            namespace=PATTERNS,
            key=name,
            type="procedural",
            user_id=user_id,
        )
        return self._writing.learn(draft, partial(_learnt, data=kept, confidence=given))

    def get(self, name: str) -> Pattern | None:
        """Return the pattern of a name; `None` where there is none."""
        self._shared.check_open()
        name = self._named_so(name)
        with self._shared.backend.read(self._tenant, self._shared.clock.now()) as reader:
            found = _named(reader, name)
        return None if found is None else found[1]

    def list(self, *, min_confidence: float = 0.0, limit: int = 100) -> builtins.list[Pattern]:
        """Return the patterns, the most confident first, then by name.

        Raises:
            InvalidInputError: `min_confidence` is not from 0 to 1, or `limit` is no whole number.
        """
        self._shared.check_open()
        least, most = checked_share("min_confidence", min_confidence), checked_count("limit", limit)
        with self._shared.backend.read(self._tenant, self._shared.clock.now()) as reader:
            return [*reader.listed_patterns(min_confidence=least, limit=most)]

    def delete(self, name: str) -> bool:
        """Delete the pattern of a name, and its entry; say whether there was one."""
        self._shared.check_open()
        name = self._named_so(name)
        with self._shared.backend.write(self._tenant, self._shared.clock.now()) as writer:
            found = _named(writer, name)
            chosen = {} if found is None else {found[0].number: found[1].id}
            gone = remove_with_derived(writer, chosen)
        for entry_id in gone.values():
            self._shared.tell(events.EntryDeleted(self._tenant, entry_id))
        if gone:
            self._shared.after_write(self._tenant)
        return bool(gone)

    def find(
        self, text: str, *, k: int = 5, min_confidence: float = 0.0
    ) -> builtins.list[PatternHit]:
        """Return the `k` patterns that answer a text best, best first.

        Searches as `MemoryService.search` does by itself on this backend.

        Raises:
            InvalidInputError: `k` is no whole number, or `min_confidence` not from 0 to 1.
            EmbedderMismatchError: The location's vectors are by another embedder.
        """
        least, most = checked_share("min_confidence", min_confidence), checked_count("k", k)
        size = most
        while True:
            size = min(2 * max(1, size), LIMIT_LIMIT)
            found = self._memory.search(text, namespace=PATTERNS, subtree=False, limit=size)
            with self._shared.backend.read(self._tenant, self._shared.clock.now()) as reader:
                known = reader.patterns({hit.id for hit in found})
            hits = [
                PatternHit(pattern, hit.content, hit.score)
                for hit in found
                if (pattern := known.get(hit.id)) is not None and pattern.confidence >= least
            ]
            if len(hits) >= most or len(found) < size or size == LIMIT_LIMIT:
                return hits[:most]

    def reinforce(self, name: str, *, success: bool) -> Pattern:
        """Count one more use: confidence goes a tenth of the way to 1, or after a failure to 0.

        Raises:
            PatternNotFoundError: There is no pattern of that name.
            InvalidInputError: `success` is not True or False.
        """
        self._shared.check_open()
        name = self._named_so(name)
        if not isinstance(success, bool):
            raise InvalidInputError("success", "must be True or False")
        now = to_the_millisecond(self._shared.clock.now())
        with self._shared.backend.write(self._tenant, now) as writer:
            found = _named(writer, name)
            if found is None:
                raise PatternNotFoundError(name)
            pattern = reinforced(found[1], success=success, now=now)
            writer.put_pattern(pattern)
        self._shared.tell(events.PatternReinforced(self._tenant, pattern.id, pattern.uses))
        return pattern

    def _named_so(self, name: str) -> str:
        """Return the name that a pattern of this name was stored by."""
        return _name(name, self._shared.redaction.cleaner("query", self._tenant))


def _name(value: Any, cleaner: TextCleaner) -> str:
    name = checked_key(value, cleaner, name="name")
    if name is None:
        raise MissingIdentityError("name")
    return name


def _named(reader: EntryReader, name: str) -> tuple[Kept, Pattern] | None:
    """Return the pattern of a name with its entry."""
    place = (PATTERNS, name)
    kept = reader.by_key({place}).get(place)
    pattern = None if kept is None else reader.patterns({kept.entry.id}).get(kept.entry.id)
    return None if kept is None or pattern is None else (kept, pattern)


def _learnt(
    entry: MemoryEntry, old: Pattern | None, *, data: dict[str, Any], confidence: float | None
) -> Pattern:
    before = FIRST_CONFIDENCE if old is None else old.confidence
    return Pattern(
        id=entry.id,
        name=str(entry.key),
        data=data,
        confidence=before if confidence is None else confidence,
        uses=0 if old is None else old.uses,
        created_at=entry.updated_at if old is None else old.created_at,
        updated_at=entry.updated_at,
        user_id=entry.user_id,
    )
