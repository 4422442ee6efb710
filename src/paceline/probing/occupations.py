"""What else a job does that experiments give way to: it evaluates, or trainers stand still to save.

Both change the rate of a job, so windows of time in which they differ cannot be compared.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from paceline.model.measures.recordings import Recording
from paceline.probing import windows

#: Windows cannot be compared if the shares of their time in which an evaluation runs, or in which a trainer
#: stands still, differ by more than these values.
_EVALUATED, _STOOD = 0.5, 0.2
#: Standing still is looked for in the last second that is known.
_LOOK_SECONDS = 1.0


class Occupation(enum.StrEnum):
    """What comes before an experiment, in words for users."""

    EVALUATION = "an evaluation goes on: it comes first"
    STAND = "a trainer makes no steps, as while it saves a checkpoint: that comes first"


def current(recording: Recording, known: float, now: float) -> Occupation | None:
    """Return what a job does first now; None: nothing.

    Args:
        recording: the job from `windows.LONGEST_STAND_SECONDS` before ``known`` on.
        known: up to when reports and samples are complete (Unix seconds).
        now: Unix seconds.
    """
    if windows.evaluating(recording.samples, known, now):
        return Occupation.EVALUATION
    stands = windows.standing(recording.steps, known - _LOOK_SECONDS, known)
    return Occupation.STAND if stands else None


def difference(
    recording: Recording, spans: Sequence[tuple[float, float]], *, paused: Sequence[str] = ()
) -> Occupation | None:
    """Return what took more of one span of time than of another; None: the spans can be compared.

    Args:
        recording: the job in all of the spans.
        spans: the start and the end of each (Unix seconds).
        paused: trainers that stand still because they are paused.
    """
    evaluated = [windows.evaluating(recording.samples, *span) for span in spans]
    if max(evaluated) - min(evaluated) > _EVALUATED:
        return Occupation.EVALUATION
    reports = [each for each in recording.steps if str(each.replica) not in paused]
    stood = [windows.standing(reports, *span) for span in spans]
    return Occupation.STAND if max(stood) - min(stood) > _STOOD else None
