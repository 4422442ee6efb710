"""Training has not begun, because a replica is missing."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence

from paceline.diagnosing import sayings, usages
from paceline.diagnosing.cases import Case
from paceline.diagnosing.progress import silences
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import Framework, Instrumentation
from paceline.model.jobs.runs import SEEN, ReplicaRow
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.measures.samples import Sample
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.words import listed

LEAST_SECONDS = Threshold(
    "absences.least-seconds", 20.0, Unit.SECONDS,
    means="A job that has run for a shorter time than this may still be starting. Replicas start within this "
    "time, one after the other, once there is room for all.",
)  # fmt: skip
LEAST_UNCERTAIN_SECONDS = Threshold(
    "absences.least-uncertain-seconds", 90.0, Unit.SECONDS,
    means="If nothing says which replica is missing, the rule tells of a wait only from this length on. The "
    "reason may as well be slow storage.",
)  # fmt: skip
IDLE_SHARE = Threshold(
    "absences.idle-share", 0.5, Unit.SHARE,
    means="A replica waits and does not compute if it uses at most this share of its cores, and also at most "
    "the cores of absences.idle-cores.",
)  # fmt: skip
IDLE_CORES = Threshold(
    "absences.idle-cores", 0.25, Unit.CORES,
    means="A replica waits and does not compute if it uses at most this many cores, and also at most the "
    "share of absences.idle-share.",
    source="fit runs: a worker that asks again and again whether variables have values uses 0.2 cores, "
    "because it makes a session each time",
)  # fmt: skip
FEW_THREADS = Threshold(
    "absences.few-threads", 1 / 3, Unit.SHARE,
    means="A process runs no server and no session if it has fewer threads than this share of the median of "
    "the other replicas. TensorFlow starts dozens of threads for either.",
)  # fmt: skip
LITTLE = Threshold(
    "absences.little", 0.5, Unit.SHARE,
    means="A replica looks as if it had never begun if at least two of three numbers are below this share of "
    "the median of the other replicas: its threads, its memory and its CPU time.",
)  # fmt: skip

TOPIC = Topic(
    code="PRG002",
    name="waiting-at-start",
    title="Training has not begun: a replica is missing",
    severity=Severity.WARNING,
    why="No worker can begin before every parameter server answers, and before the chief has made the "
    "variables. A replica that was never started, or whose program waits for something of its own, holds up "
    "all the others, which hold their cores meanwhile.",
    fix="See what the missing replica waits for: its last log lines, its address, a firewall between hosts.",
)


@rule(TOPIC, needs=(), explains=("standing-trainers", "waiting-for-ps", "idle-workers"))
def waiting_at_start(case: Case) -> Iterator[Hit]:
    """Jobs that have made no step because some replicas wait for another one."""
    run = case.recording.run
    elapsed = case.snapshot.elapsed_seconds
    waits = run.phase in (JobPhase.STARTING, JobPhase.RUNNING) and not case.recording.lost
    if not waits or elapsed is None or elapsed < case.value(LEAST_SECONDS):
        return
    if silences.steps_made(case.recording.steps):
        return
    rows = case.recording.replicas
    here = [row for row in rows if row.phase is ReplicaPhase.RUNNING]
    missing = [row for row in rows if row.phase in (ReplicaPhase.PENDING, ReplicaPhase.STARTING)]
    if here and missing:
        yield _missing(case, here, missing, elapsed)
    elif here and len(here) == len(rows) and not _is_unseen(case) and _all_idle(case):
        absent = [each for each in case.snapshot.replicas if _is_absent(case, each)]
        names = {each.replica for each in absent}
        # If all trainers are silent at once, a slow disk from which they load TensorFlow is more likely.
        is_sure = bool(absent) and any(row.replica.role.trains and row.replica not in names for row in rows)
        if len(absent) <= len(rows) // 2 and (is_sure or elapsed >= case.value(LEAST_UNCERTAIN_SECONDS)):
            yield _silent(case, absent, elapsed)


def _is_unseen(case: Case) -> bool:
    """Return whether steps may go unseen: then a training script that sleeps between steps looks the same."""
    spec = case.spec
    if spec.training is not None:
        return False  # The training library reports its steps by itself.
    is_off = spec.instrumentation is Instrumentation.OFF or spec.framework is not Framework.TENSORFLOW
    return is_off or any(
        each.replica is not None and each.replica.role.trains and each.message.startswith(silences.UNSEEN)
        for each in sayings.of(case, SEEN)
    )


def _missing(case: Case, here: Sequence[ReplicaRow], missing: Sequence[ReplicaRow], elapsed: float) -> Hit:
    names = [str(row.replica) for row in missing]
    waited = quantities.format_seconds(elapsed)
    return Hit(
        what=f"{listed(names)} {'has' if len(names) == 1 else 'have'} not come for {waited}, and "
        f"{len(here)} other replicas wait.",
        subjects=tuple(names),
        evidence=(Evidence(text=f"{names[0]} is {missing[0].phase}; no step was reported yet"),),
        next_steps=(f"paceline describe {case.recording.run.name}", *_logs(case, names[:1])),
    )


def _silent(case: Case, absent: Sequence[ReplicaSnapshot], elapsed: float) -> Hit:
    names = [str(each.replica) for each in absent]
    waited = quantities.format_seconds(elapsed)
    looks = "looks as if it" if len(names) == 1 else "look as if they"
    known = f"{listed(names)} {looks} had never begun"
    return Hit(
        what=f"After {waited} there is no step and no replica computes: "
        f"{known if names else 'the replicas wait for each other, or for input'}.",
        subjects=tuple(names),
        evidence=tuple(_evidence(case, absent)),
        next_steps=(
            *_logs(case, names[:1] or [str(case.recording.replicas[0].replica)]),
            "see that its address can be reached from the hosts of the others",
        ),
    )


def _logs(case: Case, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        role, _, index = name.rpartition("-")
        yield f"paceline logs {case.recording.run.name} --role {role} --index {index} --tail 20"


def _all_idle(case: Case) -> bool:
    """Return whether every replica was measured in the last seconds and none of them computes."""
    since = case.recording.at - 2 * case.value(silences.RECENT_SECONDS)
    idle_cores, idle_share = case.value(IDLE_CORES), case.value(IDLE_SHARE)
    for each in case.snapshot.replicas:
        own = case.histories.get(each.replica, [])
        fresh = bool(own) and own[-1].at >= since
        used = silences.cores(silences.recent(case, own)) if fresh else None
        if used is None or used > min(idle_cores, idle_share * (usages.cores(case, each) or 1.0)):
            return False
    return True


def _threads(samples: Sequence[Sample]) -> float | None:
    return max((each.threads for each in samples if each.threads is not None), default=None)


def _memory(samples: Sequence[Sample]) -> float | None:
    return max((each.memory_bytes for each in samples if each.memory_bytes is not None), default=None)


def _cpu_seconds(samples: Sequence[Sample]) -> float | None:
    known = [each.cpu_cores * each.interval_seconds for each in samples if each.cpu_cores is not None]
    return sum(known) if known else None


def _is_absent(case: Case, replica: ReplicaSnapshot) -> bool:
    """Return whether a replica's process has done far less since its start than those of the others."""
    threads = _against_others(case, replica, _threads)
    has_few_threads = threads is not None and threads < case.value(FEW_THREADS)
    if has_few_threads or replica.replica in silences.stopped(case):
        return True
    little = case.value(LITTLE)
    shares = (_against_others(case, replica, gauge) for gauge in (_threads, _memory, _cpu_seconds))
    return sum(share is not None and share < little for share in shares) >= 2


def _against_others(
    case: Case, replica: ReplicaSnapshot, gauge: Callable[[Sequence[Sample]], float | None]
) -> float | None:
    """Return the ratio of a replica's gauge to the median of the others' gauges; None: not measured."""
    own = gauge(case.histories.get(replica.replica, ()))
    others = [
        value
        for name, samples in case.histories.items()
        if name != replica.replica and (value := gauge(samples)) is not None
    ]
    middle = statistics.median(others) if others else 0.0
    return None if own is None or not middle else own / middle


def _evidence(case: Case, absent: Sequence[ReplicaSnapshot]) -> Iterator[Evidence]:
    used = [
        silences.cores(silences.recent(case, samples)) or 0.0
        for samples in case.histories.values()
        if samples
    ]
    yield Evidence(
        text=f"all {len(used)} replicas together use {sum(used):.2f} cores",
        sources=(case.source("cpu_cores"),),
    )
    for replica in absent[:2]:
        absent_samples = case.histories[replica.replica]
        others = [_threads(samples) for name, samples in case.histories.items() if name != replica.replica]
        other_threads = [count for count in others if count is not None]
        if other_threads and _threads(absent_samples) is not None:
            yield Evidence(
                text=f"{replica.replica} has {_threads(absent_samples):.0f} threads, the others "
                f"{statistics.median(other_threads):.0f}",
                sources=(case.source("threads"),),
            )
