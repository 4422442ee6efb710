"""Trainers compute as fast as their cores allow: this is the goal, unless servers leave many cores idle.

If trainers are at their limit while parameter servers have room, no trainer waits. So this rule answers "what
would make the job faster" and normally reports no fault. It reports a fault if the parameter servers leave as
many cores idle as all trainers have: moved to the trainers, these cores make the job faster for the same
price.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paceline.diagnosing import headrooms, needs, outlooks, usages
from paceline.diagnosing.cases import Case, mean, once
from paceline.diagnosing.inputs import readings
from paceline.diagnosing.networks import links
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.causes import Evidence, FieldChange, Gain
from paceline.model.explanations.findings import Severity
from paceline.model.measures import rates
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.roles import ReplicaId, Role

WITH_ROOM = Threshold(
    "compute-bounds.with-room", 0.7, Unit.SHARE,
    means="A parameter server has room if it uses less than this share of its cores. The trainers, which use "
    "more of theirs, bind then. The default is `usages.at-limit` less what two means of the same load may "
    "differ by.",
)  # fmt: skip
MOSTLY_OWN = Threshold(
    "compute-bounds.mostly-own", 0.8, Unit.SHARE,
    means="Trainers are bound by their own computing if they do at least this share of the work on the cores "
    "that they share with others. Below it, the shared cores are what binds.",
)  # fmt: skip
IDLE_OVER_OWN = Threshold(
    "compute-bounds.idle-over-own", 1.0, Unit.TIMES,
    means="Cores lie at the wrong place if parameter servers leave at least this many times as many cores "
    "idle as all trainers have.",
)  # fmt: skip
LEFT_USE = Threshold(
    "compute-bounds.left-use", 0.67, Unit.SHARE,
    means="The rule leaves the parameter servers so many cores that they use this share of them. They have "
    "room as before then.",
)  # fmt: skip

TOPIC = Topic(
    code="WRK001",
    name="compute-bound",
    title="Trainers compute as fast as their cores allow",
    severity=Severity.INFO,
    why="The trainers' cores are busy while the parameter servers have room and no trainer waits for input. "
    "So it should be: nothing keeps the trainers waiting, and only more cores of theirs make the job faster.",
    fix="More cores for each worker, or more workers, as long as the parameter servers keep up; or less "
    "computing for an example (larger batches, compute_precision: bfloat16 where the CPU has it).",
    risk="More cores cost more; with more workers gradients are of older parameters.",
)


class _Move(NamedTuple):
    """The change that moves cores from servers to workers, and its gain."""

    changes: tuple[FieldChange, ...]
    gain: Gain


@rule(TOPIC, needs=(needs.CPU, needs.STEPS))
def compute_bound(case: Case) -> Iterator[Hit]:
    """Most trainers at the limit of their cores, while servers, links and input have room."""
    if case.spec.role(Role.PS) is None:
        yield from _bound_alone(case)
        return
    active, bound, rest = case.active_trainers, bound_trainers(case), _most_used(case)
    if not bound or rest is None:
        return
    busy = _busy(case)
    use = statistics.mean(busy[each.replica].use for each in bound)
    twice = outlooks.gain(case, lambda now: outlooks.own_times(now, 0.5))
    more = f": twice the cores would bring x {twice.low:.1f} to {twice.high:.1f}" if twice else ""
    moved = _moved(case)
    yield Hit(
        what=f"Trainers use {use:.0%} of their cores while the PS have room ({rest:.0%} at most){more}.",
        subjects=tuple(str(each.replica) for each in bound),
        evidence=(
            Evidence(
                text=f"{len(bound)} of {len(active)} trainers use {use:.0%} of their cores on average; "
                f"of the PS none uses more than {rest:.0%}",
                sources=(case.source("cpu_cores", (*bound, *case.servers)),),
            ),
            *(_idle_evidence(case) if moved else ()),
        ),
        changes=moved.changes if moved else (),
        next_steps=() if moved else _ways(case),
        gain=moved.gain if moved else twice,
        severity=Severity.WARNING if moved else None,
    )


def _bound_alone(case: Case) -> Iterator[Hit]:
    """Yield a hit if most trainers of a job without servers are at the limit of their cores."""
    active, bound = case.active_trainers, _at_limit(case)
    if not bound:
        return
    busy = _busy(case)
    use = statistics.mean(busy[each.replica].use for each in bound)
    waits = mean(bound, lambda each: each.all_reduce_share)
    seen = f"{len(bound)} of {len(active)} trainers use {use:.0%} of their cores on average"
    reduced = "" if waits is None else f", and spend {waits:.0%} of their time in all-reduce"
    fields = [case.source("cpu_cores", bound)]
    if waits is not None:
        fields.append(case.source("all_reduce_seconds", bound, steps=True))
    yield Hit(
        what=f"Trainers use {use:.0%} of their cores and do not wait for input.",
        subjects=tuple(str(each.replica) for each in bound),
        evidence=(Evidence(text=seen + reduced, sources=tuple(fields)),),
        next_steps=(
            "nothing has to be done: trainers that never wait are the goal",
            "faster: more cores for each (spec.roles.worker.cpu), or more workers "
            "(spec.roles.worker.replicas)",
            "less computing for an example: larger batches; bfloat16 where the CPU has it (torch.autocast)",
        ),
    )


@once
def bound_trainers(case: Case) -> tuple[ReplicaSnapshot, ...]:
    """Return the trainers at the limit of their cores; none unless most are, and nothing else binds."""
    rest = _most_used(case)
    return () if rest is None or rest >= case.value(WITH_ROOM) else _at_limit(case)


def _at_limit(case: Case) -> tuple[ReplicaSnapshot, ...]:
    """Return the trainers at the limit of their cores, as `bound_trainers`, but whatever servers do."""
    active, busy = case.active_trainers, _busy(case)
    waiting = case.value(readings.DECODING)
    found = tuple(
        each
        for each in active
        if each.replica in busy and readings.waits(each) < waiting and not readings.is_burdened(case, each)
    )
    full = max(usages.links(case).values(), default=0.0) >= case.value(links.FULL)
    return () if full or 2 * len(found) <= len(active) else found


@once
def _busy(case: Case) -> dict[ReplicaId, _Full]:
    return {user.replica: each for each in _full_pools(case) for user in each.users}


class _Full(NamedTuple):
    """Cores that are used to their limit: the share that is used, and the replicas that use them."""

    use: float
    users: tuple[ReplicaSnapshot, ...]


def _full_pools(case: Case) -> Iterator[_Full]:
    """Yield the cores that are used to their limit and mostly by trainers."""
    mostly_own = case.value(MOSTLY_OWN)
    at_limit = case.value(usages.AT_LIMIT)
    for pool, users in usages.pools(case).items():
        own = rates.total(each.cpu_cores for each in users if each.replica.role.trains)
        everyone = rates.total(each.cpu_cores for each in users)
        if own is not None and everyone is not None and own >= mostly_own * everyone:
            use = min(1.0, everyone / pool.cores)
            if use >= at_limit:
                yield _Full(use, users)


def _most_used(case: Case) -> float | None:
    """Return the highest share of its cores that a server uses; None: not measured for all servers."""
    known = [usages.cpu(case, each) for each in case.servers]
    if not known or any(each is None for each in known):
        return None
    return max(each for each in known if each is not None)


def _own_pools(case: Case, replicas: Sequence[ReplicaSnapshot]) -> dict[str, float]:
    """Return the pools that only these replicas use: maps their names to their cores."""
    names = {each.replica for each in replicas}
    return {
        pool.name: pool.cores
        for pool, users in usages.pools(case).items()
        if users and all(each.replica in names for each in users)
    }


def _idle(case: Case) -> float:
    """Return the number of cores that only parameter servers may use and that they leave idle."""
    cores = sum(_own_pools(case, case.servers).values())
    return max(0.0, cores - (rates.total(each.cpu_cores for each in case.servers) or 0.0)) if cores else 0.0


class Apart(NamedTuple):
    """The number of cores of all parameter servers, and of all trainers that make steps."""

    servers: float
    trainers: float


def apart(case: Case) -> Apart | None:
    """Return the cores of servers and trainers if each replica has its own cores; None: not all have.

    It is also None for a job with a chief, whose cores are set by another role than the workers' cores.
    """
    both = (*case.servers, *case.active_trainers)
    servers, trainers = _own_pools(case, case.servers), _own_pools(case, case.active_trainers)
    if set(servers) | set(trainers) != {str(each.replica) for each in both}:
        return None
    if any(each.replica.role is Role.CHIEF for each in both):
        return None
    return Apart(sum(servers.values()), sum(trainers.values()))


def _moved(case: Case) -> _Move | None:
    """Return the best division of the present cores between servers and workers; None: it brings little.

    An example costs a trainer and the busiest server as much CPU time as now. So if all trainers have W
    cores, the servers need W * (servers * the busiest server's used cores) / (cores that trainers use) /
    `LEFT_USE`. Both together are as many cores as now.
    """
    cores, active = apart(case), case.active_trainers
    if cores is None:
        return None
    server_cores, trainer_cores = cores
    used = rates.total(replica.cpu_cores for replica in active) or 0.0
    if _idle(case) < case.value(IDLE_OVER_OWN) * trainer_cores or used <= 0:
        return None
    busiest = max(replica.cpu_cores or 0.0 for replica in case.servers)
    left_use = case.value(LEFT_USE)
    new_trainer_cores = (trainer_cores + server_cores) / (1 + len(case.servers) * busiest / used / left_use)
    worker = math.floor(new_trainer_cores / len(active) * 10) / 10
    server = (
        math.floor((trainer_cores + server_cores - worker * len(active)) / len(case.servers) * 10 + 1e-6) / 10
    )
    if server <= 0 or worker <= 0:
        return None
    faster, slower = worker * len(active) / trainer_cores, server * len(case.servers) / server_cores
    gain = outlooks.gain(
        case,
        lambda now: outlooks.servers_times(outlooks.own_times(now, 1 / faster), slower),
    )
    if gain is None or not headrooms.matters(gain, case):
        return None
    cpu = {Role.PS: server, Role.WORKER: worker}
    changes = (
        FieldChange(path=("spec", "roles", str(role), "cpu"), value=role_cores)
        for role, role_cores in cpu.items()
    )
    return _Move(changes=tuple(changes), gain=gain)


def _idle_evidence(case: Case) -> Iterator[Evidence]:
    active = case.active_trainers
    own = sum(_own_pools(case, active).values())
    yield Evidence(
        text=f"the PS leave {_idle(case):.2f} cores idle; all trainers together have {own:.2f}",
        sources=(case.source("cpu_cores", case.servers), case.source("cpu_limit_cores", active)),
    )


def _ways(case: Case) -> tuple[str, ...]:
    workers = case.spec.role(Role.WORKER)
    more = workers.replicas * 2 if workers else 1
    return (
        "nothing has to be done: trainers that never wait are the goal",
        "faster: more cores for each (spec.roles.worker.cpu), or more workers: "
        f"paceline scale {case.recording.run.name} {more}",
    )
