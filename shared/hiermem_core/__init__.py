"""HierMem: one memory for LangChain and LlamaIndex applications.

Names are loaded when first touched, so that importing this package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hiermem_core.aio import AsyncHierMem, AsyncTenant, AsyncThread
    from hiermem_core.errors import (
        BackendError,
        BackendUnavailableError,
        BudgetExceededError,
        ClosedError,
        ConfigurationError,
        ConflictError,
        HierMemError,
        InvalidInputError,
        LimitExceededError,
        MigrationError,
        MissingExtraError,
        MissingIdentityError,
        NotFoundError,
        ThreadNotFoundError,
        TurnConflictError,
        VersionConflictError,
    )
    from hiermem_core.hiermem import HierMem, Tenant, Thread
    from hiermem_core.models.context import Context, ContextWarning, Receipt, Section
    from hiermem_core.models.plain import PlainEncoder, dump_json, from_plain, load_json, to_plain
    from hiermem_core.models.threads import (
        ModelInfo,
        Profile,
        PruneReport,
        ThreadInfo,
        ThreadLoad,
        ThreadOptions,
        TurnList,
    )
    from hiermem_core.models.turns import Origin, ToolCall, Turn, TurnDraft
    from hiermem_core.protocols import Clock, Observer, ThreadMemory, TokenCounter
    from hiermem_core.settings import HierMemSettings
    from hiermem_core.tokens.counters import ApproximateCounter, FunctionCounter
    from hiermem_core.tokens.tiktoken_counter import TiktokenCounter

_HOMES = {
    "aio": ("AsyncHierMem", "AsyncTenant", "AsyncThread"),
    "errors": (
        "BackendError",
        "BackendUnavailableError",
        "BudgetExceededError",
        "ClosedError",
        "ConfigurationError",
        "ConflictError",
        "HierMemError",
        "InvalidInputError",
        "LimitExceededError",
        "MigrationError",
        "MissingExtraError",
        "MissingIdentityError",
        "NotFoundError",
        "ThreadNotFoundError",
        "TurnConflictError",
        "VersionConflictError",
    ),
    "hiermem": ("HierMem", "Tenant", "Thread"),
    "models.context": ("Context", "ContextWarning", "Receipt", "Section"),
    "models.plain": ("PlainEncoder", "dump_json", "from_plain", "load_json", "to_plain"),
    "models.threads": (
        "ModelInfo",
        "Profile",
        "PruneReport",
        "ThreadInfo",
        "ThreadLoad",
        "ThreadOptions",
        "TurnList",
    ),
    "models.turns": ("Origin", "ToolCall", "Turn", "TurnDraft"),
    "protocols": ("Clock", "Observer", "ThreadMemory", "TokenCounter"),
    "settings": ("HierMemSettings",),
    "tokens.counters": ("ApproximateCounter", "FunctionCounter"),
    "tokens.tiktoken_counter": ("TiktokenCounter",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605 - one list of names, not two


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
