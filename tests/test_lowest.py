"""What `make test-lowest` installs are the lowest versions that the project declares."""

from __future__ import annotations

import tomllib
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PLAIN = ["chroma", "embed", "langchain", "langchain-classic", "langgraph"]
RAISED = {"langchain-core"}
"""What langchain asks for newer than the plugin does."""


def floors(extras):
    of_extras = (PROJECT["optional-dependencies"][extra] for extra in extras)
    declared = map(Requirement, chain(PROJECT["dependencies"], *of_extras))
    return {
        one.name: Version(bound.version)
        for one in declared
        for bound in one.specifier
        if bound.operator == ">="
    }


def pinned(name):
    lines = (ROOT / "tests" / name).read_text("utf-8").splitlines()
    pairs = (line.split("==") for line in lines if not line.startswith("#"))
    return {project: Version(version) for project, version in pairs}


def test_the_lowest_versions_are_those_declared():
    assert pinned("lowest.txt") == floors(PLAIN)


def test_those_with_agents_differ_only_in_what_langchain_asks_for():
    agents, plain = pinned("lowest-agents.txt"), floors([*PLAIN, "agents"])

    assert {name for name in plain if agents[name] != plain[name]} == RAISED
    assert set(agents) - set(plain) == {"langgraph"}
