"""`hiermem inspect` as a command."""

from __future__ import annotations

import hashlib
import socket
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from hiermem_core import ConfigurationError, HierMem, MissingExtraError
from hiermem_core.inspector import serving

ROOT = Path(__file__).parents[2]


def test_the_address_is_of_this_machine_and_has_a_long_token(address):
    scheme, _, host, token, end = address.split("/")

    assert scheme == "http:"
    assert host.startswith("127.0.0.1:")
    assert len(token) >= 32
    assert end == ""


def test_only_this_machine_can_connect(address):
    port = int(address.split("/")[2].partition(":")[2])
    script = f"""
import socket
for host in ("127.0.0.1", "127.0.0.2"):
    with socket.socket() as caller:
        print(host, caller.connect_ex((host, {port})))
"""

    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    answers = dict(line.split() for line in run.stdout.splitlines())
    assert answers["127.0.0.1"] == "0"
    assert answers["127.0.0.2"] != "0"


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)

    with HierMem.open(":memory:") as memory, pytest.raises(MissingExtraError, match="inspect"):
        serving.serve(memory, tenants=["alice"], tell=print)


def test_a_port_that_is_taken_is_said(monkeypatch):
    class Taken:
        def __init__(self, *_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def setsockopt(self, *_):
            pass

        def bind(self, _):
            raise OSError(98, "Address already in use")

    monkeypatch.setattr(socket, "socket", Taken)

    with pytest.raises(ConfigurationError, match="8765"), serving._listening(8765):
        pass


def test_the_vendored_script_is_the_one_the_notice_names():
    script = files("hiermem_core.inspector").joinpath("static/htmx.min.js").read_bytes()

    assert hashlib.sha256(script).hexdigest() in (ROOT / "NOTICE").read_text(encoding="utf-8")
