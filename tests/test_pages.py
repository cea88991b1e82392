"""The pages of the documentation: each Python block runs as pasted, prints what the page shows, and
the site is whole.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hiermem_core.settings import PREFIX, HierMemSettings

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
SERVED = {ROOT / "docs" / "scaling.md"}
"""Pages whose blocks run on a server, in `postgres/test_scaling_page.py`."""

BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:```text\n(?P<shown>.*?)^```)?", re.DOTALL | re.MULTILINE
)
WITH_BLOCKS = [
    page for page in PAGES if page not in SERVED and BLOCK.search(page.read_text(encoding="utf-8"))
]
COMMAND = re.compile(r"^(?:\$ )?(hiermem [-\w].*?)(?:  #.*)?$", re.MULTILINE)

RUN = """
import sys
names = {"__name__": "__main__"}
for block in sys.stdin.read().split("\\0"):
    exec(compile(block, "a block of the page", "exec"), names)
    print(end="\\0")
"""

needs_site = pytest.mark.skipif(
    not importlib.util.find_spec("mkdocs") and os.environ.get("TEST_REQUIRE_DOCS") != "1",
    reason="the site is not built: install the group docs, or run make docs",
)


def named(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=named)
def test_the_blocks_of_a_page_run_in_order_in_one_empty_folder(page, tmp_path):
    blocks = list(BLOCK.finditer(page.read_text(encoding="utf-8")))

    run = subprocess.run(
        [sys.executable, "-c", RUN],
        input="\0".join(block["code"] for block in blocks),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    printed = run.stdout.split("\0")
    assert any(printed)
    for block, said in zip(blocks, printed, strict=False):
        assert block["shown"] in {None, said}


def test_every_command_of_the_pages_is_one_and_has_the_options_named():
    from typer.main import get_command

    from hiermem_core.cli.app import app

    commands = get_command(app).commands
    for page in PAGES:
        for line in COMMAND.findall(page.read_text(encoding="utf-8")):
            words = shlex.split(line, comments=True)
            command = commands.get(words[1])
            assert command or words[1].startswith("-") or words[1].isupper(), (named(page), line)
            known = {name for one in getattr(command, "params", []) for name in one.opts}
            options = {word for word in words[2:] if word.startswith("--")}
            is_listing = not command or hasattr(command, "commands")
            assert is_listing or options <= known | {"--help"}, (named(page), line)


def test_every_page_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [str(page.relative_to(ROOT / "docs")) for page in PAGES]

    assert {page for page in pages if f": {page}\n" not in text} <= {"scaling.md"}


def test_every_public_name_of_the_adapters_is_on_its_page():
    for package in ("langchain_hiermem", "llamaindex_hiermem"):
        names = set(importlib.import_module(package).__all__) - {"HISTORY_FIELDS"}
        page = (ROOT / "docs" / "api" / f"{package.partition('_')[0]}.md").read_text("utf-8")

        assert {name for name in names if f".{name}\n" not in page} == set()


def test_every_setting_is_on_its_page():
    page = (ROOT / "docs" / "guides" / "settings.md").read_text("utf-8")

    assert {
        name for name in HierMemSettings.model_fields if f"`{PREFIX}{name.upper()}`" not in page
    } == set()


@needs_site
@pytest.mark.timeout(300)
def test_the_site_is_built_without_a_warning_and_asks_for_nothing_outside(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"]

    run = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    assert "WARNING" not in run.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > len(PAGES)
    loaded = re.compile(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?(?:https?:)?//[^>]*>")
    outside = {found for page in pages for found in loaded.findall(page.read_text("utf-8"))}
    assert {one for one in outside if 'rel="canonical"' not in one} == set()
    sheets = "".join(sheet.read_text("utf-8") for sheet in (tmp_path / "site").rglob("*.css"))
    assert not re.search(r"url\(['\"]?(?:https?:)?//|@import", sheets)
