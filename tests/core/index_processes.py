"""Processes that work on the vector index, and looking at what they leave."""

from __future__ import annotations

from pathlib import Path

from core.vector_index import World, opened_database

from hiermem_core.vector_index.indexer import IndexCheck

WORLD = f"""
import os, pathlib
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from core.vector_index import World, opened_database, until, vector_for
from hiermem_core.testing import FaultPlan
folder = pathlib.Path(sys.argv[1])
"""


def assert_whole(folder, *, least=0.99, every=1):
    """Open a location whose process died, and assert that index and rows agree."""
    with opened_database(folder) as database:
        world = World(database, folder)
        assert world.indexer.drain(), world.state()
        assert world.indexer.check("acme") == IndexCheck()
        assert world.found(every=every) >= least
        assert world.state().last_error is None
        assert len(list(world.folder.glob("gen-*"))) == 1
        living = world.living()
        world.indexer.close()
    return living
