"""The blocks of docs/scaling.md run, on a server of the tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "scaling.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
URL = "postgresql+psycopg://app:secret@db.example.org/memory"


@pytest.mark.parametrize("block", range(len(BLOCKS)))
def test_a_block_runs(block, location):
    names = {}

    exec(BLOCKS[block].replace(URL, location), names)

    if "hiermem" in names:
        assert names["hiermem"].health().status == "healthy"
        names["hiermem"].close()


def test_the_page_opens_a_server():
    assert URL in BLOCKS[0]
