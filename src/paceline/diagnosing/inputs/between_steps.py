"""What a user's own script does between two steps, if it makes and feeds its batches itself.

The time between the steps is the only measurement of the script's input. The CPU time of its thread and the
bytes that it reads from files show whether the script reads, computes or sleeps in that time.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from paceline.diagnosing.cases import Case
from paceline.diagnosing.inputs import readings
from paceline.diagnosing.scripts import asked
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.model.measures.script_facts import Name
from paceline.model.measures.snapshots import ReplicaSnapshot

COMPUTES = Threshold(
    "between-steps.computes", 0.5, Unit.SHARE,
    means="A thread that computes for at least this share of the time between its steps makes batches in "
    "that time.",
)  # fmt: skip
READS_SHARE = Threshold(
    "between-steps.reads-share", 0.1, Unit.SHARE,
    means="A script reads examples if it reads at least this share of the bytes that it feeds for a step. It "
    "may read less than it feeds, because the examples may be packed.",
)  # fmt: skip
READS_BYTES = Threshold(
    "between-steps.reads-bytes", 1024.0, Unit.BYTES,
    means="A script that reads fewer bytes than this for a step does not read examples: a program reads a "
    "little for itself.",
)  # fmt: skip


class BetweenStepsActivity(enum.Enum):
    """What a script mostly does between two steps."""

    COMPUTING = enum.auto()
    READING = enum.auto()
    RESTING = enum.auto()


def doing(case: Case, trainer: ReplicaSnapshot) -> BetweenStepsActivity | None:
    """Return what a trainer does while it waits for its input; None: this is not known.

    If its own thread does not compute but its other threads or processes do, the activity is not known
    either: they may do anything for the script.
    """
    python = asked.amount(case, trainer.replica, Name.PYTHON_SHARE)
    read = asked.amount(case, trainer.replica, Name.READS_BYTES_PER_STEP)
    fed = asked.amount(case, trainer.replica, Name.FEEDS_BYTES_PER_STEP)
    if python is None or fed is None:
        return None
    if python >= case.value(COMPUTES) * readings.waits(trainer):
        return BetweenStepsActivity.COMPUTING
    if read is None or readings.decodes(case, trainer) is not False:
        return None
    return (
        BetweenStepsActivity.READING
        if read >= max(case.value(READS_SHARE) * fed, case.value(READS_BYTES))
        else BetweenStepsActivity.RESTING
    )


def most(
    case: Case, reading: readings.InputBoundJob, what: BetweenStepsActivity
) -> Sequence[ReplicaSnapshot]:
    """Return the waiting trainers that have a given activity; none unless most waiting trainers have it."""
    found = [each for each in reading.trainers if doing(case, each) is what]
    return found if 2 * len(found) > len(reading.trainers) else []
