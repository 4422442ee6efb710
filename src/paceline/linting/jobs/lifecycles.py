"""Rules on restarts, ends and checkpoints that do not fit together."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.linting.rules import LintHit, rule
from paceline.model import quantities
from paceline.model.explanations.findings import Severity
from paceline.model.jobs import job_specs
from paceline.model.roles import Role
from paceline.specs import JobFile

NEVER, ALWAYS = job_specs.RestartWhen.NEVER, job_specs.RestartWhen.ALWAYS

#: Checkpoints farther apart than this lose too much work when a PS ends.
LONG_SECONDS = 3600.0


@rule(
    "JOB301",
    "Parameter servers are never restarted while workers are",
    Severity.WARNING,
    why="A worker holds no state, a PS holds its part of the model. When a PS ends and stays away, the "
    "workers wait for it or fail and are restarted for nothing.",
    fix="Write restart: {when: on-failure} for ps as well.",
)
def ps_never_restarted(job: JobFile) -> Iterator[LintHit]:
    """PS must be restarted when workers are."""
    ps = job.spec.role(Role.PS)
    if ps is None or ps.restart.when is not NEVER:
        return
    trainers = [
        str(role.role) for role in job.spec.roles if role.role.trains and role.restart.when is not NEVER
    ]
    if trainers:
        message = f"ps is never restarted, {' and '.join(trainers)} is"
        yield LintHit(job.document, ("spec", "roles", "ps", "restart", "when"), message)


@rule(
    "JOB302",
    "Workers that are always restarted",
    Severity.ERROR,
    why="A worker that has finished its work is started again, so the job never succeeds: it goes on "
    "until the restart limit or the deadline ends it as failed.",
    fix="Write restart: {when: on-failure}.",
)
def workers_always_restarted(job: JobFile) -> Iterator[LintHit]:
    """Workers must be allowed to finish."""
    for role in job.spec.roles:
        if role.role.trains and role.restart.when is ALWAYS:
            path = ("spec", "roles", str(role.role), "restart", "when")
            yield LintHit(job.document, path, f"{role.role} is started again even when it has finished")


@rule(
    "JOB303",
    "Checkpoints too far apart",
    Severity.WARNING,
    why="What was trained since the last checkpoint is lost when a parameter server ends. A job that ends "
    "before its first checkpoint keeps nothing.",
    fix="Write training.checkpoint.every_seconds well below the deadline; 600 is usual.",
)
def rare_checkpoints(job: JobFile) -> Iterator[LintHit]:
    """Checkpoints must come before the deadline, and often enough."""
    every = ((job.spec.training or {}).get("checkpoint") or {}).get("every_seconds")
    if every is None:
        return
    path = ("spec", "training", "checkpoint", "every_seconds")
    deadline = job.spec.active_deadline_seconds
    said = quantities.format_seconds(every)
    if deadline is not None and every >= deadline:
        end = quantities.format_seconds(deadline)
        message = f"the first checkpoint comes after {said}, the deadline after {end}"
        yield LintHit(job.document, path, message, severity=Severity.ERROR)
    elif every > LONG_SECONDS:
        yield LintHit(job.document, path, f"up to {said} of training is lost when a parameter server ends")


RULES = (ps_never_restarted, workers_always_restarted, rare_checkpoints)
