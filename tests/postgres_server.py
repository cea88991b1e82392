"""A PostgreSQL server of the tests' own: a temporary cluster on 127.0.0.1, gone when they end.

For tests, the fixtures that `conftest.py` takes from here:

- `postgres_url`: the URL of an empty database of the test's own, with a password in it,
  `postgresql+psycopg://...`; it is dropped after the test, whoever is still connected.
- `postgres_location`: the URL of a location where nothing is stored yet; cheaper than a database.
- `postgres_server`: the server, one for each process of tests. `new_database()` makes further
  databases. A test that stops or kills a server makes one of its own:
  `with running_server() as server: server.stop("immediate"); server.start()`; its port stays.

The server is never root: as root it runs as `postgres`, or as `nobody`. It does not sync to disk,
yet what it has committed outlives its being killed.
Where PostgreSQL or psycopg is absent the tests that ask for it are skipped, and fail if
TEST_REQUIRE_POSTGRES is set. PG_BIN names the folder of the binaries, if it is no usual one.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import random
import secrets
import shutil
import subprocess
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

REQUIRED = "TEST_REQUIRE_POSTGRES"
USER = "hiermem"
PASSWORD = "s3cret-Pa55"
OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "100",
    "timezone": "UTC",
}
PORTS = range(20_000, 32_000)
"""Below those that systems give to whoever asks for any."""

ATTEMPTS = 20


class PostgresServer:
    """A cluster in a folder, and the server that runs on it.

    Attributes:
        port: On 127.0.0.1.
    """

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._binaries = binaries
        self._data = folder / "data"
        self._log = folder / "server.log"
        self._password = folder / "password"
        self._identity = _identity()
        self._process: subprocess.Popen | None = None
        self.port = 0
        self._initialise(folder)

    def url(self, database: str = "postgres") -> str:
        """Return the URL of a database, as SQLAlchemy takes it."""
        return f"postgresql+psycopg://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def new_database(self, options: str = "") -> str:
        """Make an empty database, by options of `CREATE DATABASE`; return its URL."""
        name = f"test_{secrets.token_hex(6)}"
        self._run_sql(f'CREATE DATABASE "{name}" {options}')
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Remove a database, whoever is connected to it."""
        self._run_sql(f'DROP DATABASE IF EXISTS "{url.rpartition("/")[2]}" WITH (FORCE)')

    def start(self) -> None:
        """Start the server on its port, or on one that is free; wait until it answers."""
        ports = [self.port] if self.port else random.sample(PORTS, ATTEMPTS)
        for self.port in ports:
            self._process = self._spawn()
            if self._answers():
                return
        raise RuntimeError(f"PostgreSQL does not start:\n{self._log.read_text()}")

    def stop(self, how: str = "fast") -> None:
        """Stop the server; `immediate`: as if it were killed."""
        if self._process is not None and self._process.poll() is None:
            self._control("stop", "--mode", how, "--wait")
            self._process.wait()

    def _initialise(self, folder: Path) -> None:
        self._password.write_text(PASSWORD)
        if self._identity:
            for path in (folder, self._password):
                shutil.chown(path, self._identity["user"], self._identity["group"])
        self._run(
            *("initdb", "--pgdata", self._data, "--username", USER, "--pwfile", self._password),
            *("--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync"),
        )

    def _spawn(self) -> subprocess.Popen:
        settings = {**OPTIONS, "port": str(self.port)}
        options = [word for pair in settings.items() for word in ("-c", "=".join(pair))]
        command = [self._binaries / "postgres", "-D", self._data, *options]
        if setpriv := shutil.which("setpriv"):  # a server goes with the process that started it
            command = [setpriv, "--pdeathsig", "INT", *command]
        with self._log.open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **self._identity)

    def _answers(self) -> bool:
        where = ("--host", "127.0.0.1", "--port", str(self.port), "--timeout", "1")
        command = [self._binaries / "pg_isready", "--quiet", *where]
        while self._process.poll() is None:
            if subprocess.run(command, check=False).returncode == 0:
                return self._process.poll() is None
        return False

    def _control(self, *words: str) -> None:
        self._run("pg_ctl", "--pgdata", self._data, *words)

    def _run(self, program: str, *words: str | Path) -> None:
        command = [self._binaries / program, *words]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd="/", **self._identity
        )
        assert done.returncode == 0, done.stderr + done.stdout

    def _run_sql(self, statement: str) -> None:
        import psycopg

        url = self.url().replace("+psycopg", "")
        with closing(psycopg.connect(url, autocommit=True)) as connection:
            connection.execute(statement)


@contextmanager
def running_server():
    """Run a server for a block, or skip the test where that cannot be."""
    binaries = _binaries_or_skip()
    folder = Path(tempfile.mkdtemp(prefix="hiermem-postgres-"))
    try:
        server = PostgresServer(binaries, folder)
        try:
            server.start()
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server():
    """Return a running server, shared by the tests of this process."""
    with running_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server):
    """Return the URL of an empty database of the test's own."""
    url = postgres_server.new_database()
    yield url
    postgres_server.drop_database(url)


@pytest.fixture(scope="session")
def postgres_database(postgres_server):
    """Return the URL of this process's database."""
    return postgres_server.new_database()


@pytest.fixture
def postgres_location(postgres_database):
    """Return the URL of a location of its own in the process's database, a schema."""
    import psycopg

    schema = f"test_{secrets.token_hex(6)}"
    yield f"{postgres_database}?schema={schema}"
    url = postgres_database.replace("+psycopg", "")
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def _binaries_or_skip() -> Path:
    found = _binaries()
    missing = "PostgreSQL" if found is None else "psycopg"
    if found is not None and importlib.util.find_spec("psycopg") is not None:
        return found
    leave = pytest.fail if os.environ.get(REQUIRED) else pytest.skip
    leave(f"{missing} is not installed; its tests need the postgresql package and psycopg")
    return Path()


def _binaries() -> Path | None:
    """Return the folder of the newest server's binaries."""
    if named := os.environ.get("PG_BIN"):
        return Path(named)
    packaged = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3])
    )
    found = packaged[-1] if packaged else shutil.which("initdb")
    return Path(found).resolve().parent if found else None


def _identity() -> dict[str, object]:
    """Return as whom a server runs: as us, but never as root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise RuntimeError("PostgreSQL refuses to run as root; add a user named postgres")
