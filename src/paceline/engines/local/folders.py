"""Where a run keeps its files.

::

    RUN/job.yaml                         the job file as submitted
    RUN/supervisor.log, supervisor.lock  the lock is held as long as a supervisor watches the job
    RUN/change.lock                      held, and signed, by who changes or probes the job while it runs
    RUN/layout.json                      host, cores and address of each replica
    RUN/environment.json                 digests of the shell's environment that it began with
    RUN/agent.py                         the agent that its replicas run, and what it loads from beside it
    RUN/instrumentation/                 what looks into their scripts
    RUN/code/, code.json                 the code that was fetched for it, and what was said of it
    RUN/replicas/ps-0.1/                 attempt 1 of ps-0: config, spool, reports, exit reason
    RUN/logs/ps-0.1.log                  its output
    RUN/scratch/ps-0/                    its TMPDIR
    RUN/checkpoints/
"""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

from paceline.engines.local import codes
from paceline.model.jobs.runs import Run, RunSummary
from paceline.model.roles import ReplicaId
from paceline.rendering import environments


@dataclasses.dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    @classmethod
    def of(cls, run: Run | RunSummary) -> RunFolder:
        """Return the folder of a run."""
        return cls(Path(run.directory))

    @property
    def token(self) -> str:
        """Return a short name for cgroups and namespaces that no run of another folder has."""
        return "paceline-" + hashlib.sha256(str(self.path).encode()).hexdigest()[:10]

    @property
    def lock(self) -> Path:
        """Return the file that is locked as long as a supervisor watches the job."""
        return self.path / "supervisor.lock"

    @property
    def change_lock(self) -> Path:
        """Return the file that is locked as long as a process changes or probes the job while it runs."""
        return self.path / "change.lock"

    @property
    def agent(self) -> Path:
        """Return the agent that the replicas of this run use."""
        return self.path / "agent.py"

    @property
    def instrumentation(self) -> Path:
        """Return the folder that the Python of each replica finds first."""
        return self.path / "instrumentation"

    @property
    def code(self) -> Path:
        """Return where the job's code is, if it was fetched from elsewhere."""
        return self.path / codes.CODE

    @property
    def layout(self) -> Path:
        """Return the file that says where each replica sits."""
        return self.path / "layout.json"

    @property
    def environment(self) -> Path:
        """Return the file that says what the job's first environment was (`shells`)."""
        return self.path / "environment.json"

    @property
    def logs(self) -> Path:
        """Return the folder of the replicas' output."""
        return self.path / "logs"

    @property
    def checkpoints(self) -> Path:
        """Return the folder that ``{checkpoint_dir}`` stands for."""
        return self.path / "checkpoints"

    def create(self) -> None:
        """Make the folder and those in it that are always there."""
        self.path.mkdir(parents=True, mode=0o700)
        for name in ("replicas", "logs", "scratch", "checkpoints"):
            (self.path / name).mkdir()

    def attempt(self, replica: ReplicaId, attempt: int) -> Path:
        """Return the folder of one attempt of a replica."""
        return self.path / "replicas" / f"{replica}.{attempt}"

    def config(self, replica: ReplicaId, attempt: int) -> Path:
        """Return the agent's config of one attempt."""
        return self.attempt(replica, attempt) / "config.json"

    def log(self, replica: ReplicaId, attempt: int) -> Path:
        """Return the output of one attempt."""
        return self.logs / f"{replica}.{attempt}.log"

    def scratch(self, replica: ReplicaId) -> Path:
        """Return the folder for a replica's temporary files."""
        return self.path / "scratch" / str(replica)

    def scratches(self) -> list[str]:
        """Return the names of the replicas that have such a folder."""
        return sorted(each.name for each in (self.path / "scratch").glob("*"))

    def files(self, replica: ReplicaId, attempt: int) -> environments.ReplicaFiles:
        """Return the paths that the agent of one attempt is given."""
        folder = self.attempt(replica, attempt)
        return environments.ReplicaFiles(
            run_dir=str(self.path),
            code=str(self.code),
            checkpoint_dir=str(self.checkpoints),
            scratch_dir=str(self.scratch(replica)),
            spool=str(folder / "spool.jsonl"),
            exit=str(folder / "exit.json"),
            reports=str(folder / "reports.jsonl"),
            supervisor_lock=str(self.lock),
            instrumentation=str(self.instrumentation),
        )
