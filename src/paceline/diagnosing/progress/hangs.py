"""Training stands still without a known reason."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from paceline.diagnosing import needs
from paceline.diagnosing.cases import Case
from paceline.diagnosing.progress import collectives, silences
from paceline.diagnosing.progress.silences import Silence
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence
from paceline.model.jobs.runs import STANDING
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.measures import standings
from paceline.model.measures.standings import StandingActivity
from paceline.model.roles import ReplicaId, Role
from paceline.model.words import listed

MEDIANS = Threshold(
    "hangs.medians", 10.0, Unit.TIMES,
    means="Training stands still if its pause is at least this many times the usual time between step "
    "reports.",
)  # fmt: skip
LONGEST = Threshold(
    "hangs.longest", 2.0, Unit.TIMES,
    means="Training stands still only if its pause is also at least this many times the longest pause so "
    "far. A job may make an evaluation again that it has made before.",
)  # fmt: skip
LEAST_SECONDS = Threshold(
    "hangs.least-seconds", 15.0, Unit.SECONDS,
    means="A pause that is shorter than this is never called a hang. It may be a checkpoint, a trace or a "
    "slow file. A replica's first sample shows when the replica began only if it comes more than this after "
    "the first sample of all.",
)  # fmt: skip
LEAST_BUSY_SECONDS = Threshold(
    "hangs.least-busy-seconds", 120.0, Unit.SECONDS,
    means="A pause that is shorter than this is not called a hang while trainers compute, or after a trainer "
    "has ended. What trainers do may be an evaluation or a very long step. The others may also wait for a "
    "trainer that began a shorter time ago than this.",
)  # fmt: skip
LEAST_COMPUTING_SECONDS = Threshold(
    "hangs.least-computing-seconds", 1800.0, Unit.SECONDS,
    means="A pause that is shorter than this is not called a hang while a trainer reports that its process "
    "computes. The trainer may evaluate, or make a step that takes so long.",
)  # fmt: skip
BUSY = Threshold(
    "hangs.busy", 0.3, Unit.SHARE,
    means="A trainer computes if it uses at least this share of the cores that it used while it trained.",
)  # fmt: skip
BUSY_CORES = Threshold(
    "hangs.busy-cores", 0.1, Unit.CORES,
    means="A trainer computes if it uses at least this many cores, where its training is too long ago for "
    "its use of cores then to be known.",
)  # fmt: skip
LEAST_REPORTS = Threshold(
    "hangs.least-reports", 3, Unit.COUNT,
    means="Fewer step reports than this say nothing of the usual pause, unless the last report is too long "
    "ago.",
)  # fmt: skip
#: The next step if trainers wait for a trainer that is done.
_END_TOGETHER = (
    "in your script: device_filters leave other workers out of a session (TensorFlow 1), and who trains "
    "synchronously needs as many examples as the others"
)

TOPIC = Topic(
    code="PRG001",
    name="hang",
    title="Training stands still",
    why="All processes live and no step ends. One of them waits for what never comes: a process that was "
    "stopped, a server that does not answer, storage that hangs, a lock, a queue that is empty for ever.",
    fix="See what the processes wait for: their last log lines, the stacks of their threads (py-spy dump). "
    "A job that is stopped and resumed goes on from its last checkpoint, if its script has saved one.",
    risk="What was trained since the last checkpoint is done again.",
)


@rule(
    TOPIC,
    needs=(needs.CPU,),
    explains=("standing-trainers", "waiting-for-ps", "idle-workers", "slow-storage"),
)
def hang(case: Case) -> Iterator[Hit]:
    """Trainers that run and have made no step for many times as long as a step takes."""
    run = case.recording.run
    if run.phase is not JobPhase.RUNNING or case.recording.lost or _is_changing(case):
        return
    trainers, ended = silences.silences(case), _ended(case)
    reports = sum(trainer.reports for trainer in trainers)
    if not trainers or (reports < case.value(LEAST_REPORTS) and not _is_old(case, trainers)):
        return
    is_busy = _is_busy(case, trainers)
    if _is_done(case, trainers, ended, is_busy=is_busy) or silences.ceased(case, trainers):
        return
    longest = max(trainer.longest for trainer in trainers)
    usual = statistics.median(trainer.usual for trainer in trainers)
    began = max(trainer.since for trainer in trainers)
    silent = [
        trainer for trainer in trainers if trainer.seconds >= _needed(case, trainer.usual, trainer.longest)
    ]
    last_heard = max(began, _last_change(case))
    pause = min(trainer.since + trainer.seconds for trainer in trainers) - last_heard
    least = _needed(case, usual, longest)
    if is_busy or ended:
        least = max(least, case.value(LEAST_BUSY_SECONDS))
    if is_busy and _say_they_compute(case):
        least = max(least, case.value(LEAST_COMPUTING_SECONDS))
    stopped = silences.stopped(case)
    if pause >= least and not _is_beginning(case, trainers):
        waiting = collectives.waiting(case, trainers)
        absent = (
            [trainer.replica.replica for trainer in trainers if trainer not in waiting] if waiting else []
        )
        names = [
            str(replica_id)
            for replica_id in stopped or absent or [trainer.replica.replica for trainer in trainers]
        ]
        how = "all still live"
        if ended:
            names = [str(trainer.replica.replica) for trainer in trainers]
            how = f"{listed(ended)} had ended without an error before: others may wait for it"
        elif stopped:
            how = f"the process of {listed(names)} does nothing at all"
        elif absent:
            how = f"{listed(names)} {'does' if len(names) == 1 else 'do'} not come to the all-reduce"
        yield Hit(
            what=f"No trainer has made a step for {quantities.format_seconds(pause)}, and {how}.",
            subjects=tuple(names),
            evidence=(
                *_evidence(case, trainers, usual, began, stopped=bool(stopped)),
                *_ends(case, ended),
                *collectives.evidence(case, trainers, waiting),
            ),
            next_steps=(*([_END_TOGETHER] if ended else []), *_next_steps(case, names[0])),
        )
        return
    # A trainer with nothing left to do is silent too. If only some are silent, only stopped processes count.
    for silence in silent:
        name = str(silence.replica.replica)
        if silence.replica.replica in stopped:
            yield Hit(
                what=f"{name} has made no step for {quantities.format_seconds(silence.seconds)}: its process "
                "does nothing at all, while others train.",
                subjects=(name,),
                evidence=tuple(_evidence(case, [silence], silence.usual, silence.since, stopped=True)),
                next_steps=_next_steps(case, name),
            )


def _needed(case: Case, usual: float, longest: float) -> float:
    return max(case.value(LEAST_SECONDS), case.value(MEDIANS) * usual, case.value(LONGEST) * longest)


def _runs(phase: ReplicaPhase) -> bool:
    return phase is ReplicaPhase.RUNNING


def _is_changing(case: Case) -> bool:
    """Return whether a replica is starting or stopping, so that others may wait for it."""
    return any(not (_runs(row.phase) or row.phase.is_final) for row in case.recording.replicas)


def _is_beginning(case: Case, trainers: list[Silence]) -> bool:
    """Return whether a trainer started a short while ago and has made no step: others may wait for it."""
    known = {each.replica.replica for each in trainers}
    beginners = (
        case.histories.get(each.replica, ())
        for each in case.trainers
        if _runs(each.row.phase) and each.replica not in known
    )
    start, least, least_busy = beginning(case), case.value(LEAST_SECONDS), case.value(LEAST_BUSY_SECONDS)
    for own in filter(None, beginners):
        if own[0].at > start:
            is_young = own[-1].at - own[0].at < least_busy
        else:
            is_young = own[-1].at - start < least_busy - 2 * least
        if is_young:
            return True
    return False


def beginning(case: Case) -> float:
    """Return the time (Unix seconds) up to which a first sample may not be the beginning of its replica.

    A recording of only the newest measurements does not show when replicas began that are older than it.
    """
    began = min((own[0].at for own in case.histories.values() if own), default=0.0)
    return began + case.value(LEAST_SECONDS)


def _ended(case: Case) -> list[ReplicaId]:
    """Return the trainers that have ended without an error."""
    return [
        row.replica
        for row in case.recording.replicas
        if row.replica.role.trains and row.phase is ReplicaPhase.SUCCEEDED
    ]


def _is_done(case: Case, trainers: Sequence[Silence], ended: Sequence[ReplicaId], *, is_busy: bool) -> bool:
    """Return whether all steps seem to be made, so that an evaluation, an export or the end follows.

    If a trainer has ended, this is assumed while the others compute, or if all steps are made and the only
    trainer left is the one whose end ends the job: it may copy its export to slow storage.
    """
    left = [each.replica.replica for each in trainers]
    ends_the_job = len(left) == 1 and (left[0].role is Role.CHIEF or left[0].index == 0)
    all_made = case.snapshot.progress == 1.0
    return is_busy or (all_made and ends_the_job) if ended else all_made


def _ends(case: Case, ended: Sequence[ReplicaId]) -> Iterator[Evidence]:
    for event in case.recording.events:
        if event.kind == "replica-exited" and event.replica in ended:
            yield Evidence(text=f"{event.replica} ended", at=event.at)


def _last_change(case: Case) -> float:
    """Return the time of the last event that delays trainers or shows that they are alive."""
    told = [event.at for event in case.recording.events if event.kind not in ("note", STANDING)]
    told += [each.at for each in case.recording.evaluations if each.replica.role is not Role.EVALUATOR]
    # A new attempt on another host may have no event yet. The beginning of a recording is not a change.
    start = beginning(case)
    told += [own[0].at for own in case.histories.values() if own and own[0].at > start]
    return max(told, default=0.0)


def _is_old(case: Case, trainers: Sequence[Silence]) -> bool:
    """Return whether the last step of every trainer is older than the samples of the recording.

    A recording of only the newest measurements still has the last report of each trainer.
    """
    return all(each.since < case.histories[each.replica.replica][0].at for each in trainers)


def _is_busy(case: Case, trainers: list[Silence]) -> bool:
    """Return whether any trainer computes about as much as while it made steps, or is not measured."""
    busy, busy_cores = case.value(BUSY), case.value(BUSY_CORES)
    for each in trainers:
        own = case.histories[each.replica.replica]
        now = silences.cores(silences.recent(case, own))
        before = silences.cores(sample for sample in own if sample.at <= each.since)
        if now is None or now >= (busy * before if before else busy_cores):
            return True
    return False


def _say_they_compute(case: Case) -> bool:
    """Return whether a trainer reports that it computes, though no step ends."""
    return any(each.doing is StandingActivity.COMPUTING for each in standings.now(case.recording))


def _evidence(
    case: Case, trainers: list[Silence], usual: float, began: float, *, stopped: bool
) -> Iterator[Evidence]:
    replicas = [trainer.replica for trainer in trainers]
    step = case.snapshot.step
    which = "" if step is None else f" ({step:,})"
    yield Evidence(
        text=f"the last report of a step{which}; before, one came every {quantities.format_seconds(usual)}",
        at=began,
        sources=(case.source("steps", replicas, steps=True),),
    )
    used = [silences.cores(silences.recent(case, case.histories[replica.replica])) for replica in replicas]
    used_cores = [cores for cores in used if cores is not None]
    if used_cores:
        yield Evidence(
            text=f"{listed(replica.replica for replica in replicas)}: {sum(used_cores):.2f} cores used since",
            sources=(case.source("cpu_cores", replicas),),
        )
    if stopped:
        yield Evidence(
            text="no context switch at all: a program that waits for others looks for them now and then, one "
            "that was stopped does not",
            sources=(case.source("voluntary_switches"),),
        )


def _next_steps(case: Case, name: str) -> tuple[str, ...]:
    job = case.recording.run.name
    role, _, index = name.rpartition("-")
    return (
        f"paceline logs {job} --role {role} --index {index} --tail 20",
        "where it runs, py-spy dump --pid PID says what its threads wait for; kill -CONT PID wakes a process "
        "that was stopped",
        f"paceline stop {job}, then paceline resume {job}: it goes on from its last checkpoint, "
        "if its script has saved one",
    )
