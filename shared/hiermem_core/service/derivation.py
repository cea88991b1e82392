"""What entries that were derived from others owe them: their trust, and their being there."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hiermem_core.backends.restrictions import Restrictions
from hiermem_core.models.entries import DEFAULT_TRUST

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from hiermem_core.models.entries import EntrySource
    from hiermem_core.protocols import EntryWriter

_SOURCE_OF_ROLE: Mapping[str, EntrySource] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


@dataclass(frozen=True, slots=True)
class Fallout:
    """What becomes of entries that were derived from forgotten ones.

    Attributes:
        gone: Ids of those that go too.
        kept: The sources left of those that stay, by id.
    """

    gone: frozenset[str] = frozenset()
    kept: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def descendants(forgotten: Iterable[str], sources: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Return the ids of entries derived from forgotten ones, at whatever distance.

    Args:
        sources: Of every derived entry, by its id.
    """
    return frozenset(_reached(forgotten, sources)) - frozenset(forgotten)


def fallout(
    forgotten: Collection[str], sources: Mapping[str, Sequence[str]], existing: Collection[str]
) -> Fallout:
    """Return which derived entries go with the forgotten ones, and what is left of the others.

    An entry stays while a source is left that stands without the forgotten ones. Entries derived
    from each other in a circle do not hold each other up.

    Args:
        sources: Of every derived entry, by its id.
        existing: Ids of entries there are; a source that is not among them is not left.
    """
    lost = set(forgotten)
    touched = descendants(lost, sources)
    firm = set(existing) - lost - touched
    upright = {name for name in touched if any(source in firm for source in sources[name])}
    within = {name: [s for s in sources[name] if s in touched] for name in touched}
    upright |= set(_reached(upright, within))
    gone = touched - upright
    lost |= gone
    kept = {
        name: tuple(source for source in sources[name] if source not in lost)
        for name in upright
        if any(source in lost for source in sources[name])
    }
    return Fallout(gone, kept)


def _reached(starts: Iterable[str], sources: Mapping[str, Sequence[str]]) -> set[str]:
    derived: dict[str, list[str]] = defaultdict(list)
    for name, origins in sources.items():
        for origin in origins:
            derived[origin].append(name)
    reached: set[str] = set()
    waiting = list(starts)
    while waiting:
        for name in derived.get(waiting.pop(), ()):
            if name not in reached:
                reached.add(name)
                waiting.append(name)
    return reached


def trust_of_turn(role: str) -> float:
    """Return how far a turn is trusted, by who says it."""
    return DEFAULT_TRUST[_SOURCE_OF_ROLE.get(role, "tool")]


def remove_with_derived(
    writer: EntryWriter,
    chosen: Mapping[int, str],
    turn_ids: Collection[str] = (),
    existing_turns: Callable[[Collection[str]], Collection[str]] | None = None,
) -> dict[int, str]:
    """Remove entries, and those derived from nothing else; return the ids of all by number.

    Those with other sources left stay, and name these.

    Args:
        chosen: Ids by number.
        turn_ids: Of turns that are removed too.
        existing_turns: Tells which of some ids are those of turns.
    """
    derived = writer.derivations() if chosen or turn_ids else {}
    sources = {name: one.sources for name, one in derived.items()}
    forgotten = {*chosen.values(), *turn_ids}
    touched = descendants(forgotten, sources)
    asked = {source for name in touched for source in sources[name]}
    existing = set(writer.traces(Restrictions(), asked).values()) if asked else set()
    if asked:
        existing |= set((existing_turns or writer.turn_roles)(asked))
    fallen = fallout(forgotten, sources, existing)
    gone = {**chosen, **{derived[name].number: name for name in fallen.gone}}
    writer.remove(sorted(gone))
    writer.rederive({derived[name].number: left for name, left in fallen.kept.items()})
    return gone
