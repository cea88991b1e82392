"""Run the tests of the LlamaIndex plugin on every version it supports, and say how each fared.

    python tests/matrix.py [--folder FOLDER] [--cells CORE/PYDANTIC ...]

Each cell has a virtual environment of its own, kept for the next run, and all share pip's cache.
A cell runs every L case, sync and async, in memory and on disk, and the thread that is shared with
LangChain. What only some versions have, a block kind or a way into upstream's `Memory`, is left out
by the tests themselves, with the reason.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ["tests/llamaindex", "tests/test_shared_thread.py", "tests/test_shared_agents.py"]
CASES = " or ".join(f"test_l{tens}" for tens in range(6)) + " or test_shared_thread"
SECONDS = 900

OLD_CORES = (
    "ignore:ServiceManager is deprecated:DeprecationWarning",
    "ignore:The 'validate_default' attribute:UserWarning",
)
"""What the workflows of core 0.13 say with each run, and pydantic 2.12 of its fields at import."""


@dataclass(frozen=True)
class Cell:
    """A core and a pydantic, as far as each is named."""

    core: str
    pydantic: str

    @property
    def name(self) -> str:
        """Core and pydantic in one word."""
        return f"{self.core}/{self.pydantic}"

    @property
    def requirements(self) -> list[str]:
        """What pip is asked for beside the project."""
        return [f"llama-index-core=={self.core}", f"pydantic=={self.pydantic}"]


CELLS = [
    Cell("0.13.0", "2.11.5"),
    Cell("0.13.0", "2.12.*"),
    Cell("0.14.15", "2.12.*"),
    Cell("0.14.15", "2.13.*"),
    Cell("0.14.25", "2.12.*"),
    Cell("0.14.25", "2.13.*"),
    Cell("0.14.25", "2.14.*"),
]


def main() -> int:
    """Run every cell, as many at a time as there are cores; return how many failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / ".matrix")
    parser.add_argument("--cells", nargs="+", default=[cell.name for cell in CELLS])
    options = parser.parse_args()
    chosen = [cell for cell in CELLS if cell.name in options.cells]
    cores = os.cpu_count() or 1
    workers = max(1, cores // max(1, len(chosen)))
    folder = options.folder.resolve()
    with ThreadPoolExecutor(max_workers=cores) as pool:
        passed = list(pool.map(lambda cell: is_passed(cell, folder, workers), chosen))
    return passed.count(False) + (not passed)


def is_passed(cell: Cell, folder: Path, workers: int) -> bool:
    """Run a cell in some processes, print its line, and tell whether it is passed."""
    started = time.monotonic()
    python = environment(cell, folder / cell.name.replace("/", "-").replace("*", "x"))
    options = ["-q", "--timeout=240", "-rs", "-k", CASES, f"--numprocesses={workers}"]
    for warning in OLD_CORES:
        options += ["-W", warning]
    ended = run([python, "-m", "pytest", *options, *TESTS])
    lines = (ended.stdout or ended.stderr).splitlines() or ["nothing said"]
    took = time.monotonic() - started
    if ended.returncode:
        say("\n".join(lines[-60:]))
    word = "FAILED" if ended.returncode else "passed"
    say(f"{word} {cell.name} in {took:.0f} s: {lines[-1]}")
    return not ended.returncode


def environment(cell: Cell, place: Path) -> Path:
    """Return the Python of a cell's environment, made and filled where it is not there yet."""
    python = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
        install(python, "--upgrade", "pip>=25.1")
    project = ["--editable", f"{ROOT}[langchain]", "--group", f"{ROOT}/pyproject.toml:test"]
    install(python, *cell.requirements, *project)
    return python


def install(python: Path, *what: str) -> None:
    """Install what pip is asked for, or end with what pip says."""
    ended = run([python, "-m", "pip", "install", "--quiet", *what])
    if ended.returncode:
        raise SystemExit(ended.stdout + ended.stderr)


def run(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    """Run a command in the project's folder and return what it said."""
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": ",".join(OLD_CORES)},  # for children of tests
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
