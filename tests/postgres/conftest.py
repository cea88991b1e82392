"""Locations on a PostgreSQL server."""

from __future__ import annotations

import pytest


@pytest.fixture
def location(postgres_location):
    """Return the URL of a location where nothing is stored yet."""
    return postgres_location
