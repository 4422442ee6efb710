"""Synchronous steps that wait for one slow worker."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import NamedTuple

from paceline.diagnosing import needs, usages
from paceline.diagnosing.cases import Case
from paceline.diagnosing.inputs import readings
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.scripts import asked
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.diagnosing.trainers import paces
from paceline.model.explanations.causes import Evidence
from paceline.model.explanations.findings import Severity
from paceline.model.measures.script_facts import Name
from paceline.model.measures.snapshots import ReplicaSnapshot

WORKS = Threshold(
    "synchronous-waits.works", 0.7, Unit.SHARE,
    means="A worker that computes or makes batches for at least this share of its time hardly waits for "
    "others.",
)  # fmt: skip
RESTS = Threshold(
    "synchronous-waits.rests", 0.6, Unit.SHARE,
    means="The other workers wait for the busiest worker if they compute or make batches for at most this "
    "share of the time that the busiest worker does.",
)  # fmt: skip

TOPIC = Topic(
    code="SCR108",
    name="sync-straggler",
    title="Synchronous steps go at the pace of the slowest worker",
    severity=Severity.WARNING,
    why="SyncReplicasOptimizer changes the variables when it has as many gradients of a step as it is set "
    "to aggregate. Where that is one of each worker, all wait for the slowest one, or do its share, and a "
    "gradient that comes too late is thrown away.",
    fix="Mend the slow worker, or aggregate fewer gradients than there are workers, so that the last one is "
    "not needed.",
    risk="With fewer gradients in a step some examples count for nothing.",
)


class _Slowest(NamedTuple):
    """A worker that the others wait for, with the evidence and the measured field behind it."""

    trainer: ReplicaSnapshot
    text: str
    field: str


@rule(TOPIC, needs=(needs.STEPS,), explains=("waiting-for-ps",))
def sync_straggler(case: Case) -> Iterator[Hit]:
    """The trainer that is slower or busier than the others, if a step needs the gradients of all."""
    needed = asked.of_trainers(case, Name.REPLICAS_TO_AGGREGATE)
    active = case.active_trainers
    if not needed or len(active) < 2 or float(needed[0].value) < len(active):
        return
    slowest = _by_pace(case) or _by_load(case)
    if slowest is None:
        return
    name, total = str(slowest.trainer.replica), asked.amount(case, needed[0].replica, Name.TOTAL_REPLICAS)
    yield Hit(
        what=f"A synchronous step needs {float(needed[0].value):g} gradients of {total or 0:g} workers, and "
        f"{name} is the slowest.",
        subjects=(name,),
        evidence=(
            asked.evidence(Name.REPLICAS_TO_AGGREGATE, needed),
            Evidence(
                text=slowest.text,
                sources=(case.source(slowest.field, active, steps=slowest.field == "steps"),),
            ),
        ),
        next_steps=(
            f"in your script: SyncReplicasOptimizer(replicas_to_aggregate={max(1, len(active) - 1)}, "
            f"total_num_replicas={len(active)})",
            f"see why {name} is slow: its cores, its host, its input",
        ),
    )


def _by_pace(case: Case) -> _Slowest | None:
    found = paces.stragglers(case)
    if not found:
        return None
    slowest = min(found, key=lambda each: each.share)
    return _Slowest(slowest.trainer, paces.evidence(case, found).text, "steps")


def _by_load(case: Case) -> _Slowest | None:
    """Return the trainer that is busy while the others, at the same pace, rest; None: there is none."""
    loads = {
        each: min(1.0, used + readings.waits(each))
        for each in case.active_trainers
        if (used := usages.cpu(case, each)) is not None
    }
    if len(loads) < 2:
        return None
    slowest = max(loads, key=lambda each: loads[each])
    usual = statistics.median(load for each, load in loads.items() if each is not slowest)
    if loads[slowest] < case.value(WORKS) or usual > case.value(RESTS) * loads[slowest]:
        return None
    return _Slowest(
        slowest,
        f"{slowest.replica} computes or makes batches for {loads[slowest]:.0%} of its time, the others for "
        f"{usual:.0%}",
        "cpu_cores",
    )
