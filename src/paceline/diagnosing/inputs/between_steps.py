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
from paceline.model.measures.script_facts import Name
from paceline.model.measures.snapshots import ReplicaSnapshot

#: A thread that computes for that part of the time between its steps makes batches then (own reasoning).
COMPUTES = 0.5
#: A script reads examples if it reads at least that part of what it feeds for a step (they may be packed),
#: and at least so many bytes: a program reads a little for itself (own reasoning).
READS_SHARE, READS_BYTES = 0.1, 1024.0


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
    if python >= COMPUTES * readings.waits(trainer):
        return BetweenStepsActivity.COMPUTING
    if read is None or readings.decodes(case, trainer) is not False:
        return None
    return (
        BetweenStepsActivity.READING
        if read >= max(READS_SHARE * fed, READS_BYTES)
        else BetweenStepsActivity.RESTING
    )


def most(
    case: Case, reading: readings.InputBoundJob, what: BetweenStepsActivity
) -> Sequence[ReplicaSnapshot]:
    """Return the waiting trainers that have a given activity; none unless most waiting trainers have it."""
    found = [each for each in reading.trainers if doing(case, each) is what]
    return found if 2 * len(found) > len(reading.trainers) else []
