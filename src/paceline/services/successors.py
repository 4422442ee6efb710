"""The spec of a run whose job file is changed: the same commands and name, other resources."""

from __future__ import annotations

import dataclasses

from paceline import specs
from paceline.errors import InvalidInput
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import Run
from paceline.model.variables.consistencies import Consistency


def successor(run: Run, source: str) -> JobSpec:
    """Return the spec with which a run continues: the file's, with the run's own name, labels and folder.

    Raises:
        InvalidInput: the job file is invalid, runs something else, or gives a synchronous step another number
            of examples.
    """
    asked = specs.parse_job(source).spec
    if not _runs_the_same(asked, run.spec):
        raise InvalidInput(
            f"the job file runs something other than {run.name}", "submit it as a job of its own"
        )
    if _synchronous_step(asked) != _synchronous_step(run.spec):
        raise InvalidInput(
            f"{run.name} cannot go on from its checkpoint with another number of examples in a step: its "
            "steps are synchronous, and it ends at the step that it has counted with the present number",
            "keep batch_size times the workers less backup_workers, or submit it as a job of its own",
        )
    return dataclasses.replace(asked, name=run.name, working_dir=run.spec.working_dir, labels=run.spec.labels)


def _runs_the_same(spec: JobSpec, other: JobSpec) -> bool:
    """Return whether the replicas of two jobs run the same commands; a role may be missing in either."""
    commands = {each.role: each.command for each in spec.roles}
    return (spec.command, spec.code) == (other.command, other.code) and all(
        commands.get(each.role, each.command) == each.command for each in other.roles
    )


def _synchronous_step(spec: JobSpec) -> tuple[int | None, int] | None:
    """Return what decides the examples of a synchronous global step; None: steps are not synchronous.

    It is the batch size (None: that of the training library) and the number of batches in a step. Batches of
    a known size are counted in examples.
    """
    consistency = Consistency.of(spec.training)
    if consistency.mode != "synchronous":
        return None
    batches = consistency.gradients(spec.trainers())
    size = (spec.training or {}).get("batch_size")
    return (1, size * batches) if isinstance(size, int) else (None, batches)
