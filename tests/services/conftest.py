"""A home of its own for each test, and nothing left of its jobs afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import kills, leftovers, shares
from support.shell_jobs import Submit

from paceline.engines.local import engine, machines
from paceline.engines.local.folders import RunFolder
from paceline.services.local import jobs, state_dirs
from paceline.stores import open_store


@pytest.fixture
def api(tmp_path: Path) -> Iterator[jobs.Jobs]:
    home = state_dirs.Home.from_environment({"PACELINE_HOME": str(tmp_path / "home")})
    with open_store(home.store_url) as store:
        api = jobs.Jobs(home, store)
        yield api
        for run in api.runs():
            folder = RunFolder.of(run)
            kills.kill(leftovers.supervisor_pids(folder))
            engine.release(folder, machines.read())


@pytest.fixture
def submit(api: jobs.Jobs, tmp_path: Path) -> Submit:
    return lambda spec: api.submit(spec, source="", base=tmp_path)


@pytest.fixture
def preferred(api: jobs.Jobs) -> Iterator[None]:
    """Jobs get what their limits let them take, whatever runs beside the test: a cut is felt."""
    with shares.preferred(api.home.path):
        yield
