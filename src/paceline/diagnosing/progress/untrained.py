"""Trainers that ended without an error and without a step that was seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paceline.diagnosing import sayings
from paceline.diagnosing.cases import Case
from paceline.diagnosing.progress import addresses, silences
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.runs import SEEN, JobEvent
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.roles import ReplicaId, Role
from paceline.model.words import listed

LEAST_SECONDS = Threshold(
    "untrained.least-seconds", 30.0, Unit.SECONDS,
    means="Trainers count as waiting if they go on for at least this long after the chief has ended.",
)  # fmt: skip

TOPIC = Topic(
    code="PRG005",
    name="nothing-trained",
    title="Trainers ended without an error, and no step was seen",
    severity=Severity.WARNING,
    why="The script ended without an error and took no step: its roles are not those of the job, so that no "
    "replica did the work of a trainer (a script that looks for a master, where the job has a "
    "chief); or it found no example; or it only built the model.",
    fix="See what each replica did in its last log lines, and whether the script knows the roles ps, worker, "
    "chief and evaluator.",
)


@rule(TOPIC, needs=(), explains=("waiting-at-start", "standing-trainers", "idle-workers"))
def nothing_trained(case: Case) -> Iterator[Hit]:
    """Instrumented trainers that made no step although the job or its chief has ended."""
    run = case.recording.run
    if silences.steps_made(case.recording.steps):
        return
    said = [
        each
        for each in sayings.of(case, SEEN)
        if each.replica is not None
        and each.replica.role.trains
        and not each.message.startswith(addresses.NOT_THE_JOBS)
    ]
    if not said or not all(each.message.startswith(silences.HELLOS) for each in said):
        return
    names = sayings.names(said)
    if run.phase is JobPhase.SUCCEEDED:
        what, subjects = f"{listed(names)} loaded {_libraries(said)} and made no step.", names
    else:
        ended, waiting = _ended_chief(case), _running(case)
        if ended is None or str(ended) not in names or not waiting:
            return
        subjects = [str(ended), *map(str, waiting)]
        what = f"{ended} has ended without an error and without a step; {listed(waiting)} made none, either."
    yield Hit(
        what=what,
        subjects=tuple(subjects),
        evidence=sayings.evidence(said),
        next_steps=(
            f"compare the job names of the script with the roles of the job file: {_roles(case)}",
            *(("a script that looks for a master does not find one: here it is the chief",)
              if case.spec.role(Role.CHIEF) else ()),
            f"paceline logs {run.name}",
        ),
    )  # fmt: skip


def _roles(case: Case) -> str:
    return listed(role.role for role in case.spec.roles)


def _ended_chief(case: Case) -> ReplicaId | None:
    """Return the chief, or else worker 0, if it ended without an error a while ago while the job goes on."""
    if case.recording.run.phase is not JobPhase.RUNNING:
        return None
    first = ReplicaId(Role.CHIEF if case.spec.role(Role.CHIEF) else Role.WORKER, 0)
    row = next((row for row in case.recording.replicas if row.replica == first), None)
    ends = [
        event.at
        for event in case.recording.events
        if event.kind == "replica-exited" and event.replica == first
    ]
    if row is None or row.phase is not ReplicaPhase.SUCCEEDED or not ends:
        return None
    return first if case.recording.at - max(ends) >= case.value(LEAST_SECONDS) else None


def _running(case: Case) -> list[ReplicaId]:
    rows = case.recording.replicas
    return [row.replica for row in rows if row.replica.role.trains and row.phase is ReplicaPhase.RUNNING]


def _libraries(said: Sequence[JobEvent]) -> str:
    """Return the training libraries that were seen to be loaded."""
    return listed(dict.fromkeys(each.message.split(" ")[0] for each in said))
