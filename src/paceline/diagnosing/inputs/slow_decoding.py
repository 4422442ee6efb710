"""Trainers wait for the decoding of their examples: their cores are busy with it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from paceline.diagnosing import needs, usages
from paceline.diagnosing.cases import Case
from paceline.diagnosing.inputs import readings
from paceline.diagnosing.inputs.readings import Reading
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.topics import Topic
from paceline.model.causes import Change
from paceline.model.findings import Severity
from paceline.model.roles import Role

#: More cores than so many times those of now are not asked for: cheaper decoding is the better way then.
MOST_TIMES = 4.0

TOPIC = Topic(
    code="INP002",
    name="slow-decoding",
    title="Trainers wait for the decoding of their examples",
    severity=Severity.WARNING,
    why="Examples are decoded (parsed, looked up in vocabularies, hashed) by the trainers' own cores. If "
    "these are busy and the trainers wait for batches all the same, it is decoding that keeps them busy: it "
    "takes longer than the step that it is for.",
    fix="Decode less in each step (Parquet with numbers, ids made beforehand), in more threads where cores "
    "rest, or give trainers more cores.",
    risk="More cores are taken from the machine or the cluster.",
)


@rule(TOPIC, needs=(needs.CPU, needs.STEPS, needs.INPUT_WAIT))
def slow_decoding(case: Case) -> Iterator[Hit]:
    """Most trainers wait for input, and their cores are busy meanwhile."""
    reading = readings.find(case, readings.DECODING)
    if reading is None:
        return
    decoding = readings.most(case, reading, decode=True)
    if not decoding:
        return
    yield readings.hit(
        case,
        reading,
        decoding,
        "are busy",
        what=f"Trainers wait for decoding: {reading.share:.0%} of their time they have no examples, though "
        "their cores are busy.",
        changes=tuple(_changes(case, reading)),
        next_steps=(
            "do beforehand what is done for each example: Parquet with ids as numbers, not CSV or texts",
            "decode whole columns with NumPy or TensorFlow, not row by row in Python",
        ),
    )


def _changes(case: Case, reading: Reading) -> Iterator[Change]:
    """Yield so many cores that nobody waits: an example takes as much CPU time as now, in less time.

    Rounded up to tenths. Nothing where cores are not those of the role: then they are the host's.
    """
    times = min(MOST_TIMES, 1 / max(1 - reading.share, 1 / MOST_TIMES))
    for role in (Role.CHIEF, Role.WORKER):
        spec = case.spec.role(role)
        if spec is not None and spec.cpu_cores and _is_own(case, reading, role):
            value = math.ceil(spec.cpu_cores * times * 10 - 1e-6) / 10
            yield Change(path=("spec", "roles", str(role), "cpu"), value=value)


def _is_own(case: Case, reading: Reading, role: Role) -> bool:
    own = [each for each in reading.trainers if each.replica.role is role]
    pools = (usages.pool(case, each) for each in own)
    return bool(own) and all(
        pool is not None and pool.name == str(each.replica) for pool, each in zip(pools, own, strict=True)
    )
