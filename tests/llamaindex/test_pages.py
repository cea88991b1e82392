"""The pages on LlamaIndex: every Python block runs, in order, and prints what the page shows."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from hiermem_core import HierMem

FOLDER = Path(__file__).parents[2] / "docs" / "llamaindex"
PAGES = sorted(FOLDER.glob("*.md"))
BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:```text\n(?P<shown>.*?)```)?", re.DOTALL)
LINK = re.compile(r"\]\((?P<page>[\w./-]+\.md)\)")


@pytest.mark.filterwarnings("ignore::llamaindex_hiermem.memory.HierMemTrimWarning")
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")
@pytest.mark.filterwarnings("ignore:is_running called from within a step:DeprecationWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_print_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}

    for block in BLOCK.finditer(page.read_text("utf-8")):
        printed = StringIO()
        with redirect_stdout(printed):
            exec(compile(block["code"], page.name, "exec"), names)
        assert printed.getvalue() == (block["shown"] or "")

    opened = HierMem.opened(str(tmp_path / "memory"))
    if opened is not None:
        opened.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_links_to_pages_that_are_there(page):
    for link in LINK.finditer(page.read_text("utf-8")):
        assert (FOLDER / link["page"]).is_file()
