"""How much replicas use of their cores, links and memory. None: the use or the limit is not known."""

from __future__ import annotations

from typing import NamedTuple

from paceline.diagnosing.cases import Case, once
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.model.measures import rates
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.roles import Role

#: The pool of replicas that may use any core of the machine: without a limit, a host or cores of their own.
MACHINE = "this machine"
AT_LIMIT = Threshold(
    "usages.at-limit", 0.85, Unit.SHARE,
    means="A replica that uses this share of its cores computes all the time. A quota cuts the mean of "
    "bursts below 1.",
)  # fmt: skip
_BITS = 8


class Pool(NamedTuple):
    """Cores that a replica has to itself, or shares with the replicas that have a pool of the same name."""

    name: str
    cores: float


def pool(case: Case, replica: ReplicaSnapshot) -> Pool | None:
    """Return the cores that a replica may use; None: their number is not known.

    A replica with a limit or with cores of its own has its own pool, unless its emulated host has no more
    cores than that. Other replicas share the pool of their emulated host, or else that of the machine.
    """
    host, role = case.host(replica), case.role(replica)
    limits = (replica.cpu_limit_cores, float(len(replica.row.cores)), role.cpu_cores if role else None)
    own = min((each for each in limits if each), default=None)
    if host is not None and host.cpu_cores and (own is None or own >= host.cpu_cores):
        return Pool(f"host {host.name}", host.cpu_cores)
    if own is not None:
        return Pool(str(replica.replica), own)
    return Pool(MACHINE, case.machine_cores) if case.machine_cores else None


def cores(case: Case, replica: ReplicaSnapshot) -> float | None:
    """Return how many cores a replica may use."""
    found = pool(case, replica)
    return found.cores if found else None


def cpu(case: Case, replica: ReplicaSnapshot) -> float | None:
    """Return the share of its allowed cores that a replica itself uses; other replicas may use the rest."""
    limit = cores(case, replica)
    return None if limit is None or replica.cpu_cores is None else replica.cpu_cores / limit


def busy(case: Case, replica: ReplicaSnapshot) -> float | None:
    """Return the share of a replica's allowed cores that all replicas of the job on these cores use."""
    own = pool(case, replica)
    if own is None or replica.cpu_cores is None:
        return None
    used = rates.total(each.cpu_cores for each in pools(case)[own]) or 0.0
    return min(1.0, used / own.cores)


def machine_cores(case: Case) -> tuple[float, float] | None:
    """Return how many cores of their machine all replicas use, and how many it has; None: not known."""
    used = rates.total(each.cpu_cores for each in case.snapshot.replicas)
    return None if used is None or case.machine_cores is None else (used, case.machine_cores)


@once
def pools(case: Case) -> dict[Pool, tuple[ReplicaSnapshot, ...]]:
    """Return all pools with the replicas that use them, without replicas whose pool is not known."""
    found: dict[Pool, tuple[ReplicaSnapshot, ...]] = {}
    for each in case.snapshot.replicas:
        own = pool(case, each)
        if own is not None:
            found[own] = (*found.get(own, ()), each)
    return found


def neighbours(case: Case, replica: ReplicaSnapshot) -> float | None:
    """Return how many cores programs outside this job use on the CPUs that a replica may use.

    The use by the job's other replicas on the same machine is subtracted, except for those with other cores
    of their own. All replicas of a local job are on one machine, whatever hosts are emulated. None: it was
    not measured, or not for another replica on the machine, whose use would count as that of other programs.
    """
    if replica.neighbours_cpu_cores is None:
        return None
    local = case.recording.run.engine == "local"
    fellows = [
        each
        for each in case.snapshot.replicas
        if each.replica != replica.replica
        and (local or each.row.host == replica.row.host)
        and (not each.row.cores or bool(set(each.row.cores) & set(replica.row.cores)))
    ]
    ended = case.recording.run.phase.is_final
    if any(each.cpu_cores is None and (ended or each.row.phase.is_live) for each in fellows):
        return None
    return max(0.0, replica.neighbours_cpu_cores - (rates.total(each.cpu_cores for each in fellows) or 0.0))


@once
def links(case: Case) -> dict[str, float]:
    """Return the share of its bandwidth that each emulated host uses in its busier direction.

    Only traffic that leaves the host uses its link. Trainers talk to all parameter servers alike, and servers
    to all trainers. So the share of a replica's traffic that leaves the host equals the share of its peers
    that are on other hosts.
    """
    found = {}
    for host in case.spec.hosts:
        here = [each for each in case.snapshot.replicas if each.row.host == host.name]
        received = rates.total(_out(case, each, each.received_bytes_per_second) for each in here)
        sent = rates.total(_out(case, each, each.sent_bytes_per_second) for each in here)
        if host.bandwidth_bits_per_second and received is not None and sent is not None:
            found[host.name] = max(received, sent) * _BITS / host.bandwidth_bits_per_second
    return found


def _out(case: Case, replica: ReplicaSnapshot, moved: float | None) -> float | None:
    peers = case.trainers if replica.replica.role is Role.PS else case.servers
    elsewhere = sum(peer.row.host != replica.row.host for peer in peers)
    return None if moved is None else moved * (elsewhere / len(peers) if peers else 1.0)


def link(case: Case, replica: ReplicaSnapshot) -> float | None:
    """Return the share of its bandwidth that the host of a replica uses."""
    return None if replica.row.host is None else links(case).get(replica.row.host)


def memory(replica: ReplicaSnapshot) -> float | None:
    """Return the share of its memory limit that a replica uses."""
    if replica.memory_bytes is None or not replica.memory_limit_bytes:
        return None
    return replica.memory_bytes / replica.memory_limit_bytes
