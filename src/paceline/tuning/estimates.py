"""How much of a search is left: the runs that it still makes at most, and the time that they take."""

from __future__ import annotations

import dataclasses

from paceline.model.studies.tunings import Tuning

#: Each side of a pair is one run, and each side learns in one more at most.
_SIDES = 2


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunCount:
    """How many runs of a search are done, and how many it makes at most."""

    done: int
    most: int

    def seconds_left(self, before: int, passed_seconds: float, now_seconds: float) -> float | None:
        """Return how long the runs that are left take at most, when each takes as long as those before.

        Args:
            before: runs that were done before the first look.
            passed_seconds: that the runs since then have taken.
            now_seconds: for how long the current run has run.

        Returns:
            The seconds; None: no run was seen to its end yet.
        """
        if self.done <= before:
            return None
        mean = passed_seconds / (self.done - before)
        return max(0.0, (self.most - self.done) * mean - now_seconds)


def runs(tuning: Tuning, *, pairs: int) -> RunCount:
    """Return how far a search is.

    Args:
        tuning: the search.
        pairs: that are to prove what comes out of it.
    """
    done = len(tuning.finished) + _SIDES * (len(tuning.pairs) + (tuning.quality is not None))
    trials = len(tuning.finished) if tuning.ended else tuning.most_trials
    is_proven = pairs > 0 and not (tuning.ended and (tuning.best is None or not tuning.best.number))
    return RunCount(done=done, most=max(done, trials + (_SIDES * (pairs + 1) if is_proven else 0)))
