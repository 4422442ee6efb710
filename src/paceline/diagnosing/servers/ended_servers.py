"""Parameter servers that have ended without an error while trainers that need them go on."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence
from paceline.model.jobs.job_specs import RestartWhen
from paceline.model.jobs.runs import ReplicaRow
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.roles import ReplicaId, Role
from paceline.model.words import listed

LEAST_SECONDS = Threshold(
    "ended-servers.least-seconds", 30.0, Unit.SECONDS,
    means="Trainers that are done end within this time after a server: a server may end by itself when it "
    "hears that they are done. Later than this, trainers that still run and make no step miss the server.",
)  # fmt: skip

TOPIC = Topic(
    code="PS006",
    name="ps-ended",
    title="A parameter server has ended, and trainers need it",
    why="The command of a parameter server came to its end without an error: its script does not wait in "
    "server.join(), or its role is one that the script does not know. What it held is gone, and trainers "
    "wait for it for as long as TensorFlow lets them.",
    fix="Let a parameter server wait in server.join(): the job ends it when all trainers have ended.",
    risk="What was trained since the last checkpoint is done again.",
)


@rule(
    TOPIC,
    needs=(),
    explains=("hang", "standing-trainers", "waiting-at-start", "idle-workers", "waiting-for-ps"),
)
def ps_ended(case: Case) -> Iterator[Hit]:
    """Servers that ended without an error a while ago, while trainers still run but make no step."""
    run, rows = case.recording.run, case.recording.replicas
    waiting = [row for row in rows if row.replica.role.trains and row.phase is ReplicaPhase.RUNNING]
    if run.phase is not JobPhase.RUNNING or not waiting:
        return
    ended = [row for row in rows if row.replica.role is Role.PS and row.phase is ReplicaPhase.SUCCEEDED]
    ended = [row for row in ended if _is_missed(case, row)]
    if not ended:
        return
    names, one = [str(row.replica) for row in ended], len(ended) == 1
    others = [row for row in rows if row not in ended and row.phase is ReplicaPhase.RUNNING]
    index = ended[0].replica.index
    yield Hit(
        what=f"{listed(names)} {'has' if one else 'have'} ended without an error, and "
        f"{listed(row.replica for row in waiting)} still {'runs' if len(waiting) == 1 else 'run'}.",
        # Other replicas stand still as well.
        subjects=(*names, *(str(row.replica) for row in others)),
        evidence=tuple(_evidence(case, ended)),
        next_steps=(
            "in your script: a parameter server waits in server.join(), which does not return",
            f"paceline logs {run.name} --role ps --index {index} --tail 20",
            *_again(case),
        ),
    )


def _is_missed(case: Case, row: ReplicaRow) -> bool:
    """Return whether a server ended a while ago and no trainer has made a step since then."""
    ended_at, least_seconds = _ended_at(case, row.replica), case.value(LEAST_SECONDS)
    if ended_at is None:
        return not case.active_trainers
    if case.recording.at - ended_at < least_seconds:
        return False
    # Steps that were under way when the server ended are reported a little later.
    return not any(
        report.steps and report.at > ended_at + least_seconds / 2 for report in case.recording.steps
    )


def _ended_at(case: Case, replica: ReplicaId) -> float | None:
    ends = [
        event.at
        for event in case.recording.events
        if event.kind == "replica-exited" and event.replica == replica
    ]
    return max(ends, default=None)


def _evidence(case: Case, ended: list[ReplicaRow]) -> Iterator[Evidence]:
    for row in ended:
        at = _ended_at(case, row.replica)
        since = "" if at is None else f", {quantities.format_seconds(round(case.recording.at - at))} ago"
        yield Evidence(text=f"{row.replica}: {row.exit or 'completed'}{since}", at=at)


def _again(case: Case) -> Iterator[str]:
    role = case.spec.role(Role.PS)
    if role is not None and role.restart.when is not RestartWhen.ALWAYS:
        yield "spec.roles.ps.restart: {when: always} starts it again, with empty variables"
