"""One parameter server works while the others rest: the symptom, told alone where its reason is not known."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from paceline.diagnosing import headrooms, needs, outlooks, usages
from paceline.diagnosing.cases import Case, mean, once
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.topics import Topic
from paceline.model import imbalances, quantities
from paceline.model.causes import Evidence, Gain
from paceline.model.findings import Severity
from paceline.model.snapshots import ReplicaSnapshot

#: Who uses less of its cores rests, however much less the others do: its load is told only if it matters.
RESTING = 0.25


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Hot:
    """A hot parameter server.

    Attributes:
        server: which.
        others: the others.
        resource: ``CPU`` or ``network``: of which it has the most against the mean.
        max_over_mean: how much more.
        gain: what an even load would bring; None: that cannot be said.
        evidence: what was seen of it.
    """

    server: ReplicaSnapshot
    others: tuple[ReplicaSnapshot, ...]
    resource: str
    max_over_mean: float
    gain: Gain | None
    evidence: tuple[Evidence, ...]

    @property
    def matters(self) -> bool:
        """Whether an even load would make the job faster."""
        return headrooms.matters(self.gain)


@once
def find(case: Case) -> Hot | None:
    """Return the hot parameter server of a case; None: load is even, or not measured."""
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
    if ratio is None or ratio < imbalances.HOT_OVER_MEAN:
        return None
    server = max(measured, key=lambda each: load(each) or 0.0)
    others = tuple(each for each in measured if each is not server)
    return Hot(
        server=server,
        others=others,
        resource=resource,
        max_over_mean=ratio,
        gain=outlooks.gain(case, outlooks.servers_even(case)),
        evidence=(_evidence(case, resource, server, others, ratio),),
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
    severity=Severity.INFO,
    why="Every step of every worker needs all parameter servers, so the busiest one sets the pace of all, "
    "and more of them, or more workers, bring nothing. Most often one variable is the reason.",
    fix="Find out which variable it is: paceline trace shows what each one moves.",
)


@rule(TOPIC, needs=(needs.CPU,), explains=("waiting-for-ps",))
def hot_ps(case: Case) -> Iterator[Hit]:
    """A parameter server far above the mean of all."""
    hot = find(case)
    if hot is None or (not hot.matters and (usages.busy(case, hot.server) or 1.0) < RESTING):
        return
    severity = Severity.WARNING if hot.matters else Severity.INFO
    yield Hit(
        what=f"{hot.server.replica} has {hot.max_over_mean:.1f} times the mean load of the PS.",
        subjects=(str(hot.server.replica),),
        evidence=hot.evidence,
        next_steps=(f"paceline trace {case.recording.run.name}",),
        gain=hot.gain if hot.matters else None,
        severity=severity,
    )
