"""The files in the folder of a run.

::

    RUN/job.yaml                         the job file as submitted
    RUN/supervisor.log, supervisor.lock  the lock is held as long as a supervisor watches the job
    RUN/change.lock                      held and signed by the process that changes or probes the running job
    RUN/layout.json                      host, cores and address of each replica
    RUN/environment.json                 digests of the shell environment in which the job first started
    RUN/agent.py, paceline_agent/        the replicas' agent
    RUN/instrumentation/                 the instrumentation of their training scripts
    RUN/code/, code.json                 the code that was fetched for the job, and the fetcher's last message
    RUN/replicas/ps-0.1/                 attempt 1 of ps-0: config, spool, reports, exit reason
    RUN/logs/ps-0.1.log                  its output
    RUN/scratch/ps-0/                    its TMPDIR
    RUN/checkpoints/
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import shutil
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
        """A short prefix for the names of cgroups and namespaces that is unique to this folder."""
        return "paceline-" + hashlib.sha256(str(self.path).encode()).hexdigest()[:10]

    @property
    def lock(self) -> Path:
        """The file that is locked as long as a supervisor watches the job."""
        return self.path / "supervisor.lock"

    @property
    def change_lock(self) -> Path:
        """The file that is locked as long as a process changes or probes the job while it runs."""
        return self.path / "change.lock"

    @property
    def agent(self) -> Path:
        """The agent that the replicas of this run use."""
        return self.path / "agent.py"

    @property
    def agent_package(self) -> Path:
        """The package that the agent loads from beside itself."""
        return self.path / "paceline_agent"

    @property
    def instrumentation(self) -> Path:
        """The folder that the Python of each replica finds first."""
        return self.path / "instrumentation"

    @property
    def code(self) -> Path:
        """The folder of the job's code, if it was fetched from elsewhere."""
        return self.path / codes.CODE

    @property
    def layout(self) -> Path:
        """The file with the host, cores and address of each replica."""
        return self.path / "layout.json"

    @property
    def environment(self) -> Path:
        """The file with the digests of the job's first environment (`shells`)."""
        return self.path / "environment.json"

    @property
    def logs(self) -> Path:
        """The folder of the replicas' output."""
        return self.path / "logs"

    @property
    def checkpoints(self) -> Path:
        """The folder that ``{checkpoint_dir}`` stands for."""
        return self.path / "checkpoints"

    def create(self) -> None:
        """Create the folder and its fixed sub-folders; a failure leaves nothing behind.

        Raises:
            FileExistsError: the folder is there already, and stays as it is.
            OSError: it cannot be made.
        """
        self.path.mkdir(parents=True, mode=0o700)
        try:
            for name in ("replicas", "logs", "scratch", "checkpoints"):
                (self.path / name).mkdir()
        except OSError:
            shutil.rmtree(self.path, ignore_errors=True)
            raise

    def write_source(self, source: str) -> None:
        """Write the job file, byte for byte as it is stored, whatever the encoding of the user's locale."""
        (self.path / "job.yaml").write_bytes(source.encode("utf-8", "surrogatepass"))

    def attempt(self, replica: ReplicaId, attempt: int) -> Path:
        """Return the folder of one attempt of a replica."""
        return self.path / "replicas" / f"{replica}.{attempt}"

    def config(self, replica: ReplicaId, attempt: int) -> Path:
        """Return the agent's configuration file of one attempt."""
        return self.attempt(replica, attempt) / "config.json"

    def log(self, replica: ReplicaId, attempt: int) -> Path:
        """Return the output file of one attempt."""
        return self.logs / f"{replica}.{attempt}.log"

    def scratch(self, replica: ReplicaId) -> Path:
        """Return the folder for a replica's temporary files."""
        return self.path / "scratch" / str(replica)

    def scratches(self) -> list[ReplicaId]:
        """Return the replicas that have a folder for temporary files; users may keep others beside them."""
        found = []
        for each in (self.path / "scratch").glob("*"):
            with contextlib.suppress(ValueError):
                found.append(ReplicaId.parse(each.name))
        return sorted(found)

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
