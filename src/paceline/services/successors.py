"""What a run goes on as when its job file is changed: the same commands and name, other resources."""

from __future__ import annotations

import dataclasses

from paceline import specs
from paceline.errors import InvalidInput
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import Run


def successor(run: Run, source: str) -> JobSpec:
    """Return as what a run goes on: as the file says, but with its own name, labels and folder.

    Raises:
        InvalidInput: the file is wrong, or runs something else.
    """
    asked = specs.parse_job(source).spec
    if not _runs_the_same(asked, run.spec):
        raise InvalidInput(
            f"the job file runs something other than {run.name}", "submit it as a job of its own"
        )
    return dataclasses.replace(asked, name=run.name, working_dir=run.spec.working_dir, labels=run.spec.labels)


def _runs_the_same(spec: JobSpec, other: JobSpec) -> bool:
    """Whether the replicas of two jobs run the same commands; one may have a role that the other has not."""
    commands = {each.role: each.command for each in spec.roles}
    return (spec.command, spec.code) == (other.command, other.code) and all(
        commands.get(each.role, each.command) == each.command for each in other.roles
    )
