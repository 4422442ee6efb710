"""Parameter servers that are all at the limit of their cores, or all at the limit of their links."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping

from paceline.diagnosing import headrooms, outlooks, usages
from paceline.diagnosing.cases import Case
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.usages import Pool
from paceline.model import imbalances
from paceline.model.explanations.causes import Evidence, Gain
from paceline.model.measures import rates
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.quantities import quantity_cores
from paceline.model.roles import Role

SATURATED = Threshold(
    "saturations.saturated", 0.8, Unit.SHARE,
    means="Servers that use this share of their cores or links on average are at their limit. Nothing that "
    "many trainers visit at random times is used much further before they wait.",
    source="DLRover calls a parameter server hot from 0.8 on",
)  # fmt: skip
FULL_LINK = Threshold(
    "saturations.full-link", 0.6, Unit.SHARE,
    means="Links of servers that are all used to this share may be what binds: a few trainers that pull and "
    "push in turn cannot use them further (see links.full). Then the network of queues says whether more "
    "bandwidth would matter.",
    source="fit runs: up to 0.56 where it would not, from 0.65 where links are narrow on purpose",
)  # fmt: skip
HOT = Threshold(
    "saturations.hot", imbalances.HOT_OVER_MEAN, Unit.TIMES,
    means="A server is hot if its load is at least this many times the mean of all servers, or if it is full "
    "and its load is not even. Tables mark replicas from the default on.",
    above=1.0,
)  # fmt: skip
BUSY = Threshold(
    "saturations.busy", 0.8, Unit.SHARE,
    means="Trainers that compute or wait for input for a larger share of a step than this wait too little "
    "for servers to be what binds.",
)  # fmt: skip
TARGET = Threshold(
    "saturations.target", 0.7, Unit.SHARE,
    means="A plan makes servers be used to this share. At 0.7 a visit takes about three times as long as at "
    "an idle server, at 0.85 seven times.",
    source="1 / (1 - use), the queue with random arrivals",
)  # fmt: skip
_AS_FULL = Threshold(
    "saturations.as-full", 0.9, Unit.SHARE,
    means="The links of servers are not what binds if the link of another host is used to more than this "
    "share of their use.",
)  # fmt: skip
_UNKNOWN_TIMES = Threshold(
    "saturations.unknown-times", 2.0, Unit.TIMES,
    means="Trainers are planned to be this many times as fast if it is not known how long they compute by "
    "themselves.",
    above=1.0,
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """Servers at their limit.

    Attributes:
        servers: the servers that were measured.
        use: the mean share of their cores or links that they use.
        cores: the cores that each server may use; 0 for links.
        own: whether each server has cores of its own, so that the job file can change their number.
        times: the highest possible speedup of trainers if servers never made them wait.
        busy: the share of their time in which trainers compute or wait for input; None: not measured.
    """

    servers: tuple[ReplicaSnapshot, ...]
    use: float
    cores: float = 0.0
    own: bool = False
    times: float
    busy: float | None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the servers."""
        return tuple(str(each.replica) for each in self.servers)


def planned_factor(case: Case, found: Saturation) -> float:
    """Return by what their resource has to grow to be used to `TARGET` by trainers at full speed."""
    return max(1.0, found.use * found.times / case.value(TARGET))


def are_waiting(case: Case) -> bool:
    """Return whether trainers wait so long that servers may be the reason, or it is not known how long."""
    busy = headrooms.busy_share(case)
    return busy is None or busy <= case.value(BUSY)


def of_cores(case: Case) -> Saturation | None:
    """Return the servers if all are at the limit of their cores; None: they are not, or this is not known."""
    measured = {
        user: pool
        for user in case.servers
        if user.cpu_cores is not None and (pool := usages.pool(case, user)) and pool.name != usages.MACHINE
    }
    uses = _uses(measured)
    if not measured or not _is_even(case, [server.cpu_cores or 0.0 for server in measured]):
        return None
    use = sum(uses[pool] for pool in measured.values()) / len(measured)
    # A server that is not measured may be idle.
    if use * len(measured) / max(len(measured), asked_servers(case)) < case.value(SATURATED):
        return None
    sharing = collections.Counter(measured.values())
    return Saturation(
        servers=tuple(measured),
        use=min(use, 1.0),
        cores=sum(pool.cores / sharing[pool] for pool in measured.values()) / len(measured),
        own=all(pool.name == str(server.replica) for server, pool in measured.items()),
        times=_times(case),
        busy=headrooms.busy_share(case),
    )


def _uses(pools: Mapping[ReplicaSnapshot, Pool]) -> dict[Pool, float]:
    """Return the share of each pool that servers use; the use by other replicas does not count."""
    used: dict[Pool, float] = collections.defaultdict(float)
    for server, pool in pools.items():
        used[pool] += (server.cpu_cores or 0.0) / pool.cores
    return used


def of_links(case: Case) -> Saturation | None:
    """Return the servers if each has a host's link to itself, and the links are full but not the cores."""
    links = usages.links(case)
    uses = {each: links[each.row.host] for each in case.servers if each.row.host in links}
    hosts = [each.row.host for each in (*case.servers, *case.trainers)]
    if not uses or len(uses) < len(case.servers) or any(hosts.count(each.row.host) > 1 for each in uses):
        return None
    others = [use for host, use in links.items() if host not in {each.row.host for each in uses}]
    use = sum(uses.values()) / len(uses)
    full = _is_even(case, list(uses.values())) and min(uses.values()) >= case.value(FULL_LINK)
    if not full or max(others, default=0.0) > case.value(_AS_FULL) * use:
        return None
    if of_cores(case) is not None:
        return None
    twice = outlooks.gain(case, lambda now: outlooks.links_times(now, 2))
    if use < case.value(SATURATED) and not headrooms.matters(twice, case):
        return None
    return Saturation(
        servers=tuple(uses),
        use=min(use, 1.0),
        times=_times(case),
        busy=headrooms.busy_share(case),
    )


def _is_even(case: Case, loads: list[float]) -> bool:
    return (imbalances.max_over_mean(loads) or 1.0) < case.value(HOT)


def _times(case: Case) -> float:
    """Return the possible speedup of trainers, from what is known about their own part of a step."""
    known = headrooms.most_times(case)
    free = outlooks.gain(case, lambda now: dataclasses.replace(now, stations={}))
    bounds = [each for each in (known, free.high if free else None) if each is not None]
    unknown = case.value(_UNKNOWN_TIMES)
    return max(1.0, min(bounds, default=unknown)) if known is not None else unknown


def gain(case: Case, saturation: Saturation, factor: float) -> Gain | None:
    """Return the gain from multiplying the servers' scarce resource by a factor.

    The lower bound is that of the network of queues, which treats the unused remainder as idleness. The upper
    bound assumes that trainers then use the servers as much as now.
    """
    if saturation.cores:
        found = outlooks.gain(case, lambda now: outlooks.servers_times(now, factor))
    else:
        found = outlooks.gain(case, lambda now: outlooks.links_times(now, factor))
    if found is None:
        return None
    return headrooms.within(case, Gain(low=found.low, high=max(found.high, factor)))


def seen(case: Case, saturation: Saturation) -> tuple[Evidence, ...]:
    """Return the evidence of how much servers are used, and that trainers wait."""
    used = rates.total(each.cpu_cores for each in saturation.servers) or 0.0
    text = f"PS use {used / len(saturation.servers):.2f} of {saturation.cores:.2f} cores each"
    held = [each.throttled_share for each in saturation.servers if each.throttled_share]
    if held:
        text += f", and are throttled for {sum(held) / len(held):.2f} s a second"
    servers = Evidence(text=text, sources=(case.source("cpu_cores", saturation.servers),))
    return (servers, *waiting(case, saturation))


def waiting(case: Case, saturation: Saturation) -> tuple[Evidence, ...]:
    """Return the evidence that trainers wait; empty: it was not measured."""
    if saturation.busy is None:
        return ()
    text = f"trainers compute or wait for input {saturation.busy:.0%} of their time"
    return (Evidence(text=text, sources=(case.source("cpu_cores", case.trainers),)),)


def trainer_cores(case: Case) -> float | None:
    """Return the mean number of a trainer's cores: its own, or its part of its host's; None: not known."""
    pools = [pool for each in case.trainers if (pool := usages.pool(case, each))]
    sharing = collections.Counter(pools)
    found = [pool.cores / sharing[pool] for pool in pools if pool.name != usages.MACHINE]
    return sum(found) / len(found) if found else None


def words(cores: float) -> str:
    """Return a number of cores in words: ``1 core``, ``0.25 cores``."""
    return "1 core" if quantity_cores(cores) == "1" else f"{cores:.4g} cores"


def asked_servers(case: Case) -> int:
    """Return how many parameter servers the job file asks for."""
    role = case.spec.role(Role.PS)
    return role.replicas if role else len(case.servers)
