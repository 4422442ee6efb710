"""One parameter server works while the others rest: a symptom, reported alone if its reason is not known."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from paceline.diagnosing import headrooms, needs, outlooks, usages
from paceline.diagnosing.cases import Case, mean, once
from paceline.diagnosing.progress import silences
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.servers import saturations
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model import imbalances, quantities
from paceline.model.explanations.causes import Evidence, Gain
from paceline.model.explanations.findings import Severity
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.words import listed

RESTING = Threshold(
    "hot-servers.resting", 0.25, Unit.SHARE,
    means="A server that uses a smaller share of its cores than this rests, however much less the other "
    "servers do. Its load is told only if it matters.",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Hot:
    """A hot parameter server.

    Attributes:
        server: the hot server.
        others: the other servers.
        resource: ``CPU`` or ``network``: the resource whose load is uneven.
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
    resource: str
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
        for resource, load in (("CPU", _cores), ("network", _network))
        if (each := _hottest(case, resource, load)) is not None
    ]
    return max(found, key=lambda each: (each.matters, each.max_over_mean), default=None)


def _cores(server: ReplicaSnapshot) -> float | None:
    return server.cpu_cores


def _network(server: ReplicaSnapshot) -> float | None:
    return server.network_bytes_per_second


def _hottest(case: Case, resource: str, load: Callable[[ReplicaSnapshot], float | None]) -> Hot | None:
    measured = [each for each in case.servers if load(each) is not None]
    ratio = imbalances.max_over_mean([load(each) or 0.0 for each in measured])
    if ratio is None or ratio < case.value(outlooks.EVEN):
        return None
    server = max(measured, key=lambda each: load(each) or 0.0)
    is_full = silences.has_begun(case) and saturations.are_waiting(case) and _is_full(case, resource, server)
    if ratio < imbalances.HOT_OVER_MEAN and not is_full:
        return None
    others = tuple(each for each in measured if each is not server)
    unbounded = resource == "CPU" and is_unbounded(case, server)
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


def _is_full(case: Case, resource: str, server: ReplicaSnapshot) -> bool:
    """Return whether a server is at a limit of its own, not one that all replicas of the machine share.

    A server without a limit counts as full if it keeps a single thread busy and uses as much as any trainer.
    """
    if resource != "CPU":
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
    case: Case, resource: str, server: ReplicaSnapshot, others: tuple[ReplicaSnapshot, ...], ratio: float
) -> Evidence:
    if resource == "CPU":
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


TOPIC = Topic(
    code="PS004",
    name="hot-ps",
    title="One parameter server works while the others rest",
    severity=Severity.WARNING,
    why="Every step of every worker needs all parameter servers, so the busiest one sets the pace of all, "
    "and more of them, or more workers, bring nothing. Most often one variable is the reason.",
    fix="Find out which variable it is: paceline trace shows what each one moves.",
)


@rule(TOPIC, needs=(needs.CPU,), explains=("waiting-for-ps",))
def hot_ps(case: Case) -> Iterator[Hit]:
    """A parameter server with a load far above the mean."""
    hot = find(case)
    if hot is None:
        return
    use = usages.busy(case, hot.server)
    if not hot.matters and use is not None and use < case.value(RESTING):
        return
    yield Hit(
        what=_what(case, hot),
        subjects=(str(hot.server.replica),),
        evidence=hot.evidence,
        next_steps=(f"paceline trace {case.recording.run.name} says which variables these are",),
        gain=hot.gain if headrooms.matters(hot.gain, case) else None,
        severity=hot.severity,
    )


def _rests(case: Case, server: ReplicaSnapshot, *, beside: ReplicaSnapshot) -> bool:
    """Return whether a server rests, relative to its limit, or without a limit relative to the hot server."""
    if is_unbounded(case, server):
        return (server.cpu_cores or 0.0) < case.value(RESTING) * (beside.cpu_cores or 0.0)
    return (usages.cpu(case, server) or 0.0) < case.value(RESTING)


def _what(case: Case, hot: Hot) -> str:
    name = str(hot.server.replica)
    resting = [each for each in hot.others if _rests(case, each, beside=hot.server)]
    if hot.resource == "CPU" and hot.is_full and resting:
        rest = listed(each.replica for each in resting)
        does = f"uses {hot.server.cpu_cores or 0.0:.2f} cores" if hot.is_unbounded else "is at its limit"
        return (
            f"{name} {does} while {rest} {'rests' if len(resting) == 1 else 'rest'}: the variables "
            f"on {name} are what to look at."
        )
    return f"{name} has {hot.max_over_mean:.1f} times the mean load of the PS."
