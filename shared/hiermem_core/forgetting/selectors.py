"""What is to be forgotten. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hiermem_core.backends.restrictions import Restrictions
from hiermem_core.errors import InvalidInputError
from hiermem_core.models.ids import check_name
from hiermem_core.models.namespaces import format_namespace
from hiermem_core.models.plain import dump_json
from hiermem_core.service.checking import checked_items

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Kind = Literal["ids", "namespace", "thread_id", "user_id", "everything"]


@dataclass(frozen=True, slots=True)
class Selector:
    """What is to be forgotten of one tenant.

    Attributes:
        kind: What `names` are.
        names: The ids, or the one namespace, thread or user; none for `everything`.
    """

    kind: Kind
    names: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Tell whether it selects nothing: an empty list of ids."""
        return self.kind == "ids" and not self.names

    @property
    def entries(self) -> Restrictions | None:
        """What entries must be within to be forgotten; `None`: none is by itself."""
        if self.kind == "thread_id":
            return None
        if self.kind == "namespace":
            return Restrictions(namespace=self.names[0])
        return Restrictions(user_id=self.names[0] if self.kind == "user_id" else None)

    @property
    def ids(self) -> tuple[str, ...] | None:
        """The ids that alone are selected; `None`: it is not by id."""
        return self.names if self.kind == "ids" else None

    def digest(self, tenant: str) -> str:
        """Return what stands for the selector where nothing may be told of it: a SHA-256."""
        facts = [tenant, self.kind, sorted(self.names)]
        return hashlib.sha256(dump_json(facts).encode()).hexdigest()


def selector_of(
    *,
    ids: Iterable[str] | None,
    namespace: str | Sequence[str] | None,
    thread_id: str | None,
    user_id: str | None,
    everything: bool,
) -> Selector:
    """Return the selector of what a caller gives.

    Raises:
        InvalidInputError: None is given, or several, or one that can select nothing.
        LimitExceededError: There are more than 10,000 ids.
    """
    if not isinstance(everything, bool):
        raise InvalidInputError("everything", "must be True or False")
    names: dict[str, Any] = {
        "ids": ids,
        "namespace": namespace,
        "thread_id": thread_id,
        "user_id": user_id,
        "everything": everything or None,
    }
    given = [name for name, value in names.items() if value is not None]
    if len(given) != 1:
        reason = f"give exactly one of {', '.join(names)}"
        raise InvalidInputError(given[1] if given else "ids", reason)
    if ids is not None:
        wanted = dict.fromkeys(check_name("id", name) for name in checked_items(ids))
        return Selector("ids", tuple(wanted))
    if namespace is not None:
        return Selector("namespace", (format_namespace(namespace),))
    if thread_id is not None:
        return Selector("thread_id", (check_name("thread", thread_id),))
    if user_id is not None:
        return Selector("user_id", (check_name("user_id", user_id),))
    return Selector("everything")
