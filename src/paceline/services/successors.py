"""The spec of a run whose job file is changed: the same commands and name, other resources."""

from __future__ import annotations

import dataclasses

from paceline import specs
from paceline.errors import InvalidInput
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import Run


def successor(run: Run, source: str) -> JobSpec:
    """Return the spec with which a run continues: the file's, with the run's own name, labels and folder.

    Raises:
        InvalidInput: the job file is invalid, or runs something else.
    """
    asked = specs.parse_job(source).spec
    if not _runs_the_same(asked, run.spec):
        raise InvalidInput(
            f"the job file runs something other than {run.name}", "submit it as a job of its own"
        )
    return dataclasses.replace(asked, name=run.name, working_dir=run.spec.working_dir, labels=run.spec.labels)


def _runs_the_same(spec: JobSpec, other: JobSpec) -> bool:
    """Return whether the replicas of two jobs run the same commands; a role may be missing in either."""
    commands = {each.role: each.command for each in spec.roles}
    return (spec.command, spec.code) == (other.command, other.code) and all(
        commands.get(each.role, each.command) == each.command for each in other.roles
    )
