"""Child processes: fresh interpreters that run a script on this checkout."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import hiermem_core

SOURCES = str(Path(hiermem_core.__file__).parents[1])
SECONDS = 60

HEAD = """
import sys
sys.path.insert(0, {sources!r})
"""


def start(script, *arguments, env=None):
    """Start a fresh interpreter on a script; its `sys.argv[1:]` are the arguments."""
    command = [sys.executable, "-c", HEAD.format(sources=SOURCES) + script, *map(str, arguments)]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ) if env is None else env,
    )


def finish(child):
    """Wait for a child; return its exit status and what it printed."""
    try:
        printed, complaints = child.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        printed, complaints = child.communicate()
        raise AssertionError(f"the child hangs; it printed {printed!r}, {complaints}") from None
    return child.returncode, printed, complaints


def run(script, *arguments, env=None):
    """Run a script to its end and return what it printed; it must succeed."""
    status, printed, complaints = finish(start(script, *arguments, env=env))
    assert status == 0, complaints
    return printed


def run_until_killed(script, *arguments):
    """Run a script that kills itself, and return what it printed before."""
    status, printed, complaints = finish(start(script, *arguments))
    assert status == -signal.SIGKILL, (status, complaints)
    return printed
