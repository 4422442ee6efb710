"""The hypervisor gives the cores of a virtual machine to other machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paceline.diagnosing import headrooms, needs, usages
from paceline.diagnosing.cases import Case
from paceline.diagnosing.cores import crowds
from paceline.diagnosing.progress import silences
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.causes import Evidence, Gain
from paceline.model.explanations.findings import Severity
from paceline.model.measures.snapshots import ReplicaSnapshot

TOPIC = Topic(
    code="CPU006",
    name="stolen-cores",
    title="Other virtual machines use the cores of the host",
    severity=Severity.WARNING,
    why="The cores of a virtual machine are threads on its host, which may give them to other machines when "
    "it has promised more than it has. Nothing on the machine uses them then, and they are gone all the "
    "same: who was at work stands still, whatever its limit says. The kernel is told and counts it as "
    "stolen time. Exclusive cores do not help: they are cores of the same machine.",
    fix="Run on machines that have cores of their own: a dedicated host, an instance type whose cores are "
    "neither shared nor burstable; or have the machine moved to another host.",
)


class _Victim(NamedTuple):
    """A replica that gets less than it may use.

    Attributes:
        replica: the replica.
        stolen: the number of its cores that the hypervisor gives to other machines.
        lost: the share of the work on its cores that is held up.
    """

    replica: ReplicaSnapshot
    stolen: float
    lost: float


@rule(TOPIC, needs=(needs.CPU, needs.STOLEN), explains=("slow-host", "slow-decoding", "waiting-for-ps"))
def stolen_cores(case: Case) -> Iterator[Hit]:
    """Replicas on cores that a hypervisor gives to other machines while there is work for these cores."""
    least_lost = _least_lost(case)
    victims = tuple(
        victim
        for each in (*case.servers, *case.trainers)
        if (victim := _victim(case, each)) is not None and victim.lost >= least_lost
    )
    if not victims or not silences.trains(case):
        return
    most = max(victims, key=lambda each: each.lost)
    names = [str(each.replica.replica) for each in victims]
    matters = not crowds.bound_elsewhere(case)
    yield Hit(
        what=f"The hypervisor gives {most.stolen:.2f} cores of {_where(case, most.replica)} to other "
        f"machines, and {crowds.get_less(names)}.",
        subjects=tuple(names),
        evidence=tuple(_evidence(case, most)),
        next_steps=(
            "vmstat 1 there shows it as st; ask who runs the host for cores that are not shared, or for "
            "another host",
        ),
        gain=_gain(case, victims) if matters else None,
        severity=None if matters else Severity.INFO,
    )


def _least_lost(case: Case) -> float:
    """Return the share of the time with work on the cores that is stolen from which on it is told.

    Its return would bring `headrooms.LEAST_GAIN`.
    """
    return 1 - 1 / case.value(headrooms.LEAST_GAIN)


def _victim(case: Case, replica: ReplicaSnapshot) -> _Victim | None:
    """Return a replica with its loss; None: nothing is stolen, it is at its limit, or it is not measured."""
    stolen, own, others = replica.stolen_cpu_cores, replica.cpu_cores, replica.neighbours_cpu_cores
    use = usages.cpu(case, replica)
    if not stolen or own is None or others is None or use is None or use >= case.value(crowds.AT_LIMIT):
        return None
    return _Victim(replica, stolen, stolen / (stolen + own + others))


def _gain(case: Case, victims: tuple[_Victim, ...]) -> Gain:
    """Return the gain without stealing: between nothing and all the time stolen from the job's replicas."""
    kept = min(max(1 - victim.lost, usages.cpu(case, victim.replica) or 1.0) for victim in victims)
    return Gain(low=1.0, high=max(1.0, 1 / kept))


def _where(case: Case, replica: ReplicaSnapshot) -> str:
    return "this machine" if case.recording.run.engine == "local" else f"host {replica.row.host}"


def _evidence(case: Case, most: _Victim) -> Iterator[Evidence]:
    yield Evidence(
        text=f"{_where(case, most.replica)}: for {most.lost:.0%} of the time for which there is work on its "
        f"cores they are given to others ({most.stolen:.2f} cores on average)",
        sources=(case.source("stolen_cpu_cores", (most.replica,)),),
    )
    yield crowds.got(case, most.replica)
