"""The runs of a home: their names, folders and places on this machine, and their supervisors."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from paceline.engines.local import folders
from paceline.errors import StoreError
from paceline.model.jobs import run_names
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import LOCAL, Run, RunSummary
from paceline.model.jobs.statuses import ACTIVE_PHASES
from paceline.services.local import state_dirs, supervisors
from paceline.stores import Store

#: How often to look at a run that is waited for.
POLL_SECONDS = 0.2


@dataclasses.dataclass(frozen=True, slots=True)
class RunRegistry:
    """The runs of a home.

    Attributes:
        home: the folder of the home.
        store: where the runs are stored.
        clock: Unix seconds.
    """

    home: state_dirs.Home
    store: Store
    clock: Callable[[], float] = time.time

    def get(self, name: str) -> Run:
        """Return one run.

        Raises:
            NotFound: no run has that name.
        """
        return self.store.get_run(name)

    def is_lost(self, run: Run | RunSummary) -> bool:
        """Return whether the run is lost: it should run, but no supervisor watches it.

        The run is read again first: a run whose supervisor has just brought it to its end is not lost.
        """
        return supervisors.is_lost(run) and not self.get(run.name).phase.is_final

    @contextlib.contextmanager
    def choosing(self) -> Iterator[None]:
        """Hold the lock under which names, ports and cores are chosen, so that no two jobs get the same."""
        self.made_home()
        with self.home.lock.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def made_home(self) -> Path:
        """Return the folder of the home; create it if it does not exist.

        Raises:
            StoreError: the folder cannot be written.
        """
        try:
            self.home.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.home.lock.touch()
        except OSError as error:
            raise StoreError(
                f"the state folder {self.home.path} cannot be written: {error.strerror or error}",
                "set PACELINE_HOME to a folder that can be written",
            ) from error
        return self.home.path

    def free_name(self, wanted: str) -> str:
        """Return a name that no run has: the wanted name, or that name with a number.

        A folder of a run that the store does not know, such as a run of another store, takes its name, too.
        """
        folders_there = {path.name for path in self.home.runs.glob(f"{wanted}*")}
        return run_names.free_name(wanted, self.store.run_names_like(wanted) | folders_there)

    def active_folders(self, other_than: str = "") -> list[folders.RunFolder]:
        """Return the folders of the runs that have not ended, except the run named ``other_than``."""
        active = self.store.list_runs(phases=ACTIVE_PHASES, engine=LOCAL)
        return [folders.RunFolder.of(run) for run in active if run.name != other_than]

    def supervise(self, run: Run) -> None:
        """Start a supervisor for a run.

        Raises:
            EngineError: the supervisor did not start.
        """
        supervisors.start(self.home.path, self.home.store_url, run.name, folders.RunFolder.of(run))

    def request(self, run: Run, kind: str) -> None:
        """Leave a request for the supervisor of a run; start a supervisor if the run is lost."""
        self.store.add_request(run.name, kind, at=self.clock())
        if self.is_lost(run):
            self.supervise(run)

    def forget(self, name: str, folder: folders.RunFolder) -> None:
        """Remove a run from the store, and its folder."""
        self.store.delete_run(name)
        shutil.rmtree(folder.path, ignore_errors=True)


def working_dir(spec: JobSpec, base: Path, folder: folders.RunFolder) -> str:
    """Return where the commands of a job start: within its code, or else from the job file's folder."""
    if spec.code is not None:
        return spec.code.start(str(folder.code), spec.working_dir)
    return str((base / (spec.working_dir or ".")).resolve())
