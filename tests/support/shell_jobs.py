"""Jobs whose replicas are shell scripts: real processes, started in milliseconds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from paceline.model.jobs.job_specs import JobSpec, RestartPolicy, RoleSpec
from paceline.model.jobs.runs import Run
from paceline.model.roles import Role

Submit = Callable[[JobSpec], Run]
#: A command that goes on until `enough` is called: a test takes as long as its machine lets it.
UNTIL_ENOUGH = 'until [ -e "{run_dir}/enough" ]; do sleep 0.05; done'


def shell_job(
    worker: str,
    *,
    ps: str = "exec sleep 600",
    workers: int = 2,
    limit: int = 3,
    backoff_seconds: float = 0.1,
    grace_seconds: float = 2.0,
    **fields: object,
) -> JobSpec:
    """Return a job of one PS and some workers."""
    restart = RestartPolicy(limit=limit, backoff_seconds=backoff_seconds)
    roles = (
        RoleSpec(role=Role.PS, command=("sh", "-c", ps), restart=restart),
        RoleSpec(role=Role.WORKER, replicas=workers, command=("sh", "-c", worker), restart=restart),
    )
    return JobSpec(
        name="job", roles=roles, termination_grace_seconds=grace_seconds, **fields,  # type: ignore[arg-type]
    )  # fmt: skip


def enough(run: Run) -> None:
    """Let commands end that go on until then."""
    Path(run.directory, "enough").touch()


def fill(path: Path, block_bytes: int) -> None:
    """Write a file until the disk is full."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(block_bytes))
