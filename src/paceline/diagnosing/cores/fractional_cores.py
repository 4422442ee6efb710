"""A replica with a fraction of a core runs on shared cores, where other programs disturb it."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing import headrooms, needs
from paceline.diagnosing.cases import Case
from paceline.diagnosing.cores import crowds, noisy_neighbours
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence, EvidenceSource
from paceline.model.explanations.findings import Severity
from paceline.model.words import listed

TOPIC = Topic(
    code="CPU004",
    name="fractional-cores",
    title="A fraction of a core keeps a replica on shared cores",
    severity=Severity.WARNING,
    why="Only whole cores can be a replica's own: the kubelet's static CPU manager silently puts a container "
    "with a fraction of a core (cpu: 1500m) into the pool that all share, and there others disturb it.",
    fix="Ask for a whole number of cores, with cpu_policy: exclusive.",
    risk="No other program may use a replica's own cores, even while the replica rests, and jobs that ask "
    "for such cores may have to wait for a host that has as many.",
)


@rule(
    TOPIC,
    needs=(needs.CPU, needs.NEIGHBOURS, needs.RUN_DELAY),
    explains=("exclusive-not-got", "noisy-neighbour", "slow-host", "slow-decoding", "waiting-for-ps"),
)
def fractional_cores(case: Case) -> Iterator[Hit]:
    """Roles that asked for a fraction of a core and whose replicas wait for cores that other programs use."""
    asked = {
        role.role: quantities.quantity_cores(role.cpu_cores)
        for role in case.spec.roles
        if role.cpu_cores is not None and not quantities.is_whole(role.cpu_cores)
    }
    crowd = tuple(each for each in crowds.hurt(case) if each.replica.replica.role in asked)
    gain = crowds.gain_without(case, crowd)
    if not headrooms.matters(gain, case):
        return
    promised, severity = crowds.weight(case, gain)
    names = [str(each.replica.replica) for each in crowd]
    roles = list(dict.fromkeys(each.replica.replica.role for each in crowd))
    fractions = " and ".join(f"each {role} for {asked[role]}" for role in roles)
    changes = tuple(noisy_neighbours.exclusive(case, roles))
    yield Hit(
        what=f"A fraction of a core is asked for ({fractions}), so cores are shared, and other programs "
        f"disturb {listed(names)}.",
        subjects=tuple(names),
        evidence=(
            Evidence(
                text="; ".join(f"spec.roles.{role}.cpu: {asked[role]}" for role in roles)
                + "; only whole cores can be exclusive",
                sources=tuple(
                    EvidenceSource(what="job file", field=f"spec.roles.{role}.cpu", count=1) for role in roles
                ),
            ),
            *noisy_neighbours.evidence(case, crowd),
        ),
        changes=changes,
        next_steps=() if changes else noisy_neighbours.BY_HAND,
        gain=promised,
        severity=severity,
    )
