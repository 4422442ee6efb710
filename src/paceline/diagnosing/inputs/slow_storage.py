"""Trainers wait for storage: their examples arrive more slowly than they could train on them."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing import needs, trainings
from paceline.diagnosing.cases import Case
from paceline.diagnosing.inputs import between_steps, readings
from paceline.diagnosing.inputs.between_steps import BetweenStepsActivity
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.findings import Severity

TOPIC = Topic(
    code="INP001",
    name="slow-storage",
    title="Trainers wait for storage",
    severity=Severity.WARNING,
    why="Each batch is read before it is trained. If all trainers wait for their batches and their cores "
    "rest meanwhile, the disk, the file system or the way to it does not give them more: neither more cores "
    "nor more servers help, and more workers share the same storage.",
    fix="Keep copies of remote files near the trainers, read fewer bytes for an example, or get faster "
    "storage.",
)


@rule(TOPIC, needs=(needs.CPU, needs.STEPS, needs.INPUT_WAIT))
def slow_storage(case: Case) -> Iterator[Hit]:
    """Most trainers wait for input, and their cores rest meanwhile."""
    reading = readings.find(case, case.value(readings.INPUT_BOUND))
    if reading is None:
        return
    resting = readings.most(case, reading, decode=False)
    # A script that feeds its batches may compute or sleep between its steps: then storage is not the cause.
    other = (BetweenStepsActivity.COMPUTING, BetweenStepsActivity.RESTING)
    if not resting or any(between_steps.most(case, reading, what) for what in other):
        return
    yield readings.hit(
        case,
        reading,
        resting,
        "rest",
        what=f"Trainers wait for storage: {reading.share:.0%} of their time they have no examples, and their "
        "cores rest.",
        next_steps=_ways(case),
    )


#: The next step that makes batches while steps run.
_AHEAD = (
    "DataLoader(num_workers=2, persistent_workers=True): so many processes read ahead while a step runs, and "
    "wait for storage side by side"
)


def _ways(case: Case) -> tuple[str, ...]:
    cache = "spec.training.inputs.cache.folder: a folder of a fast disk keeps copies of remote files"
    ways = (
        "fewer bytes for an example: Parquet in place of CSV or TFRecord",
        "faster storage, or files on several disks; measure it: dd if=FILE of=/dev/null bs=1M",
    )
    if readings.is_loaded(case):
        return (_AHEAD, *ways)
    return (
        ways
        if not trainings.by_library(case) or trainings.section(case, "inputs").get("cache")
        else (cache, *ways)
    )
