"""Other programs use the cores on which the job runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from paceline.diagnosing import headrooms, needs, pressures
from paceline.diagnosing.cases import Case
from paceline.diagnosing.cores import crowds
from paceline.diagnosing.cores.crowds import Hurt
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence, FieldChange, Gain
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import CpuPolicy, RoleSpec
from paceline.model.roles import Role

TOPIC = Topic(
    code="CPU003",
    name="noisy-neighbour",
    title="Other programs use the cores of the job",
    severity=Severity.WARNING,
    why="A limit says how much a replica may take at most, not what it gets: every program on the host "
    "may use cores that are shared. A trainer that has to wait for a core waits in the middle of a step, and "
    "a parameter server lets all trainers wait.",
    fix="Give the replicas whole cores of their own (cpu_policy: exclusive), or have the other programs run "
    "elsewhere.",
    risk="No other program may use a replica's own cores, even while the replica rests, and jobs that ask "
    "for such cores may have to wait for a host that has as many.",
)


@rule(
    TOPIC,
    needs=(needs.CPU, needs.NEIGHBOURS, needs.RUN_DELAY),
    explains=("slow-host", "slow-decoding", "waiting-for-ps"),
)
def noisy_neighbour(case: Case) -> Iterator[Hit]:
    """Replicas whose threads wait for cores that other programs use."""
    whole: list[Hurt] = []
    parts: list[Hurt] = []
    for each in crowds.hurt(case):
        role = case.role(each.replica)
        cores = None if role is None else role.cpu_cores
        (whole if cores is None or quantities.is_whole(cores) else parts).append(each)
    # Replicas with a fraction of a core get their own hit: the fraction is the cause of their waiting.
    for crowd in (tuple(whole), tuple(parts)):
        gain = crowds.gain_without(case, crowd)
        if headrooms.matters(gain, case):
            yield _hit(case, crowd, gain)


def _hit(case: Case, crowd: tuple[Hurt, ...], gain: Gain) -> Hit:
    promised, severity = crowds.weight(case, gain)
    names = [str(each.replica.replica) for each in crowd]
    most = max(crowd, key=lambda each: each.others)
    where = most.place.name if most.place else f"host {most.replica.row.host}"
    changes = tuple(exclusive(case, [each.replica.replica.role for each in crowd]))
    return Hit(
        what=f"Other programs use {most.others:.2f} cores of {where}, and {crowds.get_less(names)}.",
        subjects=tuple(names),
        evidence=tuple(evidence(case, crowd)),
        changes=changes,
        next_steps=() if changes else BY_HAND,
        gain=promised,
        severity=severity,
    )


#: The next steps if a change of the job file cannot help.
BY_HAND = (
    "see who they are (top -o %CPU on that host), and have them run elsewhere or with a quota",
    "on a cluster: whole cores of its own for each replica (cpu: 1, cpu_policy: exclusive, and a memory)",
)


def evidence(case: Case, crowd: tuple[Hurt, ...]) -> Iterator[Evidence]:
    """Yield the evidence about a crowd: how full the cores are, and how many the worst replica gets."""
    most = max(crowd, key=lambda each: each.others)
    if most.place is not None:
        text = f"{most.place.name}: the job uses {most.place.used:.2f} cores, others {most.others:.2f}, of "
        text += f"{most.place.cores:g}"
        yield Evidence(text=text, sources=(case.source("neighbours_cpu_cores", most.place.replicas),))
    worst = max(crowd, key=lambda each: each.waits)
    yield crowds.got(case, worst.replica)
    yield Evidence(
        text=f"for each second on a core its threads wait {worst.waits:.2f} s for one that others use",
        sources=(case.source("run_delay_seconds", (worst.replica,)),),
    )
    yield from pressures.evidence(case, pressures.CORES, [hurt.replica for hurt in crowd])


def exclusive(case: Case, roles: Iterable[Role]) -> Iterator[FieldChange]:
    """Yield the changes that give some roles exclusive whole cores; none if the machine has too few."""
    wanted = [role for role in map(case.spec.role, dict.fromkeys(roles)) if role is not None]
    if not wanted or any(role.cpu_cores is None for role in wanted) or not _fits(case, wanted):
        return
    for role in wanted:
        cores = math.ceil(role.cpu_cores or 1)
        path = ("spec", "roles", str(role.role))
        if role.cpu_cores != cores:
            yield FieldChange(path=(*path, "cpu"), value=cores)
        if role.cpu_policy is not CpuPolicy.EXCLUSIVE:
            yield FieldChange(path=(*path, "cpu_policy"), value=str(CpuPolicy.EXCLUSIVE))


def _fits(case: Case, wanted: list[RoleSpec]) -> bool:
    """Return whether the machine has enough cores for these roles, plus one if other replicas share cores.

    The cores of cluster nodes are not known, so the answer for a cluster is always yes.
    """
    if case.recording.run.engine != "local" or case.machine_cores is None:
        return case.recording.run.engine != "local"
    rest = any(
        role.role not in {each.role for each in wanted} and role.cpu_policy is not CpuPolicy.EXCLUSIVE
        for role in case.spec.roles
    )
    asked = sum(role.replicas * math.ceil(role.cpu_cores or 1) for role in wanted)
    asked += sum(
        role.replicas * math.ceil(role.cpu_cores or 1)
        for role in case.spec.roles
        if role.cpu_policy is CpuPolicy.EXCLUSIVE and role not in wanted
    )
    return asked + rest <= case.machine_cores
