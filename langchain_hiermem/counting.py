"""Counting the tokens of messages, as HierMem counts them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from hiermem_core import HierMemSettings, default_counter
from langchain_hiermem.messages import message_to_turn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_core.messages import BaseMessage

    from hiermem_core import TokenCounter


def count_tokens(messages: Iterable[BaseMessage], *, counter: TokenCounter | None = None) -> int:
    """Return the tokens of messages: what is stored with their turns, summed.

    Needs no network and no model. A tool call counts once, wherever it stands; media count by flat
    estimates. Fits as `token_counter` of LangChain's `trim_messages` and of its middleware.

    Args:
        counter: Default: the one that `HierMem.open` takes by default.

    Example:
        ```python
        trim_messages(messages, max_tokens=4000, token_counter=count_tokens)
        ```
    """
    counter = counter or _default()
    return sum(counter.count_turn(message_to_turn(message)) for message in messages)


@cache
def _default() -> TokenCounter:
    settings = HierMemSettings.read({})
    return default_counter(
        settings.encoding, cache_dir=settings.tiktoken_cache_dir, factor=settings.token_factor
    )
