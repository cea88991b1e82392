"""What the documentation takes from elsewhere: files of the root."""
# ruff: noqa: INP001 - a hook of mkdocs, no package

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
FROM_ROOT = {"SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md"}


def on_config(config: Any) -> Any:
    """Put into the navigation what is there."""
    sections = {name: pages for part in config.nav for name, pages in part.items()}
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
