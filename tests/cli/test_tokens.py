"""Counting tokens, and fetching vocabularies, without a network."""

from __future__ import annotations

import io
import sys
from urllib.error import URLError

from hiermem_core.tokens import tiktoken_counter


def test_a_text_is_counted(hiermem):
    value = hiermem("tokens", "count", "hello world", "--json").json

    assert value["characters"] == 11
    assert value["tokens"] >= 2


def test_standard_input_is_counted_whatever_its_bytes(hiermem, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(b"hello \xff world"))
    monkeypatch.setattr(sys, "stdin", stdin)

    value = hiermem("tokens", "count", "-", "--json").json

    assert value["characters"] == 13


def test_a_vocabulary_at_hand_is_not_fetched_again(hiermem, monkeypatch, tmp_path):
    monkeypatch.setattr(tiktoken_counter, "find_ranks", lambda name, folders: tmp_path / name)

    run = hiermem("tokens", "fetch", "o200k_base", "--json")

    assert run.json == {
        "encoding": "o200k_base",
        "path": str(tmp_path / "o200k_base"),
        "fetched": False,
    }


def test_a_missing_vocabulary_is_fetched_into_the_cache_folder(hiermem, monkeypatch, tmp_path):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(tiktoken_counter, "fetch_ranks", lambda name, folder: folder / name)

    run = hiermem("tokens", "fetch", "p50k_base")

    assert run.out == f"p50k_base: fetched: {tmp_path / 'cache' / 'p50k_base'}\n"
    assert f"fetching p50k_base into {tmp_path / 'cache'}" in run.err


def test_a_fetch_that_fails_is_a_failure_and_says_where_to_copy_the_file(hiermem, monkeypatch):
    def refuse(address, *, timeout):
        raise URLError("no route to host")

    monkeypatch.setattr(tiktoken_counter.fetch_ranks, "__kwdefaults__", {"open_url": refuse})

    run = hiermem("tokens", "fetch", "p50k_base")

    assert run.code == 1
    assert "URLError; try again, or copy its rank file to /" in run.err
