"""A straggler whose examples arrive slowly."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from paceline.diagnosing import headrooms, needs
from paceline.diagnosing.cases import Case
from paceline.diagnosing.inputs import readings
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.diagnosing.trainers import paces
from paceline.diagnosing.trainers.paces import Straggler
from paceline.model.explanations.causes import Evidence
from paceline.model.explanations.findings import Severity

OTHERS_WAIT = Threshold(
    "slow-disks.others-wait", 0.5, Unit.SHARE,
    means="The disk of a straggler is slow if the others wait for input for at most this share of the time "
    "that the straggler waits. Above it, storage is slow for all.",
)  # fmt: skip

TOPIC = Topic(
    code="WRK102",
    name="slow-disk",
    title="A worker is slow because its reading is",
    severity=Severity.WARNING,
    why="All workers read and train alike, so one that waits for its input while the others do not reads "
    "from something slower: a failing or busy disk, a cold cache, a longer way to the storage. Who shares a "
    "queue of shards loses only its part; where all wait for each other, or each has its share, all are as "
    "slow as this one.",
    fix="See to the disk of that host, or take the worker off it.",
)


@rule(TOPIC, needs=(needs.CPU, needs.STEPS, needs.INPUT_WAIT))
def slow_disk(case: Case) -> Iterator[Hit]:
    """Stragglers that wait for input while the others do not, and whose cores rest meanwhile."""
    stragglers = tuple(
        straggler
        for straggler in paces.stragglers(case)
        if _waits(case, straggler) and not _decodes(case, straggler)
    )
    if not stragglers:
        return
    gain = paces.gain(case, stragglers)
    trainers = [straggler.trainer for straggler in stragglers]
    places = ", ".join(
        dict.fromkeys(trainer.row.host or f"the host of {trainer.replica}" for trainer in trainers)
    )
    waits = ", ".join(f"{trainer.replica} waits {readings.waits(trainer):.0%}" for trainer in trainers[:4])
    yield Hit(
        what=f"{paces.told(stragglers)} because "
        f"{'it waits' if len(stragglers) == 1 else 'they wait'} for examples.",
        subjects=paces.subjects(trainers),
        evidence=(
            paces.evidence(case, stragglers),
            Evidence(
                text=f"{waits} of its time for input, the others {_usual(stragglers[0]):.0%}",
                sources=(case.source("input_wait_seconds", (*trainers, *stragglers[0].fellows), steps=True),),
            ),
        ),
        next_steps=(
            f"see how fast {places} reads: dd if=FILE of=/dev/null bs=1M; iostat -x 1",
            "move the worker to another host, or its files to another disk",
        ),
        gain=gain if headrooms.matters(gain, case) else None,
        severity=headrooms.severity(gain, case),
    )


def _waits(case: Case, straggler: Straggler) -> bool:
    own, usual = readings.waits(straggler.trainer), _usual(straggler)
    return own >= case.value(readings.INPUT_BOUND) > usual and usual <= case.value(OTHERS_WAIT) * own


def _decodes(case: Case, straggler: Straggler) -> bool:
    """Return whether a straggler computes while it waits: then its host is slow, not its disk.

    False if it is not known.
    """
    return readings.decodes(case, straggler.trainer) is True


def _usual(straggler: Straggler) -> float:
    known = [each.input_wait_share for each in straggler.fellows if each.input_wait_share is not None]
    return statistics.median(known) if known else 1.0
