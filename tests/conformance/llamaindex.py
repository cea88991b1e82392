"""Run LlamaIndex's own tests against HierMem's classes, and say how many pass.

    python tests/conformance/llamaindex.py [--tests FOLDER]

The tests are those of the installed core. They are taken from its source distribution, or from a
folder of a checkout, `llama-index-core/tests`, that is named or stands in LLAMA_INDEX_TESTS. Where
there are none, that is said and nothing fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree as ET

HERE = Path(__file__).parent
SOURCES = [HERE, HERE.parents[1], HERE.parents[1] / "shared"]
DISTRIBUTION = "llama-index-core"


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")


@dataclass(frozen=True)
class Gate:
    """One of upstream's files, and what is put in the place of its classes.

    Attributes:
        may_fail: So many tests ask for what only upstream's own class has.
        same_as_upstream: Exactly those may fail that fail without substitution.
        since: The first core it is asked of.
    """

    file: str
    substitutions: str
    may_fail: int = 0
    same_as_upstream: bool = False
    since: tuple[int, ...] = (0,)


ENGINES = ["test_simple", "test_context", "test_condense_plus_context", "test_condense_question"]
PICTURES = ["test_mm_condense_plus_context", "test_multi_modal_context"]

GATES = [
    Gate("memory/test_chat_memory_buffer.py", "buffer"),
    Gate("storage/chat_store/test_simple_chat_store.py", "chatstore"),
    Gate("storage/chat_store/test_sql.py", "dbstore", may_fail=2),
    *(Gate(f"chat_engine/{name}.py", "engine") for name in (*ENGINES, *PICTURES)),
    *(Gate(f"chat_engine/{name}.py", "buffer") for name in ENGINES),
    Gate("memory/test_memory_base.py", "dbstore", since=(0, 14, 24)),
    Gate("agent/workflow", "buffer", same_as_upstream=True),
]


@dataclass
class Outcome:
    """What became of a run: the names of its tests."""

    passed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)
    errors: str = ""


def main() -> int:
    """Run every gate; return how many were not passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=Path, default=os.environ.get("LLAMA_INDEX_TESTS") or None)
    options = parser.parse_args()
    installed = version(DISTRIBUTION)
    with tempfile.TemporaryDirectory() as folder:
        tests = options.tests or downloaded(installed, Path(folder))
        if tests is None:
            return 0
        if not any((Path(tests) / gate.file).exists() for gate in GATES):
            say(f"none of the files is in {tests}; name the folder tests of {DISTRIBUTION}")
            return 1
        return sum(not is_passed(gate, Path(tests).resolve(), installed) for gate in GATES)


def downloaded(installed: str, folder: Path) -> Path | None:
    """Return the folder of tests in the core's source distribution, or say why there is none."""
    wanted = f"{DISTRIBUTION}=={installed}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    got = subprocess.run(
        [*command, "--no-binary", ":all:", "--dest", folder, wanted],
        capture_output=True,
        text=True,
        check=False,
    )
    archives = list(folder.glob("*.tar.gz"))
    if got.returncode or not archives:
        say(f"skipped: {wanted} cannot be downloaded as a source distribution from here")
        return None
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder, filter="data")
    tests = next(folder.glob("*/tests/memory"), None)
    if tests is None:
        say(f"skipped: the source distribution of {wanted} holds no tests; name a checkout's:")
        say(f"  {sys.argv[0]} --tests PATH/{DISTRIBUTION}/tests")
        return None
    return tests.parent


def is_passed(gate: Gate, tests: Path, installed: str) -> bool:
    """Run a gate, print its line, and tell whether it is passed."""
    name = f"{gate.file} [{gate.substitutions}]"
    if not (tests / gate.file).exists():
        say(f"absent    {name}")
        return True
    if _numbers(installed) < gate.since:
        say(f"not asked {name}: of cores from {'.'.join(map(str, gate.since))} on")
        return True
    outcome = run(tests, gate.file, gate.substitutions)
    excused = run(tests, gate.file, "").failed if gate.same_as_upstream else set()
    surplus = outcome.failed - excused
    is_good = bool(outcome.passed) and len(surplus) <= gate.may_fail
    counts = f"{len(outcome.passed)} passed, {len(outcome.failed)} failed"
    say(f"{'passed   ' if is_good else 'NOT passed'} {name}: {counts}")
    for test in sorted(surplus):
        say(f"          {test}")
    if not (outcome.passed or outcome.failed):
        say(outcome.errors)
    return is_good


def run(tests: Path, file: str, substitutions: str) -> Outcome:
    """Return what becomes of a file's tests under substitutions."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        paths = os.pathsep.join(map(str, [*SOURCES, tests.parent]))
        ended = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-c", os.devnull),
                *("--rootdir", tests.parent, "--junit-xml", report),
                *("-p", "llamaindex_subst", "-p", "no:cacheprovider", tests / file),
            ],
            cwd=folder,
            env=os.environ
            | {"PYTHONPATH": paths, "LLAMAINDEX_SUBST": substitutions, "IS_TESTING": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if not report.exists():
            return Outcome(errors=ended.stdout[-2000:] + ended.stderr[-2000:])
        outcome = outcome_of(ET.parse(report))
        outcome.errors = ended.stdout[-2000:]
        return outcome


def outcome_of(report: ET.ElementTree[ET.Element]) -> Outcome:
    """Return what a JUnit report tells."""
    outcome = Outcome()
    for case in report.iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        if case.find("failure") is not None or case.find("error") is not None:
            outcome.failed.add(name)
        elif case.find("skipped") is not None:
            outcome.skipped.add(name)
        else:
            outcome.passed.add(name)
    return outcome


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdigit())


if __name__ == "__main__":
    sys.exit(main())
