"""How much of a search is left: the most runs that it still makes, and the time that they take."""

from __future__ import annotations

import dataclasses

from paceline.model.studies.tunings import Tuning

#: The runs of a pair. The comparison of what both job files learn takes as many more, at most once.
_SIDES = 2


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunCount:
    """The number of runs of a search that are done, and the most that it makes."""

    done: int
    most: int

    def seconds_left(self, before: int, passed_seconds: float, now_seconds: float) -> float | None:
        """Return the longest time for the remaining runs, if each takes as long as the earlier ones.

        Args:
            before: the number of runs that were done before observation began.
            passed_seconds: the time that the runs since then have taken.
            now_seconds: how long the current run has run.

        Returns:
            The seconds; None: no run has ended since observation began.
        """
        if self.done <= before:
            return None
        mean = passed_seconds / (self.done - before)
        return max(0.0, (self.most - self.done) * mean - now_seconds)


def runs(tuning: Tuning, *, pairs: int) -> RunCount:
    """Return how many runs of a search are done, and the most that it makes.

    Args:
        tuning: the search.
        pairs: the number of pairs of runs that verify its result.
    """
    done = len(tuning.finished) + _SIDES * (len(tuning.pairs) + (tuning.quality is not None))
    trials = len(tuning.finished) if tuning.ended else tuning.most_trials
    is_proven = pairs > 0 and not (tuning.ended and (tuning.best is None or not tuning.best.number))
    return RunCount(done=done, most=max(done, trials + (_SIDES * (pairs + 1) if is_proven else 0)))
