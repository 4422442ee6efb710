"""Replicas that are at their limit while others wait for them: such a job is never called fine.

Other rules say why a replica is at its limit. If none does, this rule at least names the replica: each
diagnosis ends with `uncovered`.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator, Sequence

from paceline.diagnosing import headrooms, needs, outlooks, scalings, usages
from paceline.diagnosing.cases import Case
from paceline.diagnosing.progress import bound_parts, silences
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.servers import saturations
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.diagnosing.trainers import paces
from paceline.model.explanations.causes import Cause, Evidence
from paceline.model.explanations.findings import Severity
from paceline.model.measures import rates
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.roles import Role
from paceline.model.words import listed

RESTING = Threshold(
    "limits.resting", 0.5, Unit.SHARE,
    means="Trainers that use at most this share of their cores wait for a trainer that is at its limit, if "
    "all make steps alike.",
)  # fmt: skip
BINDS = Threshold(
    "limits.binds", 0.9, Unit.SHARE,
    means="A part that is used to this share while trainers wait is not fine, whatever other rules say of "
    "it.",
)  # fmt: skip
SAME_RATE = Threshold(
    "limits.same-rate", 0.1, Unit.SHARE,
    means="The trainers make steps at the same rate if the slowest trainer is behind the fastest one by at "
    "most this share of the fastest rate. Trainers that make as many steps wait for each other.",
)  # fmt: skip

#: The causes that name a full link.
_OF_LINKS = frozenset(("ps-network-bound", "shared-link", "worker-link"))

TOPIC = Topic(
    code="PRG011",
    name="at-limit",
    title="A replica is at its limit, and others wait for it",
    severity=Severity.WARNING,
    why="It uses all of the cores, or of the link, that it may, and those that need it do nothing for a good "
    "part of their time. So it sets the pace of the whole job. What it does for so long nothing that was "
    "measured says.",
    fix="Trace a step: that says which variables and operations it works for. Then give it less to do, or "
    "more cores.",
    risk="None from looking.",
)


@rule(TOPIC, needs=(needs.CPU,), explains=("hot-ps", "waiting-for-ps"))
def at_limit(case: Case) -> Iterator[Hit]:
    """Parameter servers, links or trainers at their limit while trainers wait."""
    if not silences.has_begun(case) or case.recording.lost:
        return
    servers = _full_servers(case)
    linked = [each for each in _fully_linked(case) if each not in servers]
    if (servers or linked) and _trainers_wait(case):
        yield _hit(case, servers, linked)
    elif not linked and not servers:
        yield from _binding(case)
    trainer = _awaited(case)
    if trainer is not None:
        yield _awaited_hit(case, trainer)


def _binding(case: Case) -> Iterator[Hit]:
    """Yield the bottleneck of the network of queues, if it is nearly fully used and trainers wait for it."""
    outlook, network = scalings.outlook(case), outlooks.network(case)
    if outlook is None or network is None:
        return
    binds, use = outlook.uses[0]
    # No trainer waits for the machine if each replica has cores of its own; it only bounds other sizes.
    is_no_wait = binds == outlooks.MACHINE_STATION and binds not in network.stations
    if use < case.value(BINDS) or binds == outlooks.OWN or is_no_wait or not _trainers_wait(case):
        return
    subjects = [str(each) for each in outlooks.subjects(case, binds)]
    yield Hit(
        what=f"The {binds} is used to {use:.0%}, and trainers wait for it."
        if binds != outlooks.INPUT
        else f"Trainers wait for their input {use:.0%} of the time.",
        subjects=tuple(subjects),
        evidence=tuple(_waiting(case, case.trainers)),
        next_steps=(
            f"paceline trace {case.recording.run.name} says what is moved and computed there",
            f"paceline predict {case.recording.run.name} says what other sizes would bring",
        ),
    )


def uncovered(found: Sequence[Cause]) -> list[Cause]:
    """Return the causes without those that only name a bottleneck which another cause explains.

    A cause of severity INFO explains nothing, but if it names the full link that trainers wait for, it says
    more than this rule: it is a warning then. A bottleneck found by a probe takes precedence over one that
    was only measured.
    """
    bottlenecks = {subject for cause in found if cause.name == TOPIC.name for subject in cause.subjects}
    left = [
        dataclasses.replace(cause, severity=Severity.WARNING)
        if cause.name in _OF_LINKS and bottlenecks.intersection(cause.subjects)
        else cause
        for cause in found
    ]
    for name in (bound_parts.TOPIC.name, TOPIC.name):
        explained = {
            subject
            for cause in left
            if cause.name not in (name, TOPIC.name) and cause.severity is not Severity.INFO
            for subject in cause.subjects
        }
        left = [each for each in left if each.name != name or not set(each.subjects) & explained]
    return left


def _full_servers(case: Case) -> list[ReplicaSnapshot]:
    """Return the servers that fully use cores which no trainer shares."""
    found: list[ReplicaSnapshot] = []
    saturated = case.value(saturations.SATURATED)
    for pool, users in usages.pools(case).items():
        used = rates.total(each.cpu_cores for each in users)
        own = all(each.replica.role is Role.PS for each in users) and pool.name != usages.MACHINE
        if own and used is not None and used >= saturated * pool.cores:
            found += users
    return sorted(found, key=lambda each: each.replica)


def _fully_linked(case: Case) -> list[ReplicaSnapshot]:
    """Return the servers that each have a host of their own whose link is fully used."""
    hosts = [each.row.host for each in (*case.servers, *case.trainers)]
    saturated = case.value(saturations.SATURATED)
    return [
        each
        for each in case.servers
        if (usages.link(case, each) or 0.0) >= saturated and hosts.count(each.row.host) == 1
    ]


def _trainers_wait(case: Case) -> bool:
    """Return whether trainers wait although the shared machine has cores left for them."""
    return saturations.are_waiting(case) and headrooms.machine_times(case) >= case.value(headrooms.LEAST_GAIN)


def _hit(case: Case, servers: Sequence[ReplicaSnapshot], linked: Sequence[ReplicaSnapshot]) -> Hit:
    full = [*servers, *linked]
    names, one = [str(each.replica) for each in full], len(full) == 1
    evidence = [_cores(case, each) for each in servers[:4]]
    evidence += [_link(case, each) for each in linked[:4]]
    return Hit(
        what=f"{listed(names)} {'is at its limit' if one else 'are at their limit'} while trainers wait.",
        subjects=(*names, *(each.row.host for each in linked if each.row.host)),
        evidence=(*evidence, *_waiting(case, case.trainers)),
        next_steps=(f"paceline trace {case.recording.run.name} says what they work for",),
    )


def _cores(case: Case, replica: ReplicaSnapshot) -> Evidence:
    limit = usages.cores(case, replica) or 0.0
    return Evidence(
        text=f"{replica.replica} uses {replica.cpu_cores or 0.0:.2f} of {limit:.2f} cores",
        sources=(case.source("cpu_cores", (replica,)),),
    )


def _link(case: Case, replica: ReplicaSnapshot) -> Evidence:
    fields = ("network_received_bytes", "network_sent_bytes")
    return Evidence(
        text=f"the link of {replica.row.host}, where {replica.replica} is, is used to "
        f"{usages.link(case, replica) or 0.0:.0%}",
        sources=tuple(case.source(field, (replica,)) for field in fields),
    )


def _waiting(case: Case, trainers: Sequence[ReplicaSnapshot]) -> Iterator[Evidence]:
    known = [use for each in trainers if (use := usages.cpu(case, each)) is not None]
    if known:
        yield Evidence(
            text=f"{listed(each.replica for each in trainers)}: {statistics.mean(known):.0%} of their cores "
            "used",
            sources=(case.source("cpu_cores", trainers),),
        )


def _awaited(case: Case) -> ReplicaSnapshot | None:
    """Return the trainer at its limit that all others wait for; None: there is none.

    The other trainers rest, and make steps at the same rate as this trainer.
    """
    uses = {
        trainer: use for trainer in case.active_trainers if (use := usages.cpu(case, trainer)) is not None
    }
    at_limit = case.value(usages.AT_LIMIT)
    full = [trainer for trainer, use in uses.items() if use >= at_limit and _is_alone(case, trainer)]
    if len(full) != 1 or len(uses) < 2 or len(uses) < len(case.active_trainers):
        return None
    others = [trainer for trainer in uses if trainer is not full[0]]
    are_resting = max(uses[trainer] for trainer in others) <= case.value(RESTING)
    if not are_resting or any(trainer.input_wait_share for trainer in others):
        return None
    pace = {trainer.trainer.replica: trainer.per_second for trainer in paces.paces(case)}
    if any(trainer.replica not in pace for trainer in uses):
        return None
    slowest, fastest = min(pace.values()), max(pace.values())
    return full[0] if fastest - slowest <= case.value(SAME_RATE) * fastest else None


def _is_alone(case: Case, replica: ReplicaSnapshot) -> bool:
    pool = usages.pool(case, replica)
    return pool is not None and pool.name == str(replica.replica)


def _awaited_hit(case: Case, trainer: ReplicaSnapshot) -> Hit:
    others = [each for each in case.active_trainers if each is not trainer]
    name = str(trainer.replica)
    return Hit(
        what=f"{name} is at its limit, and the other trainers make no more steps than it does: they wait.",
        subjects=(name,),
        evidence=(_cores(case, trainer), *_waiting(case, others)),
        next_steps=(f"paceline trace {case.recording.run.name} says what it works for",),
    )
