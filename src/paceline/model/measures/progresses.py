"""The progress of a job: its global step, which may go back, and how fast the step moves.

After a restore the step is that of the checkpoint, and earlier reports do not describe the present. Every
trainer reads the same global step, so a trainer that reports a smaller step than before has seen it go back.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

from paceline.model.measures import rates
from paceline.model.measures.samples import StepReport, by_replica

#: Reports that are this much older than the newest report do not describe the present step.
OLD_SECONDS = 30.0
#: A trainer may be silent this long while it evaluates or saves; a longer gap means that its clock was set or
#: that it was paused.
_LONGEST_GAP_SECONDS = 600.0


def newest_stretch(reports: Iterable[StepReport]) -> list[StepReport]:
    """Return the reports with a step since the global step last went back, in the order of time."""
    known = sorted((each for each in reports if each.step is not None), key=lambda each: each.at)
    falls = [
        after.at
        for own in by_replica(known).values()
        for before, after in itertools.pairwise(own)
        if (after.step or 0) < (before.step or 0)
    ]
    since = max(falls, default=-math.inf)
    return [each for each in known if each.at >= since]


def step(reports: Iterable[StepReport]) -> int | None:
    """Return the global step of the newest reports; None: no report has a step."""
    stretch = newest_stretch(reports)
    return max((each.step or 0 for each in stretch if each.at >= stretch[-1].at - OLD_SECONDS), default=None)


def total_steps(reports: Iterable[StepReport]) -> int | None:
    """Return the total number of steps to make, from the newest report that has it."""
    known = [each for each in reports if each.total_steps is not None]
    return max(known, key=lambda each: each.at).total_steps if known else None


def rate(reports: Iterable[StepReport]) -> float | None:
    """Return the global steps a second since the step last went back; None: not known.

    Each trainer's reports are compared only with its own, because the clocks of machines differ.
    """
    stretch = newest_stretch(reports)
    steps, seconds = 0, 0.0
    for own in by_replica(stretch).values():
        for before, after in itertools.pairwise(own):
            took = after.at - before.at
            if took > _LONGEST_GAP_SECONDS and after.interval_seconds is not None:
                took = after.interval_seconds
            if took > 0:
                steps += (after.step or 0) - (before.step or 0)
                seconds += took
    if not seconds and len(stretch) > 1:
        steps = (stretch[-1].step or 0) - (stretch[0].step or 0)
        seconds = stretch[-1].at - stretch[0].at
    return rates.quotient(max(0, steps), seconds)
