"""Stores to test with: a SQLite file, and a database of a real PostgreSQL server where that is installed."""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from paceline import stores
from paceline.control import states
from paceline.model import jobs, roles, runs

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgresql_folder() -> Iterator[str]:
    """The folder of the socket of a PostgreSQL server that lives as long as the session."""
    binaries = _postgresql_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    user = _unprivileged_user() if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="paceline-postgresql-"))
    try:
        if user is not None:
            shutil.chown(folder, user)
        make = [binaries / "initdb", "-D", folder / "data", "-U", "paceline", "-A", "trust", "--no-sync"]
        subprocess.run(
            [*make, "-E", "UTF8", "--locale=C"], check=True, capture_output=True, user=user, cwd=folder
        )
        settings = ["-cfsync=off", "-clisten_addresses=", f"-cunix_socket_directories={folder}"]
        log = folder / "log"
        with log.open("wb") as out:
            server = subprocess.Popen(
                [binaries / "postgres", "-D", folder / "data", *settings], user=user, cwd=folder, stderr=out
            )
        try:
            _wait_until_ready(server, log)
            yield str(folder)
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=30)
    finally:
        shutil.rmtree(folder)


def _postgresql_binaries() -> Path | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if shutil.which("pg_config"):
        told = subprocess.run(["pg_config", "--bindir"], check=True, capture_output=True, text=True)
        folders.append(Path(told.stdout.strip()))
    return next((folder for folder in folders if (folder / "postgres").exists()), None)


def _unprivileged_user() -> str:
    """PostgreSQL refuses to run as root."""
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres").pw_name
    return "nobody"


def _wait_until_ready(server: subprocess.Popen[bytes], log: Path) -> None:
    give_up_at = time.monotonic() + 30
    while "ready to accept connections" not in log.read_text():
        if server.poll() is not None or time.monotonic() > give_up_at:
            pytest.fail("PostgreSQL did not start: " + log.read_text())
        time.sleep(0.05)


def new_postgresql(folder: str) -> str:
    """Return the URL of a new, empty database."""
    name = f"store_{os.getpid()}_{next(_numbers)}"
    engine = sa.create_engine(f"postgresql+psycopg://paceline@/postgres?host={folder}")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    return f"postgresql://paceline@/{name}?host={folder}"


@pytest.fixture(scope="session")
def postgresql_url(postgresql_folder: str) -> str:
    """The URL of a database that many tests use after each other."""
    return new_postgresql(postgresql_folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def fresh_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that does not exist yet, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state/paceline.db"
    return new_postgresql(request.getfixturevalue("postgresql_folder"))


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with an empty store; copying it is faster than migrating for each test."""
    path = tmp_path_factory.mktemp("template") / "paceline.db"
    stores.open_store(f"sqlite:///{path}").close()
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store without runs, of each kind in turn."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "paceline.db")
        return f"sqlite:///{tmp_path}/paceline.db"
    url: str = request.getfixturevalue("postgresql_url")
    with stores.open_store(url) as store, store._database.writing() as connection:
        for table in ("runs", "studies", "audits"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
    return url


@pytest.fixture
def store(store_url: str) -> Iterator[stores.Store]:
    """An empty store."""
    with stores.open_store(store_url) as opened:
        yield opened


MakeRun = Callable[..., tuple[runs.Run, states.JobState]]


@pytest.fixture
def make_run() -> MakeRun:
    """Makes a run, and its first state, with so many replicas."""

    def make(
        name: str = "demo", *, ps: int = 2, workers: int = 3, at: float = 1000.0
    ) -> tuple[runs.Run, states.JobState]:
        counts = {roles.Role.PS: ps, roles.Role.WORKER: workers}
        specs = tuple(jobs.RoleSpec(role=role, replicas=count) for role, count in counts.items() if count)
        spec = jobs.JobSpec(name=name, roles=specs, command=("python", "train.py"), labels={"team": "ads"})
        run = runs.Run(
            name=name, spec=spec, source="kind: TrainingJob\n", engine="local", directory="/runs/demo",
            submitted_at=at,
        )  # fmt: skip
        return run, states.initial(spec)

    return make


@pytest.fixture
def filled(store: stores.Store, make_run: MakeRun) -> stores.Store:
    """A store with the run ``demo``: two PS and three workers."""
    store.create_run(*make_run())
    return store


@pytest.fixture
def small_disk() -> Iterator[Callable[[str], Path]]:
    """Mounts an own file system with some options; skips where that is not allowed."""
    mounted: list[str] = []

    def mount(options: str) -> Path:
        if os.geteuid() != 0:
            pytest.skip("mounting needs root")
        folder = tempfile.mkdtemp(prefix="paceline-disk-")
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "paceline-test", folder], check=False)
        if done.returncode:
            os.rmdir(folder)
            pytest.skip("mounting is not allowed here")
        mounted.append(folder)
        return Path(folder)

    yield mount
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)
        os.rmdir(folder)
