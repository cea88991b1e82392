"""The redactor and quota that settings name hold where the command line opens a location too."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from hiermem_core import ConfigurationError, HierMem, InvalidInputError, Quota, QuotaExceededError
from hiermem_core.cli.app import app
from hiermem_core.testing.contracts.redacting import CARD

REDACTOR = "hiermem_core.testing.contracts.redacting:without_cards"


def test_the_command_line_lets_text_in_through_the_redactor_of_the_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("HIERMEM_REDACTOR", REDACTOR)
    monkeypatch.setenv("HIERMEM_QUOTA_ENTRIES", "1")
    place = ["--location", str(tmp_path / "m"), "--tenant", "acme"]

    first = CliRunner().invoke(app, ["remember", f"paid {CARD}", *place, "--json"])
    second = CliRunner().invoke(app, ["remember", "one more", *place])
    listed = CliRunner().invoke(app, ["list", *place, "--json"])

    assert first.exit_code == 0
    assert second.exit_code == 1
    assert isinstance(second.exception, QuotaExceededError)
    assert "[card]" in listed.stdout
    assert CARD not in listed.stdout
    assert json.loads(listed.stdout)


def test_what_is_given_wins_over_the_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("HIERMEM_REDACTOR", REDACTOR)
    monkeypatch.setenv("HIERMEM_QUOTA_ENTRIES", "1")
    with HierMem.open(
        tmp_path, quota=Quota(max_entries=2), redactor=lambda text, _: text.upper()
    ) as hiermem:
        memory = hiermem.tenant("acme").memory

        memory.bulk_insert(["one", "two"]).raise_for_errors()

        assert {hit.content for hit in memory.search()} == {"ONE", "TWO"}
        with pytest.raises(QuotaExceededError):
            memory.store("three")


@pytest.mark.parametrize("name", ["nowhere:at_all", "json", "hiermem_core:nothing"])
def test_a_redactor_that_is_not_there_is_an_error(tmp_path, monkeypatch, name):
    monkeypatch.setenv("HIERMEM_REDACTOR", name)

    with pytest.raises(ConfigurationError, match="redactor"):
        HierMem.open(tmp_path)


def test_a_redactor_that_cannot_be_called_is_an_error(tmp_path):
    with pytest.raises(InvalidInputError, match="redactor"):
        HierMem.open(tmp_path, redactor="upper")
