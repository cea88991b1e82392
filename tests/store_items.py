"""How tests name the items of a LangGraph store."""

from __future__ import annotations


def names_of(items):
    return [(item.namespace, item.key) for item in items]
