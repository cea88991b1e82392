"""Upstream's own tests, from source distributions, run on our classes."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass

import pytest

SETTINGS = """
[pytest]
anyio_mode = auto
addopts = --import-mode=importlib -p no:cacheprovider -p no:asyncio -rfE -q
markers =
    asyncio: an asynchronous test
    flaky: may fail by the clock
pythonpath = .
"""

BACKEND = """
import pytest

@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"
"""


@dataclass(frozen=True)
class Upstream:
    """The tests of a project, as they are but for the import of what is under test.

    Attributes:
        shim: A module that makes our classes as upstream makes its own.
        imports: What is imported instead, by pattern.
        conftest: What upstream's own would do that its tests need.
    """

    project: str
    version: str
    shim: str
    imports: dict[str, str]
    conftest: str = ""
    folder: str = "tests"

    def run(self, place, name, helpers=(), only=""):
        """Run one file in a folder; return how many pass, the names of those that fail, and all.

        Where the package index cannot be reached, the test is skipped.
        """
        sources = self._unpacked(place) / self.folder
        run = place / "run"
        run.mkdir()
        (run / "shim.py").write_text(self.shim, "utf-8")
        (run / "pytest.ini").write_text(SETTINGS, "utf-8")
        (run / "conftest.py").write_text(BACKEND + self.conftest, "utf-8")
        for file in (name, *helpers):
            text = (sources / file).read_text("utf-8")
            for pattern, ours in self.imports.items():
                text = re.sub(pattern, ours, text)
            (run / file.rpartition("/")[2]).write_text(text, "utf-8")
        return outcomes(run, name.rpartition("/")[2], only)

    def _unpacked(self, folder):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary"]
        wanted = f"{self.project}=={self.version}"
        options = [":all:", "--dest", str(folder), wanted]
        got = subprocess.run([*command, *options], check=False, timeout=300)
        if got.returncode:
            pytest.skip(f"{wanted} cannot be downloaded as a source distribution from here")
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        return folder / archive.name.removesuffix(".tar.gz")


def outcomes(place, name, only=""):
    """Return how many tests pass, the names of the others without parameters, and what was said."""
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", name, "-k", only],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    failed = re.findall(r"^(?:FAILED|ERROR) \S+?::(\S+)", ended.stdout, re.MULTILINE)
    passed = re.search(r"(\d+) passed", ended.stdout)
    assert passed, ended.stdout + ended.stderr
    return int(passed[1]), sorted(one.partition("[")[0] for one in failed), ended.stdout
