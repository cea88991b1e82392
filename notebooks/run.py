"""Run the notebooks from a fresh kernel and write what they show: `python notebooks/run.py`.

With `--check` nothing is written. With names, only those are run. Nothing in them needs a network.
"""
# ruff: noqa: INP001 - a script, no package

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from traitlets.config import Config

FOLDER = Path(__file__).parent
SECONDS = 300
_PLACES = re.compile(r"(?:/tmp/|/home/|/root/|/Users/|[A-Z]:\\\\)\S*")


def main() -> int:
    """Run the notebooks; return how many failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--check", action="store_true", help="write nothing")
    given = parser.parse_args()
    paths = [FOLDER / f"{name}.ipynb" for name in given.names] or sorted(FOLDER.glob("*.ipynb"))
    return sum(not _is_run(path, is_check=given.check) for path in paths)


def _is_run(path: Path, *, is_check: bool) -> bool:
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.metadata.clear()
    resources = {"metadata": {"path": str(FOLDER)}}
    with tempfile.TemporaryDirectory() as folder:
        kernel = {"transport": "ipc", "ip": f"{folder}/kernel"}  # no port of this machine
        config = Config({"KernelManager": kernel})
        client = NotebookClient(notebook, timeout=SECONDS, resources=resources, config=config)
        try:
            client.execute()
        except CellExecutionError as error:
            sys.stderr.write(f"{path.name}: {error}\n")
            return False
    for cell in notebook.cells:
        cell.metadata.clear()  # when each cell ran is nobody's business
    notebook.metadata["language_info"] = {"name": "python"}
    if places := sorted(set(_PLACES.findall(nbformat.writes(notebook)))):
        sys.stderr.write(f"{path.name}: shows places of this machine: {', '.join(places)}\n")
        return False
    if not is_check:
        nbformat.write(notebook, path)
    sys.stdout.write(f"{path.name}: ran\n")
    return True


if __name__ == "__main__":
    sys.exit(main())
