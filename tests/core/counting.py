"""Every shipped token counter, made anew."""

from __future__ import annotations

from hiermem_core.tokens.counters import ApproximateCounter, FunctionCounter
from hiermem_core.tokens.tiktoken_counter import TiktokenCounter, rank_folders


def tiktoken_counter(encoding="o200k_base", factor=1.0):
    return TiktokenCounter(encoding, folders=rank_folders(None), factor=factor)


def approximate_counter():
    return ApproximateCounter()


def function_counter():
    return FunctionCounter(lambda text: -(-len(text) // 4), id="quarter-characters")


def splitting_counter():
    return FunctionCounter(str.split, id="words")


COUNTERS = {
    "tiktoken": tiktoken_counter,
    "approximate": approximate_counter,
    "function": function_counter,
}
