"""Traces through a server: asked for there, brought here."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from support import filled_homes
from support.trace_files import trace, write

from paceline.errors import Conflict, NotFound, WaitTimeout
from paceline.model.jobs.statuses import JobPhase
from paceline.model.traces import traced_steps as models
from paceline.services.local import state_dirs
from paceline.services.observing import traces
from paceline.surfaces.client.connections import ServerConnection
from paceline.surfaces.client.server_jobs import ServerJobs


def answering(folder: Path, trainers: int) -> threading.Thread:
    """Leave the traces of so many trainers as soon as one is asked for."""

    def answer() -> None:
        request = folder / models.FOLDER / models.REQUEST
        deadline = time.monotonic() + 240
        while not request.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        name = request.read_text().strip()
        for number in range(trainers):
            time.sleep(0.3)
            write(folder, trace(f"worker-{number}"), name)

    thread = threading.Thread(target=answer)
    thread.start()
    return thread


def test_a_trace_is_taken(home: state_dirs.Home, connection: ServerConnection, served: ServerJobs) -> None:
    run = filled_homes.fill(home, "clicks", phase=JobPhase.RUNNING)
    with connection._client:  # So the server goes on between requests.
        trainers = answering(Path(run.directory), 2)
        found = traces.take(served, "clicks", timeout_seconds=240)
        trainers.join()
        assert [each.trainer for each in found.traces] == ["worker-0", "worker-1"]
        assert found.folder.is_relative_to(served.trace_site(run).run)
        again = traces.newest(served, served.get("clicks"))
        assert again == found
        with pytest.raises(WaitTimeout, match="no trainer of clicks has answered"):
            traces.take(served, "clicks", timeout_seconds=0.1)


def test_there_is_none(home: state_dirs.Home, served: ServerJobs) -> None:
    run = filled_homes.fill(home, "clicks")
    with pytest.raises(NotFound, match="clicks has no trace"):
        traces.newest(served, served.get("clicks"))
    with pytest.raises(Conflict, match="no trainer can take a trace"):
        traces.take(served, "clicks", timeout_seconds=1)
    assert not (Path(run.directory) / models.FOLDER).exists()
