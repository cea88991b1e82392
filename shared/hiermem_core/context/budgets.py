"""How many tokens a context may take. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.errors import InvalidInputError

if TYPE_CHECKING:
    from hiermem_core.models.threads import ModelInfo


def budget_of(
    model: ModelInfo | None, budget_tokens: int | None, output_reserve: int | None
) -> tuple[int, int]:
    """Return the budget and the reserve that is already taken off it.

    Raises:
        InvalidInputError: A figure is negative, or neither a budget nor a model is given.
    """
    check_figure("budget_tokens", budget_tokens)
    check_figure("output_reserve", output_reserve)
    if budget_tokens is not None:
        return budget_tokens, 0
    if model is None:
        raise InvalidInputError("budget_tokens", "is missing; give it, or a model")
    reserve = output_reserve
    if reserve is None:
        reserve = model.context_window // 4
        if model.max_output_tokens is not None:
            reserve = min(model.max_output_tokens, reserve)
    return max(0, model.context_window - reserve), reserve


def check_figure(name: str, figure: int | None) -> None:
    """Raise `InvalidInputError` where a figure is given and is none."""
    if figure is None:
        return
    if isinstance(figure, bool) or not isinstance(figure, int) or figure < 0:
        raise InvalidInputError(name, "must be a whole number, at least 0")
