"""Sessions that connect to every other worker, so that a worker that has ended delays the start of all."""

from __future__ import annotations

from collections.abc import Iterator

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
from paceline.model.jobs.statuses import ReplicaPhase
from paceline.model.measures.script_facts import Name
from paceline.model.variables import cures
from paceline.model.words import SHOWN, listed

LEAST_SECONDS = Threshold(
    "device-filters.least-seconds", 30.0, Unit.SECONDS,
    means="A trainer waits for other workers if it asked for its session at least this long ago and has made "
    "no step. A session whose workers are all there is made within seconds, and a chief that comes back "
    "takes no longer.",
)  # fmt: skip

TOPIC = Topic(
    code="SCR101",
    name="no-device-filters",
    title="Each worker needs every other worker to start",
    severity=Severity.INFO,
    why="A session without device filters connects to all tasks of the cluster before it does anything. In a "
    "job where each worker runs its own graph it needs the parameter servers and itself only; so one worker "
    "that has ended, or comes late, holds up every other one that starts or restarts.",
    fix="Give the session of each worker device filters with the parameter servers and the worker itself.",
    risk="A script whose one graph uses the devices of several workers cannot have them.",
)


@rule(TOPIC, needs=(), explains=("waiting-at-start", "standing-trainers", "idle-workers"))
def no_device_filters(case: Case) -> Iterator[Hit]:
    """Several trainers that each have a session of their own which connects to all tasks.

    The severity is ERROR if one of them waits for its session while another trainer is not running.
    """
    unfiltered = [fact for fact in asked.of_trainers(case, Name.DEVICE_FILTERS) if not fact.value]
    if len(unfiltered) < 2 or not case.servers:
        return
    rows = [row for row in case.recording.replicas if row.replica.role.trains]
    gone = [row for row in rows if row.phase is not ReplicaPhase.RUNNING]
    waiting = [fact for fact in unfiltered if gone and _waits(case, fact)]
    changes = trainings.cured(case, cures.DEVICE_FILTERS)
    seen, next_steps = asked.evidence(Name.DEVICE_FILTERS, unfiltered), (_IN_SCRIPT,)
    if not waiting:
        yield Hit(
            what="Without device filters a worker that has ended holds up each one that starts.",
            subjects=tuple(str(fact.replica) for fact in unfiltered),
            evidence=(seen,),
            changes=changes,
            next_steps=next_steps,
        )
        return
    names, missing = listed(fact.replica for fact in waiting), listed(row.replica for row in gone)
    began = min(fact.at for fact in waiting)
    yield Hit(
        what=f"{names} cannot begin: without device filters a session needs every worker, and {missing} "
        f"{'is' if len(gone) == 1 else 'are'} not there.",
        subjects=(*(str(fact.replica) for fact in waiting), *(str(row.replica) for row in gone)),
        evidence=(
            Evidence(
                text=f"{names} asked for a session "
                f"{quantities.format_seconds(case.recording.at - began)} ago, and has made no step",
                at=began,
            ),
            Evidence(text=", ".join(f"{row.replica}: {row.phase}" for row in gone[:SHOWN])),
            seen,
        ),
        changes=changes,
        next_steps=next_steps,
        severity=Severity.ERROR,
    )


_IN_SCRIPT = (
    'in your script: config=tf.ConfigProto(device_filters=["/job:ps", "/job:%s/task:%d" % (job_name, '
    "task_index)]) for the session"
)


def _waits(case: Case, filters: ReportedFact) -> bool:
    """Return whether a running trainer asked for a session a while ago and has made no step."""
    replica = filters.replica
    runs = any(
        row.replica == replica and row.phase is ReplicaPhase.RUNNING for row in case.recording.replicas
    )
    return (
        runs and case.is_running and not case.reports.get(replica)
        and case.recording.at - filters.at >= case.value(LEAST_SECONDS)
    )  # fmt: skip
