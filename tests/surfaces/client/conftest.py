"""A server over a home of its own, and a client of it, without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from paceline.services.local import jobs, state_dirs
from paceline.surfaces import composition
from paceline.surfaces.client.connections import ServerConnection
from paceline.surfaces.client.server_jobs import ServerJobs
from paceline.surfaces.web.applications import application
from paceline.surfaces.web.gates import TokenGate
from paceline.surfaces.web.job_files import JobFiles
from paceline.surfaces.web.sites import LocalSite

TOKEN = "the-token"


@pytest.fixture
def api(home: state_dirs.Home) -> Iterator[jobs.Jobs]:
    """The jobs where they are."""
    with composition.opened(home) as opened:
        yield opened


@pytest.fixture
def connection(api: jobs.Jobs, job_files: JobFiles) -> ServerConnection:
    made = application(LocalSite(api, TokenGate(TOKEN, "ann")), job_files=job_files)
    client = TestClient(made, raise_server_exceptions=False, headers={"Authorization": f"Bearer {TOKEN}"})
    return ServerConnection(client, pauses_seconds=(0.0, 0.0))


@pytest.fixture
def served(connection: ServerConnection, tmp_path: Path) -> ServerJobs:
    """The same jobs through the server."""
    folder = tmp_path / "brought"
    folder.mkdir()
    return ServerJobs(connection, folder, shares_files=True)
