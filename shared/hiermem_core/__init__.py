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
    from hiermem_core.hiermem import HierMem
    from hiermem_core.models.context import Context, ContextWarning, Receipt, Section
    from hiermem_core.models.notes import Fact, ThreadState
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
    from hiermem_core.models.turns import (
        CANONICAL_ROLES,
        Origin,
        Part,
        Role,
        ToolCall,
        Turn,
        TurnDraft,
        call_arguments,
        fingerprint,
        text_of,
    )
    from hiermem_core.protocols import Clock, Observer, ThreadMemory, TokenCounter
    from hiermem_core.settings import HierMemSettings
    from hiermem_core.tenant import Tenant
    from hiermem_core.thread import Thread
    from hiermem_core.tokens.counters import ApproximateCounter, FunctionCounter
    from hiermem_core.tokens.tiktoken_counter import TiktokenCounter

__all__ = [
    "CANONICAL_ROLES",
    "ApproximateCounter",
    "AsyncHierMem",
    "AsyncTenant",
    "AsyncThread",
    "BackendError",
    "BackendUnavailableError",
    "BudgetExceededError",
    "Clock",
    "ClosedError",
    "ConfigurationError",
    "ConflictError",
    "Context",
    "ContextWarning",
    "Fact",
    "FunctionCounter",
    "HierMem",
    "HierMemError",
    "HierMemSettings",
    "InvalidInputError",
    "LimitExceededError",
    "MigrationError",
    "MissingExtraError",
    "MissingIdentityError",
    "ModelInfo",
    "NotFoundError",
    "Observer",
    "Origin",
    "Part",
    "PlainEncoder",
    "Profile",
    "PruneReport",
    "Receipt",
    "Role",
    "Section",
    "Tenant",
    "Thread",
    "ThreadInfo",
    "ThreadLoad",
    "ThreadMemory",
    "ThreadNotFoundError",
    "ThreadOptions",
    "ThreadState",
    "TiktokenCounter",
    "TokenCounter",
    "ToolCall",
    "Turn",
    "TurnConflictError",
    "TurnDraft",
    "TurnList",
    "VersionConflictError",
    "call_arguments",
    "dump_json",
    "fingerprint",
    "from_plain",
    "load_json",
    "text_of",
    "to_plain",
]

_HOMES = {
    "ApproximateCounter": "tokens.counters",
    "AsyncHierMem": "aio",
    "AsyncTenant": "aio",
    "AsyncThread": "aio",
    "BackendError": "errors",
    "BackendUnavailableError": "errors",
    "BudgetExceededError": "errors",
    "CANONICAL_ROLES": "models.turns",
    "Clock": "protocols",
    "ClosedError": "errors",
    "ConfigurationError": "errors",
    "ConflictError": "errors",
    "Context": "models.context",
    "ContextWarning": "models.context",
    "Fact": "models.notes",
    "FunctionCounter": "tokens.counters",
    "HierMem": "hiermem",
    "HierMemError": "errors",
    "HierMemSettings": "settings",
    "InvalidInputError": "errors",
    "LimitExceededError": "errors",
    "MigrationError": "errors",
    "MissingExtraError": "errors",
    "MissingIdentityError": "errors",
    "ModelInfo": "models.threads",
    "NotFoundError": "errors",
    "Observer": "protocols",
    "Origin": "models.turns",
    "Part": "models.turns",
    "PlainEncoder": "models.plain",
    "Profile": "models.threads",
    "PruneReport": "models.threads",
    "Receipt": "models.context",
    "Role": "models.turns",
    "Section": "models.context",
    "Tenant": "tenant",
    "Thread": "thread",
    "ThreadInfo": "models.threads",
    "ThreadLoad": "models.threads",
    "ThreadMemory": "protocols",
    "ThreadNotFoundError": "errors",
    "ThreadOptions": "models.threads",
    "ThreadState": "models.notes",
    "TiktokenCounter": "tokens.tiktoken_counter",
    "TokenCounter": "protocols",
    "ToolCall": "models.turns",
    "Turn": "models.turns",
    "TurnConflictError": "errors",
    "TurnDraft": "models.turns",
    "TurnList": "models.threads",
    "VersionConflictError": "errors",
    "call_arguments": "models.turns",
    "dump_json": "models.plain",
    "fingerprint": "models.turns",
    "from_plain": "models.plain",
    "load_json": "models.plain",
    "text_of": "models.turns",
    "to_plain": "models.plain",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
