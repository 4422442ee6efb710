"""Stores to test with: a SQLite file, and a database of a real PostgreSQL server where that is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import postgresqls

from paceline import stores
from paceline.control import states
from paceline.model import roles
from paceline.model.jobs import job_specs, runs


@pytest.fixture(scope="session")
def postgresql_url(postgresql: postgresqls.Postgresql) -> str:
    """The URL of a database that many tests use after each other."""
    return postgresql.new_database()


@pytest.fixture(params=["sqlite", "postgresql"])
def fresh_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that does not exist yet, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state/paceline.db"
    found: postgresqls.Postgresql = request.getfixturevalue("postgresql")
    return found.new_database()


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
        for table in ("runs", "studies", "audits", "sessions"):
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
        specs = tuple(
            job_specs.RoleSpec(role=role, replicas=count) for role, count in counts.items() if count
        )
        spec = job_specs.JobSpec(
            name=name, roles=specs, command=("python", "train.py"), labels={"team": "ads"}
        )
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
