"""Settings: the only reader of the environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict

from pydantic import AliasChoices, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from hiermem_core.errors import ConfigurationError
from hiermem_core.models.entries import Dedup
from hiermem_core.models.metadata import METADATA_LIMIT
from hiermem_core.models.threads import Strategy

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "HIERMEM_"

BackendName = Literal["hybrid", "sqlite", "chroma", "in_memory"]
DurabilityName = Literal["process", "power"]


class Options(TypedDict, total=False):
    """What `HierMem.open` takes beside collaborators; each is a `HIERMEM_*` setting too."""

    backend: BackendName
    chroma: str | None
    cache_size: int
    indexing: bool
    local_embedder: bool
    dedup: Dedup
    metadata_limit: int
    index_threshold: int | None
    exact_limit: int
    indexed_metadata: tuple[str, ...]
    index_turns: bool
    part_gap_hours: float
    recall_share: float
    audit: bool
    audit_reads: bool
    quota_entries: int | None
    quota_bytes: int | None
    quota_writes_per_minute: int | None
    trace_content: bool
    durability: DurabilityName
    busy_seconds: float
    generation_check_seconds: float
    pool_size: int
    window_exchanges: int | None
    strategy: Strategy | None
    update_every_turns: int
    cheap_model_id: str | None
    inline_updates: bool
    encoding: str
    token_factor: float
    tiktoken_cache_dir: Path | None
    tiktoken_download: bool


class HierMemSettings(BaseSettings):
    """Options of a HierMem, read from arguments, else from `HIERMEM_*` variables.

    Attributes:
        location: Folder, `.db` file, `postgresql+psycopg://` URL, or `:memory:`.
        tenant: Used by the command line; the library has no default tenant.
        backend: Where entries live and how they are searched; `"chroma"` needs that extra.
        chroma: URL of a Chroma server that keeps the vector index, `http://host:8000`; default: in
            a folder beside the database.
        cache_size: Entries read a moment ago that are kept in memory.
        indexing: Make vectors; without, a later `reindex` makes them.
        local_embedder: Without a given embedder use the local one, where the extra `embed` is
            installed.
        dedup: `"content"` counts a repeated entry; `"off"` stores it again.
        metadata_limit: Bytes of an entry's metadata as JSON; a LangGraph value is stored as such.
        index_threshold: A tenant with more vectors is kept in the vector index; default: 16,000,
            and 0 for `backend="chroma"`.
        exact_limit: So many rows are compared exactly rather than by the index.
        indexed_metadata: Metadata fields that filters find by an index of their own.
        index_turns: Recall finds turns of threads too.
        part_gap_hours: A longer pause begins a new part of a thread.
        recall_share: Of what a context's mandatory parts leave, recalled turns and entries take at
            most this; the window gets the rest.
        audit: Record who did what to which ids, in a log that only grows.
        audit_reads: Record reads in it too.
        redactor: Sees every text unless one is given: `package.module:name`, as an import path.
        encryption_key: Of a `FernetCodec`, unless a codec is given; several with commas between,
            the newest first.
        quota_entries: Of each tenant, unless a quota is given; see `Quota`.
        quota_bytes: As `quota_entries`.
        quota_writes_per_minute: As `quota_entries`.
        trace_content: Put queries and records into OpenTelemetry spans, redacted.
        durability: `"process"` survives a kill, `"power"` a power cut too.
        busy_seconds: How long a write waits for other writers.
        generation_check_seconds: On a server, how long what a process has kept in memory may be
            older than what others have committed; its own writes it sees at once.
        pool_size: Connections to the database that this process holds at most.
        window_exchanges: Exchanges beside the current one at most; `None`: the budget decides.
        strategy: How threads are loaded; default: `"summary_buffer"` where a chat model is given,
            else `"sliding_window"`.
        update_every_turns: So many answered turns make an update of the notes due.
        chat_model: Learns notes unless one is given: `package.module:name`, as an import path.
        cheap_model_id: The model that it calls; default: its own.
        inline_updates: Update notes in the caller's thread, for tests and jobs.
        encoding: tiktoken encoding that counts tokens.
        token_factor: Multiplies every count, for models with another vocabulary.
        tiktoken_cache_dir: Folder of rank files; `TIKTOKEN_CACHE_DIR` is read too.
        tiktoken_download: Fetch missing rank files from tiktoken's own address.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", populate_by_name=True
    )

    location: str | None = Field(default=None, repr=False)  # a URL may hold a password
    tenant: str | None = None
    backend: BackendName = "hybrid"
    chroma: str | None = Field(default=None, repr=False)
    cache_size: int = Field(default=100, ge=0)
    indexing: bool = True
    local_embedder: bool = True
    dedup: Dedup = "content"
    metadata_limit: int = Field(default=METADATA_LIMIT, ge=1)
    index_threshold: int | None = Field(default=None, ge=0)
    exact_limit: int = Field(default=16_000, ge=0, le=50_000)
    indexed_metadata: tuple[str, ...] = ()
    index_turns: bool = True
    part_gap_hours: float = Field(default=4.0, gt=0)
    recall_share: float = Field(default=0.8, ge=0, le=1)
    audit: bool = False
    audit_reads: bool = False
    redactor: str | None = None
    encryption_key: str | None = Field(default=None, repr=False)
    quota_entries: int | None = Field(default=None, ge=0)
    quota_bytes: int | None = Field(default=None, ge=0)
    quota_writes_per_minute: int | None = Field(default=None, ge=0)
    trace_content: bool = False
    durability: DurabilityName = "process"
    busy_seconds: float = Field(default=30.0, ge=0)
    generation_check_seconds: float = Field(default=1.0, ge=0)
    pool_size: int = Field(default=8, ge=1)
    window_exchanges: int | None = Field(default=None, ge=0)
    strategy: Strategy | None = None
    update_every_turns: int = Field(default=6, ge=1)
    chat_model: str | None = None
    cheap_model_id: str | None = None
    inline_updates: bool = False
    encoding: str = "o200k_base"
    token_factor: float = Field(default=1.0, gt=0, lt=10)
    tiktoken_cache_dir: Path | None = Field(
        default=None,
        validation_alias=AliasChoices(
            "tiktoken_cache_dir", PREFIX + "TIKTOKEN_CACHE_DIR", "TIKTOKEN_CACHE_DIR"
        ),
    )
    tiktoken_download: bool = False

    def __init__(self, **options: Any) -> None:
        _refuse_unknown_variables(type(self).model_fields)
        try:
            super().__init__(**options)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            name = ".".join(str(part) for part in first["loc"]) or "settings"
            raise ConfigurationError(name, first["msg"]) from None

    @classmethod
    def read(cls, options: Mapping[str, Any] | None = None) -> Self:
        """Return the settings; given options win over the environment.

        Raises:
            ConfigurationError: A name is unknown or a value is out of range.
        """
        return cls(**dict(options or {}))


def _refuse_unknown_variables(known: Mapping[str, Any]) -> None:
    for variable in os.environ:
        name = variable.removeprefix(PREFIX).lower()
        if variable.startswith(PREFIX) and name not in known:
            raise ConfigurationError(variable, "is no setting of HierMem; unset it")
