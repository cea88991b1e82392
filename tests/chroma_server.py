"""A Chroma server of the tests' own, on 127.0.0.1, gone when they end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

PORTS = range(20_000, 32_000)
ATTEMPTS = 10
SECONDS = 60.0


class ChromaServer:
    """`chroma run` on a folder.

    Attributes:
        port: On 127.0.0.1.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """The server's address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it on its port, or on one that is free; wait until it answers."""
        ports = [self.port] if self.port else random.sample(PORTS, ATTEMPTS)
        for self.port in ports:
            self._process = self._spawn()
            if self._answers():
                return
        raise RuntimeError(f"Chroma does not start:\n{self._log.read_text()}")

    def kill(self) -> None:
        """Kill it, as the system does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    @property
    def _log(self) -> Path:
        return self._folder / "server.log"

    def _spawn(self) -> subprocess.Popen:
        program = Path(sys.executable).with_name("chroma")
        where = ("--host", "127.0.0.1", "--port", str(self.port), "--path", self._folder / "data")
        quiet = {"ANONYMIZED_TELEMETRY": "false", "CHROMA_OTEL_COLLECTION_ENDPOINT": ""}
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [program, "run", *where], stdout=log, stderr=log, env={**os.environ, **quiet}
            )

    def _answers(self) -> bool:
        deadline = time.monotonic() + SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.url}/api/v2/heartbeat", timeout=1):
                    return True
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        return False


@contextmanager
def running_chroma():
    """Run a server for a block."""
    with tempfile.TemporaryDirectory(prefix="hiermem-chroma-") as folder:
        server = ChromaServer(Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.kill()


@pytest.fixture(scope="session")
def chroma_server():
    """Return a running server, shared by the tests of this process."""
    with running_chroma() as server:
        yield server
