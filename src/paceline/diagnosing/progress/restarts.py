"""A replica was started again, and training began at step 0 again: nothing was restored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.causes import Evidence, EvidenceSource
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.runs import SEEN
from paceline.model.jobs.statuses import ReplicaPhase
from paceline.model.measures.samples import StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.model.words import listed

ANEW = Threshold(
    "restarts.anew", 0.1, Unit.SHARE,
    means="Training has begun anew if its global step is below this share of what it was. A checkpoint is "
    "rarely so old.",
)  # fmt: skip
LEAST_STEPS = Threshold(
    "restarts.least-steps", 50, Unit.COUNT,
    means="Little is lost if training that begins anew had made fewer steps than this.",
)  # fmt: skip
#: The instrumentation's remark about a script without a global step: its reports count its own steps.
_NO_GLOBAL_STEP = "global step: not seen"

TOPIC = Topic(
    code="PRG012",
    name="trained-anew",
    title="After a restart training began at step 0 again",
    severity=Severity.WARNING,
    why="A chief that is started again fills all variables with their first values, unless it finds a "
    "checkpoint; a parameter server that is started again holds nothing at all. So what was trained before "
    "is lost, also for workers that are done: the chief trains all of it alone.",
    fix="Have the script save checkpoints into a folder that outlives a restart, and restore from it.",
    risk="A checkpoint costs the time to write it.",
)


class _Loss(NamedTuple):
    """A global step that went back.

    Attributes:
        last: the report with the highest step before the step went back.
        first: the first report afterwards.
    """

    last: StepReport
    first: StepReport


@rule(TOPIC, needs=())
def trained_anew(case: Case) -> Iterator[Hit]:
    """Jobs with a restarted replica whose global step went back to its beginning."""
    again = [
        row.replica for row in case.recording.replicas if row.attempt > 1 and _matters(case, row.replica)
    ]
    loss = _loss(case)
    if not again or loss is None:
        return
    highest = loss.last.step or 0
    now = max(each.step or 0 for each in case.recording.steps if each.at >= loss.first.at)
    done = [
        row.replica
        for row in case.recording.replicas
        if row.replica.role.trains and row.phase is ReplicaPhase.SUCCEEDED
    ]
    beside = f"; {listed(done)} {'is' if len(done) == 1 else 'are'} done" if done and case.is_running else ""
    were = "was" if len(again) == 1 else "were"
    yield Hit(
        what=f"{listed(again)} {were} started again, and training began anew: {highest:,} steps are "
        f"lost{beside}.",
        subjects=tuple(map(str, again)),
        evidence=tuple(_evidence(case, loss, again)),
        next_steps=tuple(_next_steps(case)),
        severity=Severity.INFO if now >= highest else None,
    )


def _matters(case: Case, replica: ReplicaId) -> bool:
    """Return whether a restart can lose variables: a server holds them, the chief initializes them again."""
    chief = ReplicaId(Role.CHIEF if case.spec.role(Role.CHIEF) else Role.WORKER, 0)
    return replica.role is Role.PS or replica == chief


def _loss(case: Case) -> _Loss | None:
    """Return where the global step last went back; None: it never did, or it is not known."""
    if any(report.kind == SEEN and _NO_GLOBAL_STEP in report.message for report in case.recording.events):
        return None
    loss, last = None, None
    least_steps, anew = case.value(LEAST_STEPS), case.value(ANEW)
    for report in case.recording.steps:
        if report.step is None:
            continue
        if last is not None and (last.step or 0) >= least_steps and report.step < anew * (last.step or 0):
            loss, last = _Loss(last, report), report
        elif last is None or report.step >= (last.step or 0):
            last = report
    return loss


def _evidence(case: Case, loss: _Loss, again: list[ReplicaId]) -> Iterator[Evidence]:
    for event in case.recording.events:
        if event.kind == "replica-exited" and event.replica in again and event.at <= loss.first.at:
            yield Evidence(text=f"{event.replica} ended: {event.message}", at=event.at)
    yield Evidence(
        text=f"{loss.last.replica} was at step {loss.last.step:,}; then {loss.first.replica} was at step "
        f"{loss.first.step:,}",
        at=loss.first.at,
        sources=(
            EvidenceSource(
                what="steps",
                field="step",
                replicas=tuple(dict.fromkeys((loss.last.replica, loss.first.replica))),
                count=2,
                since=loss.last.at,
                until=loss.first.at,
            ),
        ),
    )


def _next_steps(case: Case) -> Iterator[str]:
    if case.spec.training is not None:
        yield "spec.training.checkpoint.every_seconds: save more often"
        return
    yield (
        "in your script: MonitoredTrainingSession(checkpoint_dir=...), or tf.train.CheckpointManager, with "
        "{checkpoint_dir} from spec.command: that folder outlives a restart"
    )
