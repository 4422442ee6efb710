"""What more of a resource would bring, by a network of queues."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection

from paceline.diagnosing import usages
from paceline.diagnosing.cases import Case, mean, once
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.model.explanations.causes import Gain
from paceline.model.measures import rates
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.roles import ReplicaId, Role
from paceline.modelling import queues
from paceline.modelling.queues import Queues

BINDING_USE = Threshold(
    "outlooks.binding-use", 0.75, Unit.SHARE,
    means="A bound that is used to this share binds. A trainer that arrives then waits three times as long "
    "as it is served.",
    source="the queue with random arrivals (M/M/1)",
)  # fmt: skip
EVEN = Threshold(
    "outlooks.even", 1.25, Unit.TIMES,
    means="The load of the servers counts as even if the highest load is at most this many times the mean. "
    "This allows half of the excess from which on a server counts as hot (1.5 times the mean).",
)  # fmt: skip
OWN = "the trainers' own computing"
INPUT = "reading of examples"
CALLS = "the way to the parameter servers and back"
_CPU, _LINK = "CPU of ", "link of "
#: The cores of the machine that all replicas share.
MACHINE_STATION = f"{_CPU}{usages.MACHINE}"


@once
def network(case: Case) -> Queues | None:
    """Return the job as a network of queues; None: steps or the load of servers were not measured.

    Cores are a station if a parameter server uses them, or if several replicas share them. A trainer that
    computes on cores of its own makes no other replica wait.
    """
    steps_per_second = rates.total(trainer.steps_per_second for trainer in case.trainers)
    if not steps_per_second or all(usages.cpu(case, server) is None for server in case.servers):
        return None
    stations = {}
    for pool, users in usages.pools(case).items():
        used = rates.total(replica.cpu_cores for replica in users)
        if used is not None and (len(users) > 1 or users[0].replica.role is Role.PS):
            stations[f"{_CPU}{pool.name}"] = min(used / pool.cores, 1.0) / steps_per_second
    for host, use in usages.links(case).items():
        stations[link_station(host)] = min(use, 1.0) / steps_per_second
    active = len(case.active_trainers)
    cpu_share = mean(
        (trainer for trainer in case.trainers if _is_alone(case, trainer)),
        lambda trainer: usages.cpu(case, trainer),
    )
    step_seconds = active / steps_per_second
    return queues.fitted(
        active, stations, steps_per_second, least_own_seconds=min(1.0, cpu_share or 0.0) * step_seconds
    )


def _is_alone(case: Case, replica: ReplicaSnapshot) -> bool:
    pool = usages.pool(case, replica)
    return pool is not None and pool.name == str(replica.replica)


def link_station(host: str) -> str:
    """Return the name of the station of a host's link."""
    return f"{_LINK}{host}"


def subjects(case: Case, station: str) -> tuple[ReplicaId | str, ...]:
    """Return the replicas that use a station, and for a link also its host; the trainers for other bounds."""
    for pool, users in usages.pools(case).items():
        if station == f"{_CPU}{pool.name}":
            return tuple(each.replica for each in users)
    for host in usages.links(case):
        if station == link_station(host):
            return (*(each.replica for each in case.snapshot.replicas if each.row.host == host), host)
    return tuple(each.replica for each in case.trainers)


def gain(case: Case, change: Callable[[Queues], Queues]) -> Gain | None:
    """Return the gain from a change of the network.

    One bound of the gain takes into account that trainers wait for each other, the other one does not.
    """
    now = network(case)
    return None if now is None else between(now, change(now))


def between(now: Queues, then: Queues) -> Gain:
    """Return the gain from one network to another."""
    waiting = then.steps_per_second() / now.steps_per_second()
    free = then.most_steps_per_second() / now.most_steps_per_second()
    return Gain(low=min(waiting, free), high=max(waiting, free))


def limited(case: Case, times: float, *, but: Collection[str] = ()) -> Gain:
    """Return the gain of the job if trainers by themselves became faster.

    The gain is at most what the busiest station lets pass. The busier this station is, the smaller the gain:
    at least the part that remains if each step finds the station busy as often as now.

    Args:
        case: the measurements.
        times: how many times as fast trainers by themselves would be, at least 1.
        but: stations that would have room after the change.
    """
    now, throughput = network(case), rates.total(each.steps_per_second for each in case.trainers)
    if now is None or throughput is None:
        return Gain(low=1.0, high=times)
    longest = max((seconds for name, seconds in now.stations.items() if name not in but), default=0.0)
    use = min(1.0, longest * throughput)
    high = max(1.0, min(times, 1 / use)) if use > 0 else times
    return Gain(low=1 + (high - 1) * (1 - use), high=high)


def servers_even(case: Case) -> Callable[[Queues], Queues]:
    """Return the change after which all parameter servers have the same load, and all their links too."""
    groups = _servers(case)

    def changed(now: Queues) -> Queues:
        stations = dict(now.stations)
        for group in groups:
            known = [name for name in group if name in stations]
            stations |= dict.fromkeys(known, sum(stations[name] for name in known) / max(1, len(known)))
        return dataclasses.replace(now, stations=stations)

    return changed


def split(case: Case, server: ReplicaSnapshot, share: float) -> Callable[[Queues], Queues]:
    """Return the change that spreads a share of one parameter server's work evenly over all of them."""
    pool = usages.pool(case, server)
    busy = (f"{_CPU}{pool.name}" if pool else "", f"{_LINK}{server.row.host}")
    groups = _servers(case)

    def changed(now: Queues) -> Queues:
        stations = dict(now.stations)
        for hot, group in zip(busy, groups, strict=True):
            moved = now.stations.get(hot, 0.0) * share if hot in group else 0.0
            for name in group:
                if name in stations:
                    stations[name] += moved / len(group) - (moved if name == hot else 0.0)
        return dataclasses.replace(now, stations=stations)

    return changed


def _servers(case: Case) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the stations of parameter servers: cores that only they use, and the links of their hosts."""
    cpus = tuple(
        f"{_CPU}{pool.name}"
        for pool, users in usages.pools(case).items()
        if all(each.replica.role is Role.PS for each in users)
    )
    return cpus, tuple(dict.fromkeys(f"{_LINK}{each.row.host}" for each in case.servers))


def servers_times(now: Queues, factor: float) -> Queues:
    """Return the network with the cores of each parameter server multiplied by a factor."""
    return _with(now, lambda name, seconds: seconds / factor if name.startswith(_CPU) else seconds)


def servers_relieved(case: Case, share: float) -> Callable[[Queues], Queues]:
    """Return the change that takes a share of their work from the parameter servers.

    On cores that they share with other replicas, only the servers' part of the load decreases.
    """
    left = {}
    for pool, users in usages.pools(case).items():
        used = rates.total(each.cpu_cores for each in users)
        theirs = rates.total(each.cpu_cores for each in users if each.replica.role is Role.PS)
        if used and theirs:
            left[f"{_CPU}{pool.name}"] = 1 - share * theirs / used
    return lambda now: _with(now, lambda name, seconds: seconds * left.get(name, 1.0))


def links_times(now: Queues, factor: float) -> Queues:
    """Return the network with the bandwidth of each host multiplied by a factor."""
    return _with(now, lambda name, seconds: seconds / factor if name.startswith(_LINK) else seconds)


def more_servers(case: Case, factor: int) -> Callable[[Queues], Queues]:
    """Return the change to ``factor`` times as many parameter servers, each on a host of its own.

    More servers help only if the load is even: a variable that is too much for one server stays on one.
    """
    own, even = [name for group in _servers(case) for name in group], case.value(EVEN)

    def changed(now: Queues) -> Queues:
        loads = [seconds for name, seconds in now.stations.items() if name in own]
        cpus = [seconds for name, seconds in now.stations.items() if name in own and name.startswith(_CPU)]
        if not loads or max(cpus, default=0.0) * len(cpus) > even * sum(cpus):
            return now
        return _with(now, lambda name, seconds: seconds / (factor if name in own else 1))

    return changed


def trainers_times(now: Queues, factor: int) -> Queues:
    """Return the network with the number of trainers multiplied by a factor."""
    return with_trainers(now, now.trainers * factor)


def with_trainers(now: Queues, trainers: int) -> Queues:
    """Return the network with a given number of trainers."""
    return dataclasses.replace(now, trainers=trainers)


def own_times(now: Queues, factor: float) -> Queues:
    """Return the network with the time that its trainers spend by themselves multiplied by a factor."""
    return dataclasses.replace(now, own_seconds=now.own_seconds * factor)


def _with(now: Queues, seconds: Callable[[str, float], float]) -> Queues:
    return dataclasses.replace(now, stations={name: seconds(name, old) for name, old in now.stations.items()})
