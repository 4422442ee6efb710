"""A server over a home of its own, asked without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from support import filled_homes
from support.clocks import Clock

from paceline.services.local import jobs, state_dirs
from paceline.stores import recordings
from paceline.surfaces import composition
from paceline.surfaces.web.applications import application
from paceline.surfaces.web.gates import TokenGate
from paceline.surfaces.web.job_files import JobFiles
from paceline.surfaces.web.sites import LocalSite

TOKEN = "the-token"
HOST = "testserver"
RECORDED = Path(__file__).parents[3] / "benchmarks" / "diagnosis" / "recordings"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def api(home: state_dirs.Home) -> Iterator[jobs.Jobs]:
    with composition.opened(home) as opened:
        yield opened


@pytest.fixture
def stranger(api: jobs.Jobs, clock: Clock, job_files: JobFiles) -> TestClient:
    """Asks the server without saying who asks."""
    site = LocalSite(api, TokenGate(TOKEN, "ann"))
    made = application(site, hosts={HOST}, clock=clock, job_files=job_files)
    return TestClient(made, raise_server_exceptions=False)


@pytest.fixture
def client(stranger: TestClient) -> TestClient:
    """Asks the server with the token."""
    stranger.headers["Authorization"] = f"Bearer {TOKEN}"
    return stranger


@pytest.fixture
def recorded(api: jobs.Jobs, tmp_path: Path) -> str:
    """The name of a job in the store that was slow for want of CPU on its PS, and has ended."""
    found = recordings.read(RECORDED / "ps-cpu-bound.gross.deepfm-large-plain-4.parquet")
    return filled_homes.keep(api.store, found, tmp_path)


Sleeping = Callable[[str], str]


@pytest.fixture
def sleeping() -> Sleeping:
    """Returns the file of a real job that sleeps."""
    return lambda name: SLEEPING.format(name=name)


SLEEPING = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: {name}, labels: {{team: ads}}}}
spec:
  termination_grace: 2s
  roles:
    ps: {{command: [sleep, "600"]}}
    worker: {{replicas: 2, max_replicas: 4, command: [sleep, "600"]}}
"""
