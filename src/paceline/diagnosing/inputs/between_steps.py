"""What a script of a user's own does between two steps, where it makes and feeds its batches itself.

The time between its steps is all that is measured of its input. Whether it reads, computes or sleeps then,
the processor time of its thread and what it reads from files say.
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
    """What most of the time between two steps is for."""

    COMPUTING = enum.auto()
    READING = enum.auto()
    RESTING = enum.auto()


def doing(case: Case, trainer: ReplicaSnapshot) -> BetweenStepsActivity | None:
    """Return what a trainer that waits for its input does meanwhile; None: it is not known.

    It is not where other threads or processes of it compute, too: then they may do anything for the script.
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
    """Return the trainers that do something while they wait; none unless most of those that wait do."""
    found = [each for each in reading.trainers if doing(case, each) is what]
    return found if 2 * len(found) > len(reading.trainers) else []
