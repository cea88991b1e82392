"""Whose memory a run is of: from the run's context, else from what an adapter was made with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hiermem_core import InvalidInputError, MissingIdentityError


@dataclass(frozen=True, slots=True)
class HierMemContext:
    """Tenant and thread of a run, for `context_schema` of an agent or graph.

    Attributes:
        thread_id: `None`: the thread that the graph is configured with.

    Example:
        ```python
        agent = create_agent(model, middleware=[memory], context_schema=HierMemContext)
        agent.invoke({"messages": "hello"}, context=HierMemContext("alice", "trip"))
        ```
    """

    tenant_id: str
    thread_id: str | None = None


def tenant_of(context: object, given: str | None) -> str:
    """Return the tenant that a context names, else the one given.

    Args:
        context: Any object or mapping; where it has no `tenant_id` it names none.

    Raises:
        MissingIdentityError: Neither names one.
        InvalidInputError: They name two.
    """
    named = _named(context, "tenant_id")
    if named and given and named != given:
        raise InvalidInputError(
            "tenant_id", "the context names another than the constructor; name it in one of them"
        )
    tenant_id: str | None = named or given
    if not tenant_id:
        raise MissingIdentityError("tenant_id")
    return tenant_id


def thread_of(context: object, configured: str | None, given: str | None) -> str:
    """Return the thread that a context names, else the configured one, else the one given.

    Args:
        configured: The thread that the graph runs on.

    Raises:
        MissingIdentityError: None of them names one.
    """
    thread_id: str | None = _named(context, "thread_id") or configured or given
    if not thread_id:
        raise MissingIdentityError("thread_id")
    return thread_id


def _named(context: object, name: str) -> Any:
    return context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)
