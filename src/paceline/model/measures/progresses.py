"""How far a job has come: its global step, which may go back, and how fast that moves.

After a restore the step is that of the checkpoint, and what was reported before says nothing of now. A
trainer reads the global step of all, so one that reports a smaller step than before has seen it go back.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

from paceline.model.measures import rates
from paceline.model.measures.samples import StepReport, by_replica

#: Reports so much older than the newest one say nothing of how far a job is now.
OLD_SECONDS = 30.0
#: A trainer is silent for so long while it evaluates or saves; longer is a clock that was set, or a pause.
_LONGEST_GAP_SECONDS = 600.0


def newest_stretch(reports: Iterable[StepReport]) -> list[StepReport]:
    """Return the reports that have a step since it went back last, in the order of time."""
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
    """Return the global step of the newest reports; None when none has one."""
    stretch = newest_stretch(reports)
    return max((each.step or 0 for each in stretch if each.at >= stretch[-1].at - OLD_SECONDS), default=None)


def total_steps(reports: Iterable[StepReport]) -> int | None:
    """Return how many steps are to be made, by the newest report that says it."""
    known = [each for each in reports if each.total_steps is not None]
    return max(known, key=lambda each: each.at).total_steps if known else None


def rate(reports: Iterable[StepReport]) -> float | None:
    """Return how fast the global step moved since it went back last; None when that cannot be said.

    Each trainer's reports are compared with its own alone, because machines' clocks differ.
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
