"""What the tests of the LangChain adapter share."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from textwrap import dedent

import pytest
from langchain_core._api.deprecation import LangChainDeprecationWarning
from langchain_core.runnables.history import RunnableWithMessageHistory

import hiermem_core
import langchain_hiermem
from hiermem_core import HierMem
from hiermem_core.testing import FakeClock
from langchain_hiermem import HISTORY_FIELDS, HierMemChatMessageHistory, history_factory

SOURCES = [str(Path(package.__file__).parents[1]) for package in (hiermem_core, langchain_hiermem)]

KEYS = {"input_messages_key": "question", "history_messages_key": "history"}


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def location(durable_location):
    return durable_location


@pytest.fixture
def hiermem(location, clock):
    with HierMem.open(location, clock=clock) as hiermem:
        yield hiermem


@pytest.fixture
def history(hiermem):
    return HierMemChatMessageHistory(hiermem, tenant_id="acme", thread_id="t1")


@pytest.fixture
def thread(hiermem):
    """Give the core's handle of the thread that `history` is a view of."""
    return hiermem.tenant("acme").thread("t1")


@pytest.fixture
def configured():
    """Give the config of a run on a tenant's thread; by default the one of `history`."""

    def config(tenant_id="acme", thread_id="t1"):
        return {"configurable": {"tenant_id": tenant_id, "thread_id": thread_id}}

    return config


@pytest.fixture
def remembering(hiermem):
    """Give what wraps a chain in `RunnableWithMessageHistory`, as the documentation shows it."""

    def wrap(chain, *, strict=False, keys=KEYS):
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore",
                message="RunnableWithMessageHistory is deprecated",
                category=LangChainDeprecationWarning,
            )
            return RunnableWithMessageHistory(
                chain,
                history_factory(hiermem, strict=strict),
                history_factory_config=HISTORY_FIELDS,
                **keys,
            )

    return wrap


@pytest.fixture
def run_python(tmp_path):
    """Give what runs a script in a fresh interpreter and returns how it ended."""

    def run(script, *arguments, options=()):
        return subprocess.run(
            [sys.executable, *options, "-c", dedent(script), *map(str, arguments)],
            env={
                "HOME": str(tmp_path),
                "PATH": os.environ["PATH"],
                "PYTHONPATH": os.pathsep.join(SOURCES),
                **{name: it for name, it in os.environ.items() if name.startswith("HIERMEM_")},
            },
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    return run
