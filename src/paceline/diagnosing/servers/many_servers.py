"""There are far more parameter servers than needed: all are idle, and each step sends messages to each."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

from paceline.diagnosing import headrooms, needs, outlooks, trainings, usages
from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.servers import saturations
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.diagnosing.trainers import compute_bounds
from paceline.model.explanations.causes import Evidence, FieldChange, Gain
from paceline.model.explanations.findings import Severity
from paceline.model.measures import rates
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.roles import Role

IDLE = Threshold(
    "many-servers.idle", 0.1, Unit.SHARE,
    means="A server that uses a smaller share of its cores than this is idle.",
)  # fmt: skip
LEAST_SERVERS = Threshold(
    "many-servers.least-servers", 3, Unit.COUNT,
    means="A job with fewer servers than this has little to save.",
)  # fmt: skip
LEAST_PER_TRAINER = Threshold(
    "many-servers.least-per-trainer", 1.0, Unit.TIMES,
    means="A job with at least this many servers for each trainer has many servers.",
    source="clusters that people write down have a tenth to a half",
)  # fmt: skip
ENOUGH = Threshold(
    "many-servers.enough", 0.5, Unit.SHARE,
    means="A job has too many servers if this share of them, or less, is enough.",
)  # fmt: skip
MOST_MEMORY = Threshold(
    "many-servers.most-memory", 0.7, Unit.SHARE,
    means="A server that stays may use at most this share of its memory limit. What is on the servers that "
    "leave is included.",
)  # fmt: skip
MOST_CORES = Threshold(
    "many-servers.most-cores", 4.0, Unit.TIMES,
    means="Workers are given at most this many times their cores. A step does not spread over any number of "
    "cores.",
)  # fmt: skip

TOPIC = Topic(
    code="PS201",
    name="too-many-ps",
    title="More parameter servers than needed",
    severity=Severity.INFO,
    why="Each step sends messages to every server that has a part of a variable and waits for all of them. "
    "Servers that have nearly nothing to do make steps no faster, and hold cores and memory. Trainers at the "
    "limit of their cores could use these.",
    fix="Have fewer of them, and give their cores to workers that lack some.",
    risk="Each of those that stay holds more in memory. A checkpoint of paceline.training is read back under "
    "any number of servers; one of another script may not be.",
)


@rule(TOPIC, needs=(needs.CPU, needs.MEMORY, needs.STEPS), explains=("compute-bound",))
def too_many_ps(case: Case) -> Iterator[Hit]:
    """Servers that all do next to nothing, if half of them are enough for trainers at full speed."""
    now, trainers = len(case.servers), len(case.trainers)
    uses = [use for server in case.servers if (use := usages.cpu(case, server)) is not None]
    least = max(case.value(LEAST_SERVERS), case.value(LEAST_PER_TRAINER) * trainers)
    if now < least or len(uses) < now or max(uses) >= case.value(IDLE):
        return
    needed = _needed(case, sum(uses))
    if needed is None or needed > case.value(ENOUGH) * now:
        return
    used = rates.total(server.cpu_cores for server in case.servers) or 0.0
    freed = _freed(case, needed, used)
    enough, about = (freed.servers, freed.to) if freed else (needed, ())
    lack = ", which lack cores" if freed else ""
    yield Hit(
        what=f"{now} PS have next to nothing to do: {enough} would do for {trainers} trainers{lack}.",
        subjects=tuple(str(replica.replica) for replica in (*case.servers, *about)),
        evidence=(
            Evidence(
                text=f"all {now} PS together use {used:.2f} cores, the busiest {max(uses):.0%} of its own",
                sources=(case.source("cpu_cores", case.servers),),
            ),
        ),
        changes=(*trainings.servers(case, enough), *(freed.changes if freed else ())),
        gain=freed.gain if freed else None,
        severity=Severity.WARNING if freed else None,
    )


class _Freed(NamedTuple):
    """Cores freed by removing servers.

    Attributes:
        to: the trainers that get the cores.
        servers: the number of servers that stay.
        changes: the changes of the job file.
        gain: the gain.
    """

    to: tuple[ReplicaSnapshot, ...]
    servers: int
    changes: tuple[FieldChange, ...]
    gain: Gain


def _freed(case: Case, needed: int, used: float) -> _Freed | None:
    """Return the cores that workers get from removed servers; None: they need none, or it brings nothing.

    An example costs trainers and servers as much CPU time as now. So the servers' load grows by the same
    factor as the workers' cores.

    Args:
        case: the measurements.
        needed: the number of servers that are enough for workers with their present cores.
        used: the number of cores that all servers use together.
    """
    apart, bound = compute_bounds.apart(case), compute_bounds.bound_trainers(case)
    if apart is None or not bound:
        return None
    one = apart.servers / len(case.servers)
    most_cores, target = case.value(MOST_CORES), case.value(saturations.TARGET)
    for stay in range(needed, len(case.servers)):
        times = min(most_cores, 1 + (len(case.servers) - stay) * one / apart.trainers)
        if used * times <= target * one * stay:
            gain = outlooks.gain(case, functools.partial(outlooks.own_times, factor=1 / times))
            cores = math.floor(apart.trainers * times / len(case.active_trainers) * 10 + 1e-6) / 10
            change = FieldChange(path=("spec", "roles", str(Role.WORKER), "cpu"), value=cores)
            return _Freed(bound, stay, (change,), gain) if gain and headrooms.matters(gain, case) else None
    return None


def _needed(case: Case, uses: float) -> int | None:
    """Return how many servers are enough for trainers at full speed; None: not known."""
    times = headrooms.most_times_fed(case)
    if times is None or not case.active_trainers:
        return None
    links = usages.links(case)
    moved = sum(links.get(each.row.host or "", 0.0) for each in case.servers)
    target = case.value(saturations.TARGET)
    wanted = (uses * times / target, moved * times / target, _memory(case) / case.value(MOST_MEMORY))
    return max(1, *(math.ceil(each - 1e-6) for each in wanted))


def _memory(case: Case) -> float:
    """Return the memory that all servers use, in units of one server's limit; 0: there is no limit."""
    found = 0.0
    for each in case.servers:
        role = case.role(each)
        limit = each.memory_limit_bytes or each.row.memory_bytes or (role.memory_bytes if role else None)
        if limit and each.memory_bytes is not None:
            found += each.memory_bytes / limit
    return found
