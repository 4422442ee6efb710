"""A straggler whose host gives it less computing power than the others get."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from paceline.diagnosing import headrooms, needs, usages
from paceline.diagnosing.cases import Case
from paceline.diagnosing.inputs import readings
from paceline.diagnosing.networks import links
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.diagnosing.trainers import paces
from paceline.diagnosing.trainers.paces import Straggler
from paceline.model.explanations.causes import Evidence, FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.measures import rates
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.roles import Role

FEWER_CORES = Threshold(
    "slow-hosts.fewer-cores", 0.85, Unit.SHARE,
    means="A trainer has fewer cores if it may use less than this share of the cores that the others may "
    "use. The default is half way to `paces.straggling` and beyond noise.",
)  # fmt: skip
USES_THEM = Threshold(
    "slow-hosts.uses-them", 0.6, Unit.SHARE,
    means="A trainer lacks cores if it uses at least this share of the cores that it may use. Quotas cut "
    "bursts before the mean reaches them.",
)  # fmt: skip
NEIGHBOURS = Threshold(
    "slow-hosts.neighbours", 0.2, Unit.SHARE,
    means="Other programs on the cores of a trainer matter if they use at least this share of the cores. The "
    "same holds for the share that the hypervisor gives to others, beyond what the other trainers lose. A "
    "daemon does not use that much.",
)  # fmt: skip
_LIKE_OTHERS = Threshold(
    "slow-hosts.like-others", 0.5, Unit.SHARE,
    means="Other programs on the cores of a trainer do not set it apart if they use less than this share of "
    "what they use on the cores of the other trainers.",
)  # fmt: skip
MORE_TIME = Threshold(
    "slow-hosts.more-time", 1.33, Unit.TIMES,
    means="A trainer has slower cores, or more to compute, if an example or a step takes it at least this "
    "many times the CPU time that it takes the others.",
)  # fmt: skip
MORE_SWITCHES = Threshold(
    "slow-hosts.more-switches", 2.0, Unit.TIMES,
    means="Other programs use the cores of a trainer if its threads have to make room for others at least "
    "this many times as often as the threads of the other trainers.",
)  # fmt: skip
LEAST_SWITCHES = Threshold(
    "slow-hosts.least-switches", 50.0, Unit.PER_SECOND,
    means="A trainer whose threads have to make room for others fewer times a second than this is like any "
    "program: its involuntary switches say nothing.",
)  # fmt: skip

TOPIC = Topic(
    code="WRK101",
    name="slow-host",
    title="A worker is slow because its host is",
    severity=Severity.WARNING,
    why="All workers do the same, so one that is slower while it neither waits for its input nor for the "
    "network gets less computing: fewer cores, slower ones, or cores that other programs use too. Who shares "
    "a queue of shards loses only its part; where all wait for each other, or each has its share, all are "
    "as slow as this one.",
    fix="Give it the cores that the others have, or take it off that host.",
)


class HostReason(NamedTuple):
    """Why a host is slow.

    Attributes:
        text: the evidence in words.
        field: the measured field behind the evidence; None: there is none.
        next_step: what to do.
        changes: the changes of the job file, if it is the reason.
    """

    text: str
    field: str | None
    next_step: str
    changes: tuple[FieldChange, ...] = ()


@rule(TOPIC, needs=(needs.CPU, needs.STEPS), explains=("sync-straggler",))
def slow_host(case: Case) -> Iterator[Hit]:
    """Stragglers that get less CPU than the others."""
    explained = [
        (straggler, reason)
        for straggler in paces.stragglers(case)
        if (reason := _reason(case, straggler)) is not None
    ]
    if not explained:
        return
    stragglers = tuple(straggler for straggler, _ in explained)
    gain = paces.gain(case, stragglers)
    yield Hit(
        what=f"{paces.told(stragglers)} because "
        f"{'its host is' if len(stragglers) == 1 else 'their hosts are'} slower.",
        subjects=paces.subjects([straggler.trainer for straggler in stragglers]),
        evidence=(paces.evidence(case, stragglers), *_seen(case, explained)),
        changes=tuple(dict.fromkeys(change for _, reason in explained for change in reason.changes)),
        next_steps=tuple(dict.fromkeys(reason.next_step for _, reason in explained)),
        gain=gain if headrooms.matters(gain, case) else None,
        severity=headrooms.severity(gain, case),
    )


def _seen(case: Case, known: Iterable[tuple[Straggler, HostReason]]) -> Iterator[Evidence]:
    for straggler, reason in known:
        who = (straggler.trainer, *straggler.fellows)
        sources = (case.source(reason.field, who),) if reason.field else ()
        yield Evidence(text=reason.text, sources=sources)


def _reason(case: Case, straggler: Straggler) -> HostReason | None:
    """Return why a straggler gets too little CPU; None: no reason was seen."""
    trainer, others = straggler.trainer, straggler.fellows
    if links.is_full(case, trainer) or trainer in links.losing(case):
        return None
    fewer = fewer_cores(case, trainer, others)
    if fewer is not None:
        return fewer
    # If the trainer waits for its input, or this is not known, only fewer cores can be the reason.
    if trainer.input_wait_share is None or readings.waits(trainer) >= case.value(readings.INPUT_BOUND):
        return None
    return (
        _slower_cores(case, straggler)
        or shared_cores(case, trainer, others)
        or stolen_cores(case, trainer, others)
    )


def fewer_cores(case: Case, trainer: ReplicaSnapshot, others: Sequence[ReplicaSnapshot]) -> HostReason | None:
    """Return the reason that a trainer may use fewer cores than the others, and uses them; or None."""
    cores = usages.cores(case, trainer)
    usual = median(usages.cores(case, each) for each in others)
    use = usages.busy(case, trainer)
    if cores is None or usual is None or use is None:
        return None
    if cores >= case.value(FEWER_CORES) * usual or use < case.value(USES_THEM):
        return None
    pool = usages.pool(case, trainer)
    on_host = pool is not None and pool.name != str(trainer.replica)
    field = f"spec.roles.{trainer.replica.role}.cpu"
    asked = case.role(trainer)
    change = FieldChange(path=("spec", "roles", str(trainer.replica.role), "cpu"), value=usual)
    alone = (
        trainer.replica.role is Role.CHIEF and not on_host and asked is not None and asked.cpu_cores == cores
    )
    where = f"its host {trainer.row.host}" if on_host else field if alone else "its limit"
    return HostReason(
        text=f"{trainer.replica} may use {cores:.2f} cores and uses {use:.0%} of them, the others may use "
        f"{usual:.2f}",
        field="cpu_limit_cores",
        next_step=f"give {trainer.replica} as many cores as the others have ({usual:.2f}): "
        f"{where} is smaller",
        changes=(change,) if alone else (),
    )


def _slower_cores(case: Case, straggler: Straggler) -> HostReason | None:
    """Return the reason that an example costs a trainer more CPU time than the others; or None.

    Its cores are slower, or share caches.
    """
    own_seconds = _cpu_seconds(straggler.trainer, straggler.pace.per_second)
    usual = median(_cpu_seconds(each.trainer, each.per_second) for each in straggler.others)
    if own_seconds is None or usual is None or own_seconds < case.value(MORE_TIME) * usual:
        return None
    unit = straggler.pace.unit.removesuffix("s")
    return HostReason(
        text=f"{'an' if unit == 'example' else 'a'} {unit} takes {straggler.trainer.replica} "
        f"{own_seconds / usual:.1f} times as much CPU time as the others",
        field="cpu_cores",
        next_step=f"see what is different about the processor of {place(straggler.trainer)}: its model, its "
        "clock, who shares it",
    )


def shared_cores(
    case: Case, trainer: ReplicaSnapshot, others: Sequence[ReplicaSnapshot]
) -> HostReason | None:
    """Return the reason that other programs use a trainer's cores, and it gets less than it may; or None."""
    cores, use = usages.cores(case, trainer), usages.cpu(case, trainer)
    neighbours = usages.neighbours(case, trainer)
    if neighbours is not None and cores is not None and use is not None:
        usual = median(usages.neighbours(case, other) for other in others)
        least = max(case.value(NEIGHBOURS) * cores, case.value(_LIKE_OTHERS) * (usual or 0.0))
        if neighbours >= least and use < case.value(usages.AT_LIMIT):
            return HostReason(
                text=f"other programs use {neighbours:.2f} cores where {trainer.replica} may use "
                f"{cores:.2f}; it gets {trainer.cpu_cores or 0.0:.2f}",
                field="neighbours_cpu_cores",
                next_step=f"see what else runs on {place(trainer)}, and move it or the worker away",
            )
    switches = trainer.involuntary_switches_per_second
    usual = median(other.involuntary_switches_per_second for other in others)
    if switches is None or usual is None:
        return None
    if switches < max(case.value(LEAST_SWITCHES), case.value(MORE_SWITCHES) * usual):
        return None
    return HostReason(
        text=f"threads of {trainer.replica} had to make room for others {switches:,.0f} times a second, "
        f"those of the other trainers {usual:,.0f} times",
        field="involuntary_switches",
        next_step=f"see what else runs on {place(trainer)}, and move it or the worker away",
    )


def stolen_cores(
    case: Case, trainer: ReplicaSnapshot, others: Sequence[ReplicaSnapshot]
) -> HostReason | None:
    """Return the reason that the hypervisor takes more cores from a trainer than from the others; or None."""
    cores, stolen = usages.cores(case, trainer), trainer.stolen_cpu_cores
    usual = median(each.stolen_cpu_cores for each in others) or 0.0
    if cores is None or stolen is None or stolen - usual < case.value(NEIGHBOURS) * cores:
        return None
    return HostReason(
        text=f"the hypervisor gives {stolen:.2f} cores to others where {trainer.replica} may use "
        f"{cores:.2f}; it gets {trainer.cpu_cores or 0.0:.2f}",
        field="stolen_cpu_cores",
        next_step=f"move {place(trainer)} to another hypervisor, or the worker to another machine",
    )


def place(trainer: ReplicaSnapshot) -> str:
    """Return where a trainer runs, in words."""
    return f"the host {trainer.row.host}" if trainer.row.host else f"the host of {trainer.replica}"


def _cpu_seconds(trainer: ReplicaSnapshot, per_second: float) -> float | None:
    return None if trainer.cpu_cores is None else rates.quotient(trainer.cpu_cores, per_second)


def median(values: Iterable[float | None]) -> float | None:
    """Return the median of the values that were measured; None: none was."""
    known = [each for each in values if each is not None]
    return statistics.median(known) if known else None
