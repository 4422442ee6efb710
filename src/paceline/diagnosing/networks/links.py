"""Full links of hosts, the replicas on them, and what relieves them; replicas that lose packets."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from paceline.diagnosing import outlooks, trainings, usages
from paceline.diagnosing.cases import Case, once
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.model.explanations.causes import Evidence, FieldChange
from paceline.model.measures import rates
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.roles import Role
from paceline.model.words import listed
from paceline.modelling.queues import Queues

FULL = Threshold(
    "links.full", 0.5, Unit.SHARE,
    means="A link that is used this much in a direction binds: a trainer pulls and pushes in turn, so one "
    "trainer that does nothing else uses half of each direction, and n trainers n / (n + 1).",
    source="a closed network of two stations; measured: 0.64 where a worker has a third of the bandwidth "
    "it would use, up to 0.46 in healthy jobs",
)  # fmt: skip
ALIKE = Threshold(
    "links.alike", 0.9, Unit.SHARE,
    means="Links bind together with the fullest one if they are used at least this share of it.",
)  # fmt: skip
LOSSY = Threshold(
    "links.lossy", 0.005, Unit.SHARE,
    means="A replica that sends this share of its segments again loses packets: it is fifty times what data "
    "centres lose.",
    source="data centres lose 1 packet in 10,000 to 100,000 (Pingmesh, SIGCOMM 2015), and TCP's rate falls "
    "with the root of the loss (Mathis 1997); fit runs: up to 0.0043 where nothing is dropped on purpose, "
    "0.0525 where 5 % are",
)  # fmt: skip
_BITS, _MEGA = 8, 1e6
_PRECISION = ("spec", "training", "transfers", "precision")
#: The risk of the change that `halved` yields.
RISK = "Gradients and pulled values have 8 bits of precision then (the PS keep float32): look at the AUC."


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The link of an emulated host.

    Attributes:
        host: the name of the host.
        use: the share of the bandwidth that is used in the busier direction.
        bits_per_second: the bandwidth.
        replicas: the replicas on the host.
    """

    host: str
    use: float
    bits_per_second: int
    replicas: tuple[ReplicaSnapshot, ...]

    @property
    def station(self) -> str:
        """The link's name in the network of queues."""
        return outlooks.link_station(self.host)

    @property
    def servers(self) -> tuple[ReplicaSnapshot, ...]:
        """The parameter servers on the host."""
        return tuple(each for each in self.replicas if each.replica.role is Role.PS)

    @property
    def trainers(self) -> tuple[ReplicaSnapshot, ...]:
        """The workers and the chief on the host."""
        return tuple(each for each in self.replicas if each.replica.role.trains)

    @property
    def names(self) -> str:
        """The replicas on the host, as a text."""
        return listed(sorted(each.replica for each in self.replicas))


def full(case: Case) -> tuple[Link, ...]:
    """Return the fullest link, if it is full, and the links that are about as full; the fullest first.

    Traffic that passes one link also passes another one. The fuller link is the bottleneck; the use of the
    other link follows from it.
    """
    uses = usages.links(case)
    most = max(uses.values(), default=0.0)
    found = []
    for host in case.spec.hosts:
        use = uses.get(host.name, 0.0)
        if use >= max(case.value(FULL), case.value(ALIKE) * most) and host.bandwidth_bits_per_second:
            here = tuple(each for each in case.snapshot.replicas if each.row.host == host.name)
            bandwidth = host.bandwidth_bits_per_second
            found.append(Link(host=host.name, use=use, bits_per_second=bandwidth, replicas=here))
    return tuple(sorted(found, key=lambda each: -each.use))


def is_full(case: Case, replica: ReplicaSnapshot) -> bool:
    """Return whether the link of a replica's host is known to be full."""
    return (usages.link(case, replica) or 0.0) >= case.value(FULL)


@once
def losing(case: Case) -> tuple[ReplicaSnapshot, ...]:
    """Return the replicas that are known to retransmit many segments."""
    lossy = case.value(LOSSY)
    return tuple(each for each in case.snapshot.replicas if (each.retransmitted_share or 0.0) >= lossy)


def evidence(case: Case, link: Link) -> Evidence:
    """Return the evidence of how full a link is."""
    used, all_of_it = (each / _MEGA for each in (link.use * link.bits_per_second, link.bits_per_second))
    fields = ("network_received_bytes", "network_sent_bytes")
    return Evidence(
        text=f"{link.names} on {link.host} move {used:,.0f} of its {all_of_it:,.0f} Mbit/s in the busier "
        "direction",
        sources=tuple(case.source(field, link.replicas) for field in fields),
    )


def others(case: Case, used: float) -> Evidence | None:
    """Return evidence that the parameter servers' cores are used less than a link; None: they are not.

    Args:
        case: the measurements.
        used: the use of the link.
    """
    known = [use for each in case.servers if (use := usages.busy(case, each)) is not None]
    if not known or max(known) >= used:
        return None
    return Evidence(
        text=f"the cores of the PS are used to {max(known):.0%} at most",
        sources=(case.source("cpu_cores", case.servers),),
    )


def apart(now: Queues, found: Sequence[Link]) -> Queues:
    """Return the network in which each replica on these hosts has a host of the same bandwidth for itself.

    Their traffic then uses several links in parallel: a step takes as long as on the busiest of these links.
    """
    stations, throughput = dict(now.stations), now.steps_per_second()
    for link in found:
        known = [moved for each in link.replicas if (moved := _busier(each)) is not None]
        if link.station in stations and known:
            seconds = max(known) * _BITS / link.bits_per_second / throughput
            stations[link.station] = min(seconds, stations[link.station])
    return dataclasses.replace(now, stations=stations)


def wider(now: Queues, found: Sequence[Link], factor: float) -> Queues:
    """Return the network in which the bandwidth of these hosts is multiplied by a factor."""
    names = {each.station for each in found}
    stations = {name: each / factor if name in names else each for name, each in now.stations.items()}
    return dataclasses.replace(now, stations=stations)


def _busier(replica: ReplicaSnapshot) -> float | None:
    both = (replica.received_bytes_per_second, replica.sent_bytes_per_second)
    return None if rates.total(both) is None else max(each or 0.0 for each in both)


def halved(case: Case) -> Iterator[FieldChange]:
    """Yield the change that halves the bytes of values, if the training library sends them as float32."""
    if trainings.by_library(case) and _precision(case) == "float32":
        yield FieldChange(path=_PRECISION, value="bfloat16")


def fewer_bytes(case: Case) -> str:
    """Return the manual step that reduces the bytes sent."""
    if not trainings.by_library(case):
        return "send less: larger batches with fewer steps, sparse gradients, values of 16 bits"
    return "spec.training.steps_per_exchange: steps that share their messages pull parameters once"


def _precision(case: Case) -> str:
    return str(trainings.section(case, "transfers").get("precision") or "float32")
