"""Counting tokens: the formula for a turn, and the counters.

The formula per turn follows OpenAI's published recipe for chat messages (3 tokens a message, 1 for
a name, 3 once for the reply); the 8 of a tool call and the 12 of a tool schema are measured.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from hiermem_core.errors import InvalidInputError
from hiermem_core.models.plain import dump_json
from hiermem_core.tokens.estimate import estimate_tokens

if TYPE_CHECKING:
    from hiermem_core.models.turns import Part, ToolCall, TurnDraft
    from hiermem_core.protocols import TokenCounter

TURN_TOKENS = 3
REPLY_TOKENS = 3
TOOL_CALL_TOKENS = 8
TOOL_SCHEMA_TOKENS = 12

MEDIA_TOKENS: Mapping[str, int] = {"image": 765, "audio": 500, "video": 2000, "document": 1500}
"""Flat estimates. 765 is OpenAI's figure for a 1024 x 1024 image in high detail; the others are of
the size of half a minute of speech, a short clip, and one page of a document at Anthropic."""

_PAYLOAD = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,[A-Za-z0-9+/_=-]*|[A-Za-z0-9+/_=-]{2000,}")
_TEXTS = frozenset({"text", "refusal", "reasoning", "citable", "citation"})

Count = Callable[[str], int]


def count_turn_with(count: Count, turn: TurnDraft) -> int:
    """Return the tokens of a turn: framing, role, name, content, calls once, result id."""
    total = TURN_TOKENS + count(turn.role) + _content_tokens(count, turn)
    if turn.name:
        total += 1 + count(turn.name)
    if turn.tool_call_id is not None:
        total += count(turn.tool_call_id)
    return total + sum(call_tokens(count, call) for call in turn.tool_calls)


def call_tokens(count: Count, call: ToolCall) -> int:
    """Return the tokens of a tool call as compact JSON."""
    args = call.args if isinstance(call.args, str) else dump_json(call.args)
    return TOOL_CALL_TOKENS + count(call.name) + count(args) + count(call.id or "")


def tool_schema_tokens(count: Count, schema: Mapping[str, Any]) -> int:
    """Return the tokens of one tool schema as compact JSON."""
    return TOOL_SCHEMA_TOKENS + count(dump_json(dict(schema)))


def _content_tokens(count: Count, turn: TurnDraft) -> int:
    if not turn.parts:
        return count(turn.content or "")
    return sum(_part_tokens(count, part) for part in turn.parts)


def _part_tokens(count: Count, part: Part) -> int:
    kind = part["type"]
    if kind == "media":
        return MEDIA_TOKENS.get(part["kind"], MEDIA_TOKENS["document"])
    if kind == "reasoning" and part.get("tokens") is not None:
        return max(0, int(part["tokens"]))
    if kind in {"tool_call", "cache"}:
        return 0
    if kind in _TEXTS and "text" in part:
        return count(part["text"])
    return _opaque_tokens(count, part)


def _opaque_tokens(count: Count, part: Part) -> int:
    text, payloads = _PAYLOAD.subn("", dump_json(dict(part)))
    return payloads * MEDIA_TOKENS["document"] + max(1, count(text))


class FunctionCounter:
    """Count with a plain function that returns a number, or the tokens themselves.

    Args:
        function: `text -> int` or `text -> sequence of tokens`; must be deterministic.
        id: Counts are stored under it; name another function differently.
    """

    exact = True

    def __init__(self, function: Callable[[str], int | Sequence[Any]], *, id: str) -> None:  # noqa: A002 - named as its id is
        self.id = id
        self._function = function

    def count(self, text: str) -> int:
        """Return the tokens of a text.

        Raises:
            InvalidInputError: The function returned neither tokens nor a whole number of them.
        """
        counted = self._function(text)
        if isinstance(counted, Sequence):
            return len(counted)
        if not isinstance(counted, bool) and hasattr(counted, "__index__"):
            counted = operator.index(counted)
        if not is_count(counted):
            raise InvalidInputError("counter", f"{self.id} must return a number, at least 0")
        return counted

    def count_turn(self, turn: TurnDraft) -> int:
        """Return the tokens of a turn."""
        return count_turn_with(self.count, turn)


class ApproximateCounter:
    """Estimate tokens by script, without any vocabulary.

    Within 25 % of `o200k_base` and never more than 10 % below it on the languages kept with the
    tests. Never more than the UTF-8 bytes of a text.

    Args:
        factor: Multiplies every count, for models whose vocabulary is smaller.
    """

    exact = False

    def __init__(self, *, factor: float = 1.0) -> None:
        self._factor = _checked_factor(factor)
        self.id = "approximate" if factor == 1 else f"approximate*{factor:g}"

    def count(self, text: str) -> int:
        """Return the estimated tokens of a text."""
        return scaled(estimate_tokens(text), self._factor)

    def count_turn(self, turn: TurnDraft) -> int:
        """Return the estimated tokens of a turn."""
        return count_turn_with(self.count, turn)


class GuardedCounter:
    """A counter that cannot fail: what it cannot count is estimated, and remembered.

    Attributes:
        failures: How many counts were estimated in its place.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self.id = counter.id
        self.exact = getattr(counter, "exact", True)
        self.failures = 0
        self._counter = counter
        self._estimate = ApproximateCounter()

    def count(self, text: str) -> int:
        """Return the tokens of a text."""
        return self._guarded(self._counter.count, self._estimate.count, text)

    def count_turn(self, turn: TurnDraft) -> int:
        """Return the tokens of a turn."""
        return self._guarded(self._counter.count_turn, self._estimate.count_turn, turn)

    def _guarded(
        self, count: Callable[[Any], object], estimate: Callable[[Any], int], value: Any
    ) -> int:
        try:
            counted = count(value)
        except Exception:  # noqa: BLE001 - a user's counter may raise anything; the estimate serves
            counted = None
        if is_count(counted):
            return counted
        self.failures += 1
        return estimate(value)


def is_count(value: object) -> TypeGuard[int]:
    """Tell whether a value is a whole number of tokens; `True` is none."""
    return type(value) is int and value >= 0


def scaled(tokens: int, factor: float) -> int:
    """Return `tokens` times `factor`, rounded up."""
    return tokens if factor == 1 else -int(-tokens * factor // 1)


def _checked_factor(factor: float) -> float:
    if not 0 < factor < 10:  # noqa: PLR2004 - beyond ten is a mistake of units
        raise InvalidInputError("factor", f"must be between 0 and 10, not {factor}")
    return factor
