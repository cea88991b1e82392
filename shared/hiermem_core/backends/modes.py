"""What the backends differ in."""

from __future__ import annotations

MODES: dict[str, frozenset[str]] = {
    "sqlite": frozenset({"keyword"}),
    "chroma": frozenset({"semantic"}),
    "hybrid": frozenset({"keyword", "semantic", "hybrid"}),
    "in_memory": frozenset({"keyword", "semantic", "hybrid"}),
}
"""The modes each backend has an index for."""

BY_WORDS = frozenset({"keyword", "hybrid"})
"""Those that need a keyword index, which holds no words where a codec encodes what is kept."""

INDEX_THRESHOLDS = {"chroma": 0, "hybrid": 16_000}
"""Vectors a tenant may have before they are kept in the vector index, unless a setting says."""
