"""Locations that cannot be opened, and what their errors say."""

from __future__ import annotations

import traceback

import pytest

from hiermem_core import HierMem
from hiermem_core.errors import ConfigurationError

PASSWORD = "hunter2-s3cr3t"

WITH_PASSWORD = [
    f"postgresql+psycopg://me:{PASSWORD}@db.example.org/memory?colour=red",
    f"postgresql+psycopg://me:{PASSWORD}@db.example.org:5432/memory?sslmode=require&colour=red",
    f"sqlite://me:{PASSWORD}@/tmp/memory.db?colour=red",
]


@pytest.mark.parametrize("location", WITH_PASSWORD)
def test_e9_an_unknown_parameter_is_named_and_the_password_is_not(location):
    with pytest.raises(ConfigurationError, match="colour") as refused:
        HierMem.open(location)

    shown = "".join(traceback.format_exception_only(refused.value))
    assert PASSWORD not in shown + repr(refused.value) + repr(vars(refused.value))
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    "location",
    [
        f"postgresql+psycopg://me:{PASSWORD}@[broken/memory",
        f"oracle://me:{PASSWORD}@db/memory",
        f"postgresql+psycopg://me:{PASSWORD}@db:port/memory",
        f"://me:{PASSWORD}@db",
    ],
)
def test_e9_a_location_that_cannot_be_used_is_refused_without_its_password(location):
    with pytest.raises(ConfigurationError) as refused:
        HierMem.open(location)

    printed = "".join(traceback.format_exception(refused.value, chain=True, limit=0))
    assert PASSWORD not in str(refused.value) + repr(vars(refused.value)) + printed


@pytest.mark.parametrize("option", ["colour", "windowexchanges"])
def test_e9_an_unknown_option_is_named(tmp_path, option):
    with pytest.raises(ConfigurationError, match=option):
        HierMem.open(tmp_path / "memory", **{option: "red"})


def test_e9_a_location_that_is_missing_is_not_created_unasked(tmp_path):
    with pytest.raises(ConfigurationError, match="nothing is stored"):
        HierMem.open(tmp_path / "memory", create=False)

    assert list(tmp_path.iterdir()) == []
