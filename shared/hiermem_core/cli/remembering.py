"""`hiermem remember` and `hiermem update`: writing entries."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hiermem_core.cli.given import given_fields, given_json, given_text
from hiermem_core.cli.opening import opened_tenant, require_lasting
from hiermem_core.cli.options import (
    JsonOption,
    KeyOption,
    LocationOption,
    MetadataOption,
    PlaceOption,
    QuietOption,
    TagOption,
    TenantOption,
    TtlOption,
    TypeOption,
    UserOption,
)
from hiermem_core.cli.output import emit, note
from hiermem_core.cli.plain import entry_json
from hiermem_core.displays.wording import counted
from hiermem_core.errors import InvalidInputError, NotFoundError

if TYPE_CHECKING:
    from hiermem_core import Tenant
    from hiermem_core.models.entries import MemoryEntry


class Clearable(StrEnum):
    """What an update can clear."""

    KEY = "key"
    TAGS = "tags"
    METADATA = "metadata"
    TTL = "ttl"
    USER = "user"


_CLEARED: dict[Clearable, tuple[str, Any]] = {
    Clearable.KEY: ("key", None),
    Clearable.TAGS: ("tags", ()),
    Clearable.METADATA: ("metadata", {}),
    Clearable.TTL: ("ttl", None),
    Clearable.USER: ("user_id", None),
}


def remember(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="- is standard input.")],
    *,
    namespace: PlaceOption = None,
    key: KeyOption = None,
    tag: TagOption = None,
    type_: TypeOption = None,
    ttl: TtlOption = None,
    metadata: MetadataOption = None,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="SOURCE", help="user, assistant, tool, import, system."),
    ] = None,
    user: UserOption = None,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Store an entry, and print its id.

    Under a key that is taken it replaces what is there. The same text again, without a key, is
    counted and not stored twice.
    """
    fields = given_fields(
        namespace=namespace,
        key=key,
        tags=tag or None,
        type=type_,
        ttl=ttl,
        metadata=given_json("metadata", metadata),
        source=source,
        user_id=user,
    )
    content = given_text("text", text)
    require_lasting()
    with opened_tenant(location, tenant, create=True) as owner:
        entry = _stored(owner, owner.remember(content, **fields))
        place = f"{owner.location}, tenant {owner.name}, namespace {entry.namespace}"
    emit({"tenant": owner.name, "entry": entry_json(entry)}, [entry.id], as_json=as_json)
    note(f"{_outcome(entry, has_key=key is not None)} {place}", quiet=quiet)


def update(
    entry_id: Annotated[str, typer.Argument(metavar="ID", help="The entry's id.")],
    *,
    content: Annotated[
        str | None, typer.Option("--content", metavar="TEXT", help="- is standard input.")
    ] = None,
    key: KeyOption = None,
    tag: TagOption = None,
    type_: TypeOption = None,
    ttl: TtlOption = None,
    metadata: MetadataOption = None,
    user: UserOption = None,
    clear: Annotated[
        list[Clearable] | None,
        typer.Option("--clear", help="Empty a field; without ttl it never expires."),
    ] = None,
    expected_version: Annotated[
        int | None,
        typer.Option("--expected-version", metavar="N", help="Fail if it is another one."),
    ] = None,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Change the given fields of an entry, and no others.

    Tags and metadata are replaced as a whole.
    """
    del quiet
    fields = given_fields(
        content=None if content is None else given_text("content", content),
        key=key,
        tags=tag or None,
        type=type_,
        ttl=ttl,
        metadata=given_json("metadata", metadata),
        user_id=user,
    )
    changes = _with_cleared(fields, clear or [])
    with opened_tenant(location, tenant) as owner:
        entry = owner.memory.update(entry_id, expected_version=expected_version, **changes)
    if entry is None:
        raise missing_entry(entry_id)
    line = f"{entry.id}: version {entry.version}"
    emit({"tenant": owner.name, "entry": entry_json(entry)}, [line], as_json=as_json)


def missing_entry(name: str) -> NotFoundError:
    """Return the error of an entry that is not there."""
    return NotFoundError(f"entry {name!r} not found; see: hiermem list")


def _stored(owner: "Tenant", entry_id: str) -> "MemoryEntry":
    entry = owner.memory.retrieve(entry_id)
    if entry is None:  # it has gone meanwhile
        raise missing_entry(entry_id)
    return entry


def _outcome(entry: "MemoryEntry", *, has_key: bool) -> str:
    if entry.version == 1:
        return "remembered in"
    if has_key:
        return f"replaced, version {entry.version}, in"
    return f"was there already, stored {counted(entry.times_stored, 'time')} in"


def _with_cleared(fields: dict[str, Any], clear: list[Clearable]) -> dict[str, Any]:
    cleared = dict(_CLEARED[name] for name in clear)
    both = sorted(set(fields) & set(cleared))
    if both:
        raise InvalidInputError(both[0], "is both given and cleared; leave one out")
    if not fields and not cleared:
        raise InvalidInputError("fields", "nothing is to be changed; name a field, see --help")
    return fields | cleared
