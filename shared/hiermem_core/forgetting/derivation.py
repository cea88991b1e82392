"""What falls with an entry that others were derived from. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence


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
