"""HierMem: one memory for LangChain and LlamaIndex applications.

Names are loaded when first touched, so that importing this package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hiermem_core import homes

if TYPE_CHECKING:
    from hiermem_core.aio import (
        AsyncHierMem,
        AsyncMemoryService,
        AsyncPatterns,
        AsyncSessionLog,
        AsyncTenant,
        AsyncThread,
    )
    from hiermem_core.context.memory_block import memory_block
    from hiermem_core.embedding.adapters import as_embedder
    from hiermem_core.encryption import FernetCodec
    from hiermem_core.errors import (
        BackendError,
        BackendUnavailableError,
        BudgetExceededError,
        ClosedError,
        ConfigurationError,
        ConflictError,
        DimensionMismatchError,
        EmbedderMismatchError,
        HierMemError,
        IndexUnavailableError,
        InvalidFilterError,
        InvalidInputError,
        InvalidNamespaceError,
        KeyConflictError,
        LimitExceededError,
        MigrationError,
        MissingExtraError,
        MissingIdentityError,
        NotFoundError,
        PatternNotFoundError,
        QuotaExceededError,
        RedactionError,
        RejectedByRedactorError,
        SessionNotFoundError,
        ThreadNotFoundError,
        TurnConflictError,
        UnsupportedSearchError,
        UsageDeniedError,
        VersionConflictError,
    )
    from hiermem_core.exporting.backups import BackupReport
    from hiermem_core.exporting.report import ExportReport, ReadItem, ReadReport
    from hiermem_core.exporting.restoring import RestoreReport, restore_backup
    from hiermem_core.hiermem import HierMem
    from hiermem_core.importing.importer import aimport_memories, find_stores, import_memories
    from hiermem_core.importing.moving import MovedTenant, MoveReport, move_memories
    from hiermem_core.importing.report import (
        ImportItem,
        ImportProgress,
        ImportReport,
        StoreReport,
    )
    from hiermem_core.learning.chat_models import as_chat_model
    from hiermem_core.models import events
    from hiermem_core.models.audit import AuditRecord
    from hiermem_core.models.calls import CallMeta, Completion, PromptMessage
    from hiermem_core.models.context import Context, Receipt, Section
    from hiermem_core.models.entries import EntryDraft, EntryUpdate, MemoryEntry
    from hiermem_core.models.health import ComponentHealth, Health, TenantStats
    from hiermem_core.models.notes import Fact, NotesChange, ThreadState
    from hiermem_core.models.patterns import Pattern, PatternHit
    from hiermem_core.models.plain import (
        PlainEncoder,
        dump_json,
        from_plain,
        load_json,
        load_plain,
        to_plain,
    )
    from hiermem_core.models.queries import Hit, MemoryQuery, RecallResult, SearchResult, TurnHit
    from hiermem_core.models.quotas import Quota
    from hiermem_core.models.redaction import RedactionContext, Redactor, Reject
    from hiermem_core.models.results import (
        BulkInsertResult,
        BulkResult,
        CacheStats,
        DoctorReport,
        FailedRow,
        Failure,
        ForgetReceipt,
        IndexStats,
        MemoryStats,
        PurgeResult,
        ReindexReport,
    )
    from hiermem_core.models.sessions import Session, Step
    from hiermem_core.models.threads import (
        ModelInfo,
        Profile,
        PruneReport,
        ThreadInfo,
        ThreadLoad,
        ThreadOptions,
        TurnList,
    )
    from hiermem_core.models.timelines import Timeline, TimelineTurn, timeline_of
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
    from hiermem_core.models.warnings import ContextWarning
    from hiermem_core.protocols import (
        ChatModel,
        Clock,
        Codec,
        Embedder,
        Observer,
        ThreadMemory,
        TokenCounter,
        UsageGuard,
    )
    from hiermem_core.service.memory_service import MemoryService
    from hiermem_core.service.patterns import Patterns
    from hiermem_core.session import SessionLog
    from hiermem_core.settings import HierMemSettings
    from hiermem_core.tenant import Tenant
    from hiermem_core.thread import Thread
    from hiermem_core.tokens.counters import ApproximateCounter, FunctionCounter
    from hiermem_core.tokens.tiktoken_counter import TiktokenCounter, default_counter
    from hiermem_core.working.values import Served, WorkingMemoryStats
    from hiermem_core.working.working_memory import WorkingMemory
    from hiermem_core.working.wrapping import create_working_memory

__all__ = [
    "CANONICAL_ROLES",
    "ApproximateCounter",
    "AsyncHierMem",
    "AsyncMemoryService",
    "AsyncPatterns",
    "AsyncSessionLog",
    "AsyncTenant",
    "AsyncThread",
    "AuditRecord",
    "BackendError",
    "BackendUnavailableError",
    "BackupReport",
    "BudgetExceededError",
    "BulkInsertResult",
    "BulkResult",
    "CacheStats",
    "CallMeta",
    "ChatModel",
    "Clock",
    "ClosedError",
    "Codec",
    "Completion",
    "ComponentHealth",
    "ConfigurationError",
    "ConflictError",
    "Context",
    "ContextWarning",
    "DimensionMismatchError",
    "DoctorReport",
    "Embedder",
    "EmbedderMismatchError",
    "EntryDraft",
    "EntryUpdate",
    "ExportReport",
    "Fact",
    "FailedRow",
    "Failure",
    "FernetCodec",
    "ForgetReceipt",
    "FunctionCounter",
    "Health",
    "HierMem",
    "HierMemError",
    "HierMemSettings",
    "Hit",
    "ImportItem",
    "ImportProgress",
    "ImportReport",
    "IndexStats",
    "IndexUnavailableError",
    "InvalidFilterError",
    "InvalidInputError",
    "InvalidNamespaceError",
    "KeyConflictError",
    "LimitExceededError",
    "MemoryEntry",
    "MemoryQuery",
    "MemoryService",
    "MemoryStats",
    "MigrationError",
    "MissingExtraError",
    "MissingIdentityError",
    "ModelInfo",
    "MoveReport",
    "MovedTenant",
    "NotFoundError",
    "NotesChange",
    "Observer",
    "Origin",
    "Part",
    "Pattern",
    "PatternHit",
    "PatternNotFoundError",
    "Patterns",
    "PlainEncoder",
    "Profile",
    "PromptMessage",
    "PruneReport",
    "PurgeResult",
    "Quota",
    "QuotaExceededError",
    "ReadItem",
    "ReadReport",
    "RecallResult",
    "Receipt",
    "RedactionContext",
    "RedactionError",
    "Redactor",
    "ReindexReport",
    "Reject",
    "RejectedByRedactorError",
    "RestoreReport",
    "Role",
    "SearchResult",
    "Section",
    "Served",
    "Session",
    "SessionLog",
    "SessionNotFoundError",
    "Step",
    "StoreReport",
    "Tenant",
    "TenantStats",
    "Thread",
    "ThreadInfo",
    "ThreadLoad",
    "ThreadMemory",
    "ThreadNotFoundError",
    "ThreadOptions",
    "ThreadState",
    "TiktokenCounter",
    "Timeline",
    "TimelineTurn",
    "TokenCounter",
    "ToolCall",
    "Turn",
    "TurnConflictError",
    "TurnDraft",
    "TurnHit",
    "TurnList",
    "UnsupportedSearchError",
    "UsageDeniedError",
    "UsageGuard",
    "VersionConflictError",
    "WorkingMemory",
    "WorkingMemoryStats",
    "aimport_memories",
    "as_chat_model",
    "as_embedder",
    "call_arguments",
    "create_working_memory",
    "default_counter",
    "dump_json",
    "events",
    "find_stores",
    "fingerprint",
    "from_plain",
    "import_memories",
    "load_json",
    "load_plain",
    "memory_block",
    "move_memories",
    "restore_backup",
    "text_of",
    "timeline_of",
    "to_plain",
]


def __getattr__(name: str) -> Any:
    home = homes.HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{home}")
    value = module if name == "events" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
