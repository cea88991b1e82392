"""What contracts of learning share: a scripted talk, replies, and what a prompt says."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.errors import UsageDeniedError
from hiermem_core.learning.prompts import parse_prompt
from hiermem_core.models.plain import dump_json
from hiermem_core.models.threads import Profile, ThreadOptions
from hiermem_core.testing.contracts.samples import asked_and_answered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hiermem_core import HierMem, Thread
    from hiermem_core.models.calls import CallMeta, Completion, PromptMessage
    from hiermem_core.testing.models import ModelCall

NAMES = ("Ada", "Bea", "Cem", "Dia", "Eli")


class UpdatesContract:
    """What tests of learning start from."""

    @pytest.fixture
    def opened(self) -> Callable[..., HierMem]:
        """Give a function that opens the same location with other options."""
        raise NotImplementedError


@dataclass
class Guard:
    """A usage guard that allows calls while it is open."""

    is_open: bool = True
    broken: set[str] = field(default_factory=set)
    checked: list[tuple[CallMeta, int]] = field(default_factory=list)
    recorded: list[tuple[CallMeta, Any]] = field(default_factory=list)

    def check(self, meta: CallMeta, estimated_tokens: int) -> None:
        self.checked.append((meta, estimated_tokens))
        if "check" in self.broken:
            raise ZeroDivisionError
        if not self.is_open:
            raise UsageDeniedError

    def record(self, meta: CallMeta, completion: Completion) -> None:
        if "record" in self.broken:
            raise ZeroDivisionError
        self.recorded.append((meta, completion))


def reply(
    summary: str, facts: Iterable[str | tuple[str, list[int]]] = (), retract: Sequence[int] = ()
) -> str:
    """Return a good reply."""
    stated = [f if isinstance(f, str) else {"text": f[0], "seqs": f[1]} for f in facts]
    return dump_json({"summary": summary, "facts": stated, "retract": list(retract)})


def echo(messages: Sequence[PromptMessage]) -> str:
    """Reply with everything that was read, in every form it may be repeated."""
    prompt = parse_prompt(messages)
    said = [r["text"] for r in prompt.turns if r["role"] == "assistant"]
    numbered = [f"{n}. {text}" for n, text in enumerate(prompt.facts, 1)]
    rendered = [r["text"] for r in prompt.turns if "<memory>" in r["text"]]
    lines = messages[-1].content.splitlines()
    facts = [*said, *prompt.facts, *numbered, *rendered, *lines]
    return reply(prompt.summary or "They talk.", facts)


def every(turns: int) -> Profile:
    """Return a profile under which so many turns are due."""
    return Profile("often", ThreadOptions(strategy="summary_buffer", update_every_turns=turns))


def talk(hiermem: HierMem, exchanges: int, *, name: str = "t1", **answered: Any) -> Thread:
    """Return a thread of so many exchanges, each of them learned from."""
    return talk_in(hiermem.tenant("acme").thread(name), exchanges, **answered)


def talk_in(thread: Thread, exchanges: int, **answered: Any) -> Thread:
    """Add so many exchanges to a thread, each of them learned from."""
    for number in range(exchanges):
        thread.append(asked_and_answered([NAMES[number % len(NAMES)]]))
        thread.save_context(**answered)
    return thread


def seqs(call: ModelCall) -> list[int]:
    """Return the seqs of the turns in a prompt."""
    return [record["seq"] for record in parse_prompt(call.messages).turns]


def prompt_text(call: ModelCall) -> str:
    """Return what a prompt says, as one text."""
    return "\n".join(message.content for message in call.messages)


def prompt_tokens_of(hiermem: HierMem, call: ModelCall) -> int:
    """Return the tokens of a prompt, framing included, counted apart from the library."""
    texts = [text for message in call.messages for text in (message.role, message.content)]
    return sum(map(hiermem.counter.count, texts)) + 3 * len(call.messages) + 3
