"""Workers that sleep at their start although the chief has made the variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paceline.diagnosing import trainings
from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.scripts import asked
from paceline.diagnosing.scripts.asked import ReportedFact
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence
from paceline.model.explanations.findings import Severity
from paceline.model.measures import intervals
from paceline.model.measures.script_facts import Name
from paceline.model.roles import ReplicaId
from paceline.model.variables import cures
from paceline.model.words import listed

LEAST_SECONDS = Threshold(
    "recovery-waits.least-seconds", 5.0, Unit.SECONDS,
    means="A worker sleeps needlessly if it sleeps for at least this long after the chief is ready. Shorter "
    "waits are those of the chief's first step and of clocks.",
)  # fmt: skip

TOPIC = Topic(
    code="SCR102",
    name="recovery-wait",
    title="Workers sleep at their start though the chief is ready",
    severity=Severity.INFO,
    why="A worker looks whether the chief has made the variables. Where it has not, TensorFlow sleeps for "
    "recovery_wait_secs, 30 by itself, before it looks again. The chief is ready a moment after the first "
    "look as a rule, so each worker loses nearly all of that time, at each start and each restart.",
    fix="Have the script look more often: recovery_wait_secs=1.",
)


class _Sleep(NamedTuple):
    """The time that a worker slept after the chief was ready."""

    replica: ReplicaId
    seconds: float


@rule(TOPIC, needs=())
def recovery_wait(case: Case) -> Iterator[Hit]:
    """Workers whose wait for a session ended much later than another trainer began its first step."""
    waits = asked.of_trainers(case, Name.SESSION_WAIT_SECONDS)
    ready_at = _ready_at(case, {wait.replica for wait in waits})
    if ready_at is None:
        return
    slept = [sleep for wait in waits if (sleep := _slept(case, wait, ready_at)) is not None]
    if not slept:
        return
    longest = max(slept, key=lambda sleep: sleep.seconds)
    every = asked.amount(case, longest.replica, Name.RECOVERY_WAIT_SECONDS)
    yield Hit(
        what=f"{listed(sleep.replica for sleep in slept)} slept for up to "
        f"{quantities.format_seconds(longest.seconds)} after the chief was ready.",
        subjects=tuple(str(sleep.replica) for sleep in slept),
        evidence=(
            Evidence(
                text=f"{longest.replica} had its session {quantities.format_seconds(longest.seconds)} after "
                "the first step of another trainer began",
                at=ready_at,
            ),
            Evidence(text=f"it looks for the variables every {quantities.format_seconds(every or 0.0)}"),
        ),
        changes=trainings.cured(case, cures.RECOVERY_WAIT),
        next_steps=(
            "in your script: recovery_wait_secs=1 for tf.train.Supervisor or tf.train.SessionManager; "
            "MonitoredTrainingSession has no such argument: give a MonitoredSession a session creator whose "
            "SessionManager has it",
        ),
    )


def _ready_at(case: Case, waiting: set[ReplicaId]) -> float | None:
    """Return when the first step of a trainer that did not wait began; None: it is not known."""
    firsts = (own[0] for replica, own in case.reports.items() if own and replica not in waiting)
    return min((intervals.stretch(each)[0] for each in firsts), default=None)


def _slept(case: Case, wait: ReportedFact, ready_at: float) -> _Sleep | None:
    """Return how long a worker slept although the chief was ready; None: hardly at all, or not known."""
    seconds = wait.at - max(ready_at, wait.at - float(wait.value))
    every = asked.amount(case, wait.replica, Name.RECOVERY_WAIT_SECONDS)
    if every is None or seconds < case.value(LEAST_SECONDS):
        return None
    return _Sleep(wait.replica, min(seconds, every))
