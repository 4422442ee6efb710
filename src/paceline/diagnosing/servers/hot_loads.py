"""Which parameter server has a load far above the mean, and what an even load would bring."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable

from paceline.diagnosing import headrooms, outlooks, usages
from paceline.diagnosing.cases import Case, mean, once
from paceline.diagnosing.progress import silences
from paceline.diagnosing.servers import saturations
from paceline.model import imbalances, quantities
from paceline.model.explanations.causes import Evidence, Gain
from paceline.model.explanations.findings import Severity
from paceline.model.measures.snapshots import ReplicaSnapshot


class ServerResource(enum.StrEnum):
    """A resource of a parameter server whose load is compared between servers."""

    CPU = "CPU"
    NETWORK = "network"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Hot:
    """A hot parameter server.

    Attributes:
        server: the hot server.
        others: the other servers.
        resource: the resource whose load is uneven.
        max_over_mean: the server's load over the mean load.
        gain: the gain from an even load; None: not known.
        matters: whether an even load makes the job faster; if the gain is not known, whether the server is
            full.
        is_full: whether the server is at its limit while trainers wait.
        is_unbounded: whether no limit of the server's cores is known.
        evidence: the evidence of the load.
    """

    server: ReplicaSnapshot
    others: tuple[ReplicaSnapshot, ...]
    resource: ServerResource
    max_over_mean: float
    gain: Gain | None
    matters: bool
    is_full: bool
    is_unbounded: bool
    evidence: tuple[Evidence, ...]

    @property
    def severity(self) -> Severity:
        """The severity of the hot server, and of the cause that makes it hot."""
        return Severity.WARNING if self.matters else Severity.INFO


@once
def find(case: Case) -> Hot | None:
    """Return the hot parameter server of a case; None: the load is even, or not measured."""
    found = [
        each
        for resource, load in ((ServerResource.CPU, _cores), (ServerResource.NETWORK, _network))
        if (each := _hottest(case, resource, load)) is not None
    ]
    return max(found, key=lambda each: (each.matters, each.max_over_mean), default=None)


def _cores(server: ReplicaSnapshot) -> float | None:
    return server.cpu_cores


def _network(server: ReplicaSnapshot) -> float | None:
    return server.network_bytes_per_second


def _hottest(
    case: Case, resource: ServerResource, load: Callable[[ReplicaSnapshot], float | None]
) -> Hot | None:
    loads = {each: value for each in case.servers if (value := load(each)) is not None}
    ratio = imbalances.max_over_mean(list(loads.values()))
    if ratio is None or ratio < case.value(outlooks.EVEN):
        return None
    server = max(loads, key=loads.__getitem__)
    is_full = silences.has_begun(case) and saturations.are_waiting(case) and _is_full(case, resource, server)
    if ratio < case.value(saturations.HOT) and not is_full:
        return None
    others = tuple(each for each in loads if each is not server)
    unbounded = resource is ServerResource.CPU and is_unbounded(case, server)
    # The network of queues cannot model a server that may use any core of the machine.
    gain = None if unbounded else outlooks.gain(case, outlooks.servers_even(case))
    return Hot(
        server=server,
        others=others,
        resource=resource,
        max_over_mean=ratio,
        gain=gain,
        matters=headrooms.matters(gain, case) or (gain is None and is_full),
        is_full=is_full,
        is_unbounded=unbounded,
        evidence=(_evidence(case, resource, server, others, ratio),),
    )


def _is_full(case: Case, resource: ServerResource, server: ReplicaSnapshot) -> bool:
    """Return whether a server is at a limit of its own, not one that all replicas of the machine share.

    A server without a limit counts as full if it keeps a single thread busy and uses as much as any trainer.
    """
    if resource is not ServerResource.CPU:
        return (usages.link(case, server) or 0.0) >= case.value(saturations.FULL_LINK)
    if is_unbounded(case, server):
        most = max((each.cpu_cores or 0.0 for each in case.trainers), default=0.0)
        return (server.cpu_cores or 0.0) >= max(case.value(saturations.SATURATED), most)
    own = usages.pool(case, server)
    return (
        own is not None
        and own.name != usages.MACHINE
        and (usages.cpu(case, server) or 0.0) >= case.value(saturations.SATURATED)
    )


def is_unbounded(case: Case, replica: ReplicaSnapshot) -> bool:
    """Return whether nothing known bounds the cores of a replica: it has no limit, and no full machine."""
    own = usages.pool(case, replica)
    return own is None or (
        own.name == usages.MACHINE and (usages.busy(case, replica) or 0.0) < case.value(saturations.SATURATED)
    )


def _evidence(
    case: Case,
    resource: ServerResource,
    server: ReplicaSnapshot,
    others: tuple[ReplicaSnapshot, ...],
    ratio: float,
) -> Evidence:
    if resource is ServerResource.CPU:
        limit = usages.cores(case, server)
        of = "" if limit is None else f" of {limit:.2f}"
        text = f"{server.replica} uses {server.cpu_cores or 0:.2f}{of} cores, the other PS "
        text += f"{mean(others, _cores) or 0:.2f} on average"
        field = "cpu_cores"
    else:
        text = f"{server.replica} moves {_rate(_network(server))}, the other PS "
        text += f"{_rate(mean(others, _network))} on average"
        field = "network_received_bytes"
    return Evidence(
        text=f"{text}: {ratio:.1f} times the mean", sources=(case.source(field, (server, *others)),)
    )


def _rate(bytes_per_second: float | None) -> str:
    return f"{quantities.format_bytes(round(bytes_per_second or 0.0))}/s"
