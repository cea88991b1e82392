"""Provisional; replaced by the calibrated estimator."""

from __future__ import annotations


def estimate_tokens(text: str) -> int:
    """Return a rough count of tokens."""
    wide = sum(character > "\x7f" for character in text)
    return min(len(text.encode("utf-8", "replace")), -(-(len(text) - wide) // 3) + wide)
