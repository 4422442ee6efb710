"""The evaluator takes the cores of the training."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paceline.diagnosing import headrooms, needs
from paceline.diagnosing.cases import Case
from paceline.diagnosing.cores import crowds
from paceline.diagnosing.cores.crowds import SharedCores
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence, FieldChange, Gain
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import RoleSpec
from paceline.model.measures.samples import Sample
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.roles import Role
from paceline.model.words import listed
from paceline.probing import windows

BUSY_CORES = Threshold(
    "evaluations.busy-cores", windows.EVALUATING_CORES, Unit.CORES,
    means="An evaluator that uses fewer cores than this does not evaluate. It looks for a new checkpoint now "
    "and then.",
)  # fmt: skip
LEAST_REPORTS = Threshold(
    "evaluations.least-reports", 5, Unit.COUNT,
    means="The rule compares training while an evaluator evaluates with training while it does not, if each "
    "of the two has at least this many step reports for each trainer.",
)  # fmt: skip
_FEWER = Threshold(
    "evaluations.fewer", 4.0, Unit.TIMES,
    means="The rule proposes this many times fewer cores for an evaluator than it uses. The evaluator gets "
    "along with these, and takes longer.",
    above=1.0,
)  # fmt: skip

TOPIC = Topic(
    code="PRG004",
    name="evaluation-starves",
    title="The evaluator takes the cores of the training",
    severity=Severity.WARNING,
    why="An evaluator computes as fast as it can, on all cores that it may use, whenever there is a new "
    "checkpoint. On cores that trainers or parameter servers share with it, each of its evaluations slows "
    "down all of the training.",
    fix="Give it a cpu of its own that leaves the rest to the training, put it on another host, or write "
    "checkpoints less often.",
    risk="Evaluations take longer, and checkpoints that come meanwhile are passed over.",
)


class _Slowing(NamedTuple):
    """What evaluators cost the training: the gain without them, the evidence, and the slowed replicas."""

    gain: Gain
    evidence: tuple[Evidence, ...]
    subjects: tuple[str, ...]


@rule(
    TOPIC,
    needs=(needs.CPU, needs.STEPS),
    explains=("slow-host", "slow-decoding", "ps-cpu-bound", "waiting-for-ps"),
)
def evaluation_starves(case: Case) -> Iterator[Hit]:
    """Evaluators that share cores with the training and slow it down."""
    local = case.recording.run.engine == "local"
    groups: dict[str | None, list[ReplicaSnapshot]] = {}
    for replica in case.of_role(Role.EVALUATOR):
        if replica.cpu_cores is not None:
            groups.setdefault(None if local else replica.row.host, []).append(replica)
    for evaluators in groups.values():
        slowing = _compared(case, evaluators) or _crowded(case, evaluators)
        if slowing is None or not headrooms.matters(slowing.gain, case):
            continue
        names, used = [str(evaluator.replica) for evaluator in evaluators], _used(evaluators)
        yield Hit(
            what=f"{listed(names)} {'takes' if len(names) == 1 else 'take'} {used:.2f} cores from "
            f"{listed(slowing.subjects)}.",
            subjects=(*names, *slowing.subjects),
            evidence=slowing.evidence,
            changes=tuple(_changes(case.role(evaluators[0]), used / len(evaluators) / case.value(_FEWER))),
            next_steps=(
                "put it on another host: one more in spec.hosts, or spec.placement on a cluster",
                "spec.training.checkpoint.every_seconds: fewer checkpoints are fewer evaluations",
            ),
            gain=slowing.gain,
        )


def _used(evaluators: Sequence[ReplicaSnapshot]) -> float:
    return sum(each.cpu_cores or 0.0 for each in evaluators)


def _changes(role: RoleSpec | None, wanted: float) -> Iterator[FieldChange]:
    cores = max(0.1, round(wanted, 1))
    if role is not None and (role.cpu_cores is None or cores < role.cpu_cores):
        yield FieldChange(
            path=("spec", "roles", str(role.role), "cpu"), value=quantities.quantity_cores(cores)
        )


def _beside(case: Case, evaluators: Sequence[ReplicaSnapshot]) -> tuple[ReplicaSnapshot, ...]:
    """Return the parameter servers and trainers on the evaluators' machine that share cores with them."""
    local = case.recording.run.engine == "local"
    return tuple(
        each
        for each in (*case.servers, *case.trainers)
        if any((local or each.row.host == one.row.host) and _share_cores(each, one) for one in evaluators)
    )


def _share_cores(one: ReplicaSnapshot, other: ReplicaSnapshot) -> bool:
    own, others = set(one.row.cores), set(other.row.cores)
    return not own or not others or bool(own & others)


def _compared(case: Case, evaluators: Sequence[ReplicaSnapshot]) -> _Slowing | None:
    """Return the evaluators' cost, by comparing training while they evaluate with training while they rest.

    None: they never rest or never evaluate, so there is nothing to compare.
    """
    beside = _beside(case, evaluators)
    trainers = [replica for replica in case.trainers if replica in beside]
    if any(replica.replica.role is Role.PS for replica in beside):
        trainers = list(case.trainers)
    samples = [
        [sample for sample in case.histories.get(evaluator.replica, ()) if sample.cpu_cores is not None]
        for evaluator in evaluators
    ]
    busy_cores = case.value(BUSY_CORES)
    busy, rest = _Rate(), _Rate()
    for trainer in trainers:
        for report in case.reports.get(trainer.replica, ()):
            if report.interval_seconds and report.steps is not None:
                middle = report.at - report.interval_seconds / 2
                computes = [
                    is_computing
                    for evaluator_samples in samples
                    if (is_computing := _computes(evaluator_samples, middle, busy_cores)) is not None
                ]
                if computes:
                    (busy if any(computes) else rest).add(report.steps, report.interval_seconds)
    least_reports = case.value(LEAST_REPORTS) * max(1, len(trainers))
    if min(busy.count, rest.count) < least_reports or busy.per_second <= 0:
        return None
    ratio = min(1.0, busy.per_second / rest.per_second) if rest.per_second else 1.0
    part = busy.seconds / (busy.seconds + rest.seconds)
    others = 1 - len(trainers) / len(case.trainers)
    gain = 1 / (others + (1 - others) * (part * ratio + 1 - part))
    seen = f"while it evaluates ({part:.0%} of the time) trainers make {busy.per_second:.1f} steps a second "
    seen += f"each, else {rest.per_second:.1f}"
    sources = (
        case.source("steps", trainers, steps=True),
        case.source("cpu_cores", evaluators),
    )
    return _Slowing(
        Gain(low=gain, high=gain),
        (Evidence(text=seen, sources=sources),),
        tuple(str(replica.replica) for replica in trainers),
    )


class _Rate:
    """A rate of steps, added up from step reports."""

    def __init__(self) -> None:
        self.count = 0
        self.steps = self.seconds = 0.0

    def add(self, steps: int, seconds: float) -> None:
        """Add a report."""
        self.count += 1
        self.steps += steps
        self.seconds += seconds

    @property
    def per_second(self) -> float:
        """The steps per second of one trainer."""
        return self.steps / self.seconds if self.seconds > 0 else 0.0


def _computes(samples: Sequence[Sample], at: float, busy_cores: float) -> bool | None:
    """Return whether an evaluator computed at a moment; None: it was not measured.

    Args:
        samples: the samples of the evaluator.
        at: the moment (Unix seconds).
        busy_cores: an evaluator that uses fewer cores does not compute.
    """
    number = bisect.bisect_left(samples, at, key=lambda sample: sample.at)
    if number == len(samples) or samples[number].at - samples[number].interval_seconds > at:
        return None
    return (samples[number].cpu_cores or 0.0) >= busy_cores


def _crowded(case: Case, evaluators: Sequence[ReplicaSnapshot]) -> _Slowing | None:
    """Return the highest possible cost of evaluators that never rest, if they share full cores."""
    if crowds.bound_elsewhere(case):
        return None
    full, least_share = case.value(crowds.FULL), case.value(crowds.LEAST_SHARE)
    busy_cores = case.value(BUSY_CORES)
    for place in dict.fromkeys(place for evaluator in evaluators for place in crowds.places(case, evaluator)):
        here = [replica for replica in place.replicas if replica.replica.role is Role.EVALUATOR]
        others = [replica for replica in place.replicas if replica.replica.role is not Role.EVALUATOR]
        used = _used(here)
        rest = place.used - used
        starved = [replica for replica in others if _wants_more(case, replica)]
        is_full = place.used >= full * place.cores and used >= least_share * place.cores
        if used < busy_cores or not is_full or not starved or rest <= 0:
            continue
        gain = 1 + _share(case, others) * (_most(starved, (rest + used) / rest) - 1)
        return _Slowing(
            Gain(low=1.0, high=gain), (_seen(case, place, here, rest),),
            tuple(str(replica.replica) for replica in starved),
        )  # fmt: skip
    return None


def _wants_more(case: Case, replica: ReplicaSnapshot) -> bool:
    limit, used = replica.cpu_limit_cores, replica.cpu_cores
    return used is not None and (limit is None or used < case.value(crowds.AT_LIMIT) * limit)


def _most(starved: Sequence[ReplicaSnapshot], freed: float) -> float:
    """Return how many times as fast the starved replicas become; no replica gets more than its limit."""
    bounds = [
        min(freed, each.cpu_limit_cores / each.cpu_cores) if each.cpu_limit_cores else freed
        for each in starved
        if each.cpu_cores
    ]
    return max(bounds, default=1.0)


def _share(case: Case, others: Sequence[ReplicaSnapshot]) -> float:
    """Return the share of the training that a place delays: all of it if parameter servers are there."""
    if any(each.replica.role is Role.PS for each in others):
        return 1.0
    return len(others) / max(1, len(case.trainers))


def _seen(case: Case, place: SharedCores, evaluators: Sequence[ReplicaSnapshot], rest: float) -> Evidence:
    names = listed(each.replica for each in evaluators)
    return Evidence(
        text=f"{place.name}: {names} used {_used(evaluators):.2f} cores, the training {rest:.2f}, of "
        f"{place.cores:g}",
        sources=(case.source("cpu_cores", place.replicas),),
    )
