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
from paceline.diagnosing.topics import Topic
from paceline.diagnosing.trainers import paces
from paceline.diagnosing.trainers.paces import Straggler
from paceline.model.explanations.causes import Evidence, FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.measures import rates
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.roles import Role

#: Below that part of the others' cores a trainer has fewer: half way to `paces.STRAGGLING` and beyond noise.
FEWER_CORES = 0.85
#: So far a trainer uses its cores if they are what it lacks: quotas cut bursts before the mean reaches them.
USES_THEM = 0.6
#: Others on the cores of a trainer matter from this part of them on: that much is no daemon.
NEIGHBOURS = 0.2
#: From so many times the others' on: CPU time of an example, threads that had to make room for others.
MORE_TIME, MORE_SWITCHES = 1.33, 2.0
#: Fewer involuntary switches a second than that are those of any program.
LEAST_SWITCHES = 50.0

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
        gain=gain if headrooms.matters(gain) else None,
        severity=headrooms.severity(gain),
    )


def _seen(case: Case, known: Iterable[tuple[Straggler, HostReason]]) -> Iterator[Evidence]:
    for straggler, reason in known:
        who = (straggler.trainer, *straggler.fellows)
        sources = (case.source(reason.field, who),) if reason.field else ()
        yield Evidence(text=reason.text, sources=sources)


def _reason(case: Case, straggler: Straggler) -> HostReason | None:
    """Return why a straggler gets too little CPU; None: no reason was seen."""
    own, others = straggler.trainer, straggler.fellows
    if links.is_full(case, own) or own in links.losing(case):
        return None
    fewer = fewer_cores(case, own, others)
    if fewer is not None:
        return fewer
    # If the trainer waits for its input, or this is not known, only fewer cores can be the reason.
    if own.input_wait_share is None or readings.waits(own) >= readings.INPUT_BOUND:
        return None
    return _slower_cores(straggler) or shared_cores(case, own, others) or stolen_cores(case, own, others)


def fewer_cores(case: Case, own: ReplicaSnapshot, others: Sequence[ReplicaSnapshot]) -> HostReason | None:
    """Return the reason that a trainer may use fewer cores than the others, and uses them; or None."""
    cores = usages.cores(case, own)
    usual = median(usages.cores(case, each) for each in others)
    use = usages.busy(case, own)
    if cores is None or usual is None or use is None or cores >= FEWER_CORES * usual or use < USES_THEM:
        return None
    pool = usages.pool(case, own)
    on_host = pool is not None and pool.name != str(own.replica)
    field = f"spec.roles.{own.replica.role}.cpu"
    asked = case.role(own)
    change = FieldChange(path=("spec", "roles", str(own.replica.role), "cpu"), value=usual)
    alone = own.replica.role is Role.CHIEF and not on_host and asked is not None and asked.cpu_cores == cores
    where = f"its host {own.row.host}" if on_host else field if alone else "its limit"
    return HostReason(
        text=f"{own.replica} may use {cores:.2f} cores and uses {use:.0%} of them, the others may use "
        f"{usual:.2f}",
        field="cpu_limit_cores",
        next_step=f"give {own.replica} as many cores as the others have ({usual:.2f}): {where} is smaller",
        changes=(change,) if alone else (),
    )


def _slower_cores(straggler: Straggler) -> HostReason | None:
    """Return the reason that an example costs a trainer more CPU time than the others; or None.

    Its cores are slower, or share caches.
    """
    own = _cpu_seconds(straggler.trainer, straggler.pace.per_second)
    usual = median(_cpu_seconds(each.trainer, each.per_second) for each in straggler.others)
    if own is None or usual is None or own < MORE_TIME * usual:
        return None
    unit = straggler.pace.unit.removesuffix("s")
    return HostReason(
        text=f"{'an' if unit == 'example' else 'a'} {unit} takes {straggler.trainer.replica} "
        f"{own / usual:.1f} times as much CPU time as the others",
        field="cpu_cores",
        next_step=f"see what is different about the processor of {place(straggler.trainer)}: its model, its "
        "clock, who shares it",
    )


def shared_cores(case: Case, own: ReplicaSnapshot, others: Sequence[ReplicaSnapshot]) -> HostReason | None:
    """Return the reason that other programs use a trainer's cores, and it gets less than it may; or None."""
    cores, use = usages.cores(case, own), usages.cpu(case, own)
    neighbours = usages.neighbours(case, own)
    if neighbours is not None and cores is not None and use is not None:
        usual = median(usages.neighbours(case, each) for each in others)
        if neighbours >= max(NEIGHBOURS * cores, 0.5 * (usual or 0.0)) and use < usages.AT_LIMIT:
            return HostReason(
                text=f"other programs use {neighbours:.2f} cores where {own.replica} may use {cores:.2f}; it "
                f"gets {own.cpu_cores or 0.0:.2f}",
                field="neighbours_cpu_cores",
                next_step=f"see what else runs on {place(own)}, and move it or the worker away",
            )
    switches = own.involuntary_switches_per_second
    usual = median(each.involuntary_switches_per_second for each in others)
    if switches is None or usual is None or switches < max(LEAST_SWITCHES, MORE_SWITCHES * usual):
        return None
    return HostReason(
        text=f"threads of {own.replica} had to make room for others {switches:,.0f} times a second, those of "
        f"the other trainers {usual:,.0f} times",
        field="involuntary_switches",
        next_step=f"see what else runs on {place(own)}, and move it or the worker away",
    )


def stolen_cores(case: Case, own: ReplicaSnapshot, others: Sequence[ReplicaSnapshot]) -> HostReason | None:
    """Return the reason that the hypervisor takes more cores from a trainer than from the others; or None."""
    cores, stolen = usages.cores(case, own), own.stolen_cpu_cores
    usual = median(each.stolen_cpu_cores for each in others) or 0.0
    if cores is None or stolen is None or stolen - usual < NEIGHBOURS * cores:
        return None
    return HostReason(
        text=f"the hypervisor gives {stolen:.2f} cores to others where {own.replica} may use {cores:.2f}; it "
        f"gets {own.cpu_cores or 0.0:.2f}",
        field="stolen_cpu_cores",
        next_step=f"move {place(own)} to another hypervisor, or the worker to another machine",
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
