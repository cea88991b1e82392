"""What a caller may bring to `HierMem.open`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hiermem_core.models.quotas import Quota
    from hiermem_core.models.redaction import Redactor
    from hiermem_core.protocols import Clock, Codec, Observer, ThreadMemory, UsageGuard
    from hiermem_core.service.vectorising import OnEmbedderChange


@dataclass(frozen=True, slots=True)
class Given:
    """What a caller may bring to `HierMem.open`; whatever is `None` is the built-in one."""

    counter: Any = None
    clock: Clock | None = None
    observer: Observer | None = None
    thread_memory: ThreadMemory | None = None
    chat_model: Any = None
    usage_guard: UsageGuard | None = None
    embedder: Any = None
    quota: Quota | None = None
    redactor: Redactor | None = None
    codec: Codec | None = None
    tracer_provider: Any = None
    meter_provider: Any = None
    on_embedder_change: OnEmbedderChange = "raise"
