"""What the documentation takes from elsewhere: files of the root, and every page of a folder."""
# ruff: noqa: INP001 - a hook of mkdocs, no package

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
FROM_ROOT = {"SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md"}
FOLDERS = {"LlamaIndex": "llamaindex", "LangChain": "langchain"}
"""Whose pages stand in the navigation under a heading, in the order of their names."""


def on_config(config: Any) -> Any:
    """Put into the navigation what is there."""
    sections = {name: pages for part in config.nav for name, pages in part.items()}
    for heading, folder in FOLDERS.items():
        for page in sorted((ROOT / "docs" / folder).glob("*.md")):
            sections[heading].append({_title(page): f"{folder}/{page.name}"})
    if (ROOT / "docs" / "scaling.md").is_file():
        sections["Operate"].append({"Scaling": "scaling.md"})
    titles = {"security.md": "Security", "changelog.md": "Changelog"}
    present = [page for name, page in FROM_ROOT.items() if (ROOT / name).is_file()]
    sections["Know"] += [{titles[page]: page} for page in present]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Take the files of the root as pages; links from there to pages are made right."""
    for name, page in FROM_ROOT.items():
        if (ROOT / name).is_file():
            text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
            files.append(File.generated(config, page, content=text))
    return files


def _title(page: Path) -> str:
    found = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else page.stem
