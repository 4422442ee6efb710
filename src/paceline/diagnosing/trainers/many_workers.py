"""There are far more workers than the parameter servers can serve: half of them bring nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator

from paceline.diagnosing import headrooms, needs
from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.servers import cpu_bound_servers, few_servers, saturations
from paceline.diagnosing.servers.saturations import Saturation
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.causes import Evidence, FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.roles import Role

LEAST_PER_SERVER = Threshold(
    "many-workers.least-per-server", 5.0, Unit.TIMES,
    means="Trainers can be too many if there are at least this many for each parameter server. With fewer "
    "trainers for each server, it is the servers that are few.",
)  # fmt: skip
OVER_KNEE = Threshold(
    "many-workers.over-knee", 2.0, Unit.TIMES,
    means="Trainers are too many if there are at least this many times the trainers that the parameter "
    "servers can serve. At twice as many, half of them wait in vain.",
    source="fit runs: 1.4 and 2.6",
)  # fmt: skip
ENOUGH = Threshold(
    "many-workers.enough", 1.5, Unit.TIMES,
    means="The rule advises this many times the trainers that the parameter servers can serve: they keep the "
    "servers at their limit. Waits between trainers cost something. The way to the servers and back costs "
    "something, too, and is not measured.",
    source="fit runs: 0.99 of its limit at 1.4",
)  # fmt: skip

TOPIC = Topic(
    code="WRK301",
    name="too-many-workers",
    title="More workers than the parameter servers can serve",
    severity=Severity.WARNING,
    why="All servers are at their limit, evenly, so together they serve so many steps a second and no more, "
    "however many workers ask for them. Each further worker only makes all of them wait longer, and makes "
    "gradients older.",
    fix="Have fewer workers, which gives the same speed for less; or more servers, which makes use of all.",
    risk="None: with fewer workers gradients are of younger parameters.",
)


@rule(TOPIC, needs=(needs.CPU, needs.STEPS), explains=("too-few-ps", "ps-network-bound", "waiting-for-ps"))
def too_many_workers(case: Case) -> Iterator[Hit]:
    """Trainers far above the number that evenly loaded servers, which are not small, can serve."""
    saturation = _bound(case)
    trainers = len(case.active_trainers)
    if saturation is None or saturation.busy is None:
        return
    if trainers < case.value(LEAST_PER_SERVER) * len(case.servers):
        return
    knee = _knee(trainers, saturation.busy, saturation.use)
    chiefs = len(case.of_role(Role.CHIEF))
    enough = max(1, math.ceil(case.value(ENOUGH) * knee) - chiefs)
    if trainers < case.value(OVER_KNEE) * knee or enough + chiefs >= trainers:
        return
    alone = trainers * saturation.busy + saturation.use
    yield Hit(
        what=f"{trainers} trainers are more than {len(case.servers)} PS can serve: {enough + chiefs} would "
        "train as fast.",
        subjects=saturation.names,
        evidence=(
            *(
                saturations.seen(case, saturation)
                if saturation.cores
                else saturations.waiting(case, saturation)
            ),
            Evidence(
                text=f"a step takes {trainers / alone:.1f} times as long as that of a trainer alone would; "
                f"from {knee:.1f} trainers on the PS bound the speed",
                sources=(case.source("steps", case.trainers, steps=True),),
            ),
        ),
        changes=(FieldChange(path=("spec", "roles", str(Role.WORKER), "replicas"), value=enough),),
        next_steps=tuple(_more_servers(case, saturation)),
    )


def _bound(case: Case) -> Saturation | None:
    cores = saturations.of_cores(case)
    if cores is None:
        links = saturations.of_links(case)
        return links if links and links.use >= case.value(saturations.SATURATED) else None
    return None if cpu_bound_servers.is_small(case, cores) else cores


def _knee(trainers: int, busy: float, use: float) -> float:
    """Return the number of trainers from which on servers limit the throughput.

    At this number, the step of a trainer alone (its own part and its part at a server) takes as long as the
    parts of all trainers at that server together (Denning and Buzen 1978). A trainer calls all servers at the
    same time.
    """
    return trainers * busy / use + 1


def _more_servers(case: Case, found: Saturation) -> Iterator[str]:
    more = few_servers.count(case, found)
    gain = saturations.gain(case, found, more / len(case.servers))
    if gain is not None and headrooms.matters(gain, case):
        yield f"or spec.roles.ps.replicas: {more}, up to {gain.high:.1f} times as many examples a second"
