"""A home that was lost, restored from its copy: the job that ran goes on."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from support import kills, leftovers
from support.shell_jobs import UNTIL_ENOUGH, Submit, enough, shell_job

from paceline.engines.local import engine, machines
from paceline.engines.local.folders import RunFolder
from paceline.model.jobs.statuses import JobPhase
from paceline.services.local import jobs
from paceline.stores import open_store


@pytest.mark.slow
def test_a_job_that_ran_goes_on(api: jobs.Jobs, submit: Submit, tmp_path: Path) -> None:
    run = submit(shell_job(UNTIL_ENOUGH))
    api.wait(run.name, timeout_seconds=300, until=lambda found: found.phase is JobPhase.RUNNING)
    database = api.home.path / "paceline.db"
    with sqlite3.connect(database) as connection:
        connection.execute("VACUUM INTO ?", (str(tmp_path / "copy.db"),))
    connection.close()
    shutil.copytree(api.home.runs, tmp_path / "copied", symlinks=True)
    # The machine is gone, with all that ran on it.
    kills.kill(leftovers.supervisor_pids(RunFolder.of(run)))
    engine.release(RunFolder.of(run), machines.read())
    api.store.close()
    shutil.rmtree(api.home.path)
    api.home.path.mkdir()
    shutil.copy(tmp_path / "copy.db", database)
    shutil.copytree(tmp_path / "copied", api.home.runs, symlinks=True)
    with open_store(api.home.store_url) as store:
        restored = jobs.Jobs(api.home, store)
        assert restored.is_lost(restored.get(run.name))
        restored.resume(run.name)
        enough(run)
        assert restored.wait(run.name, timeout_seconds=300).phase is JobPhase.SUCCEEDED
