"""Workers have nothing to do: there are fewer files or shards than workers."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from paceline.diagnosing import headrooms, needs, outlooks
from paceline.diagnosing.cases import Case
from paceline.diagnosing.progress import hangs, silences
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.scripts import asked
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.diagnosing.trainers import histories
from paceline.diagnosing.trainers.histories import History
from paceline.model.explanations.causes import Evidence, FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.statuses import ReplicaPhase
from paceline.model.measures.samples import Sample
from paceline.model.measures.script_facts import Name
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.roles import ReplicaId, Role
from paceline.model.words import listed

PATIENCE_TIMES = Threshold(
    "idle-workers.patience-times", 1.5, Unit.TIMES,
    means="A trainer may take this many times as long as the others did from its first sample to its first "
    "step, and `idle-workers.patience-seconds` more. It is idle only after that, because the others may have "
    "started while the machine was freer.",
)  # fmt: skip
PATIENCE_SECONDS = Threshold(
    "idle-workers.patience-seconds", 3.0, Unit.SECONDS,
    means="A trainer may take this much longer than `idle-workers.patience-times` allows before it is idle.",
)  # fmt: skip
RESTING = Threshold(
    "idle-workers.resting", 0.3, Unit.SHARE,
    means="A trainer without steps is busy with something if it uses at least this share of the CPU time "
    "that the trainers with steps use: it still starts.",
)  # fmt: skip
LATE_SECONDS = Threshold(
    "idle-workers.late-seconds", 10.0, Unit.SECONDS,
    means="The rule judges a trainer that still runs by this many last seconds. Before them the trainer was "
    "busy with its own start.",
)  # fmt: skip
SLEEPS = Threshold(
    "idle-workers.sleeps", 2.0, Unit.TIMES,
    means="A worker that waits for its chief sleeps no more if it has waited for at least this many times "
    "the length of its sleep. It has noticed the chief after one sleep.",
)  # fmt: skip

TOPIC = Topic(
    code="WRK302",
    name="idle-workers",
    title="Workers have nothing to do",
    severity=Severity.WARNING,
    why="Workers run and never train while others do: there are fewer files, or shards, than workers, so "
    "some get none. Their cores and their memory are taken all the same.",
    fix="Cut the examples into at least as many files or shards as there are workers, or take fewer workers.",
    risk="Fewer workers train as fast as now; what each of them has to do stays.",
)


@rule(TOPIC, needs=(needs.CPU, needs.STEPS))
def idle_workers(case: Case) -> Iterator[Hit]:
    """Trainers that have run long enough and never made a step, while others have."""
    active = histories.of(case)
    names = {history.trainer.replica for history in active}
    silent = [
        trainer
        for trainer in case.trainers
        if case.spec.has(trainer.replica)
        and trainer.replica not in names
        and not _is_needed(case, trainer.replica)
    ]
    if not active or not silent:
        return
    idle = [trainer for trainer in silent if _is_idle(case, trainer, active)]
    if not idle:
        return
    idle_names, one = listed(trainer.replica for trainer in idle), len(idle) == 1
    seen = sum(len(history.reports) for history in active)
    yield Hit(
        what=f"{idle_names} {'has' if one else 'have'} nothing to do: of {len(case.trainers)} trainers only "
        f"{len(active)} have trained.",
        subjects=tuple(str(trainer.replica) for trainer in idle),
        evidence=(
            Evidence(
                text=f"no step of {idle_names}, and {seen:,} reports of steps of the others",
                sources=(case.source("steps", [history.trainer for history in active], steps=True),),
            ),
            *_with_work(case, len(active) + len(idle)),
        ),
        changes=tuple(_changes(case, active, idle)),
        next_steps=(
            f"or cut the examples into at least {len(case.trainers)} files or shards, so that each has some",
        ),
    )


def _is_needed(case: Case, replica: ReplicaId) -> bool:
    """Return whether a trainer does other work than making steps, or sleeps before its first step.

    A coordinator has the workers make the steps. A worker checks for the chief's variables only now and then.
    """
    if asked.amount(case, replica, Name.COORDINATES):
        return True
    facts = asked.of_replica(case, replica)
    sleeps = facts.get(Name.RECOVERY_WAIT_SECONDS)
    if sleeps is None or Name.SESSION_WAIT_SECONDS in facts:
        return False
    first = min((each.since for each in histories.of(case)), default=sleeps.at)
    return case.window.until - max(first, sleeps.at) < case.value(SLEEPS) * float(sleeps.value)


def _with_work(case: Case, trainers: int) -> Iterator[Evidence]:
    """Yield the evidence of the gain if all trainers had work."""
    gain = outlooks.gain(case, lambda now: outlooks.with_trainers(now, max(trainers, now.trainers)))
    if gain is not None and headrooms.matters(gain, case):
        yield Evidence(text=f"if all had work: x {gain.low:.1f} to {gain.high:.1f} (computed)")


def _changes(case: Case, active: Sequence[History], idle: Sequence[ReplicaSnapshot]) -> Iterator[FieldChange]:
    """Yield the change to as many workers as there is work for."""
    workers = sum(each.trainer.replica.role is Role.WORKER for each in active)
    if workers and all(each.replica.role is Role.WORKER for each in idle):
        yield FieldChange(path=("spec", "roles", "worker", "replicas"), value=workers)


def _is_idle(case: Case, trainer: ReplicaSnapshot, active: Sequence[History]) -> bool:
    """Return whether a trainer has run long enough and does nothing.

    A trainer that uses its cores without reporting steps is not idle.
    """
    row = trainer.row
    begin, end = max(history.since for history in active), max(history.until for history in active)
    if row.phase is ReplicaPhase.SUCCEEDED:
        return _rests(case, trainer, active, begin, end)
    if row.phase not in (ReplicaPhase.RUNNING, ReplicaPhase.STOPPED):
        return False
    first = _first_sample(case, row.replica)
    if first is None:
        return False
    late = max(begin, end - case.value(LATE_SECONDS))
    return end - first >= _patience(case, active) and _rests(case, trainer, active, late, end)


def _patience(case: Case, active: Sequence[History]) -> float:
    """Return how many seconds a trainer may take from its first sample to its first step.

    A recording of only the newest measurements does not show how long older trainers took.
    """
    started_at, least = case.recording.run.started_at, case.value(hangs.LEAST_SECONDS)
    edge = hangs.beginning(case)
    is_whole = started_at is not None and edge - least <= started_at + least
    starts = [
        history.since - begun
        for history in active
        if (begun := _first_sample(case, history.trainer.replica)) is not None and (is_whole or begun > edge)
    ]
    if not starts:
        return case.value(silences.STARTED_SECONDS)
    usual = max(0.0, statistics.median(starts))
    return case.value(PATIENCE_TIMES) * usual + case.value(PATIENCE_SECONDS)


def _first_sample(case: Case, replica: ReplicaId) -> float | None:
    """Return when the newest attempt of a replica was first measured."""
    return next((each.at for each in case.histories.get(replica, ())), None)


def _rests(
    case: Case, trainer: ReplicaSnapshot, active: Sequence[History], since: float, until: float
) -> bool:
    """Return whether a trainer uses few cores between two moments, compared with those that train.

    A trainer that has ended has no samples any more and uses no CPU. One that was just started has samples of
    a part of this time alone. Samples without CPU prove nothing.
    """

    def within(replica: ReplicaId) -> list[Sample]:
        return [each for each in case.histories.get(replica, ()) if since <= each.at <= until]

    own, is_over = within(trainer.replica), trainer.row.phase.is_final
    if any(each.cpu_cores is None for each in own) or not (own or is_over):
        return False
    measured = sum(each.interval_seconds for each in own)
    seconds = max(until - since, measured) if is_over else measured
    usual = statistics.median(silences.cores(within(each.trainer.replica)) or 0.0 for each in active)
    return usual > 0 and (silences.cores(own) or 0.0) * measured < case.value(RESTING) * usual * seconds
