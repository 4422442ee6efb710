"""Waits until a running job neither evaluates nor saves a checkpoint, since both come before experiments."""

from __future__ import annotations

import time
from collections.abc import Callable

from paceline.model.jobs.statuses import JobPhase
from paceline.probing import occupations, windows
from paceline.services.life_cycles import JobReader

_LOOK_SECONDS = 1.0


class QuietWait:
    """Waits for quiet moments of a job, all together not for long: some jobs never have one.

    Args:
        jobs: where the job runs.
        name: the job.
        known_seconds: how long after a measurement it can be read.
        most_seconds: how long to wait at most, all times together.
    """

    def __init__(self, jobs: JobReader, name: str, *, known_seconds: float, most_seconds: float) -> None:
        self._jobs, self._name = jobs, name
        self._known_seconds, self._left_seconds = known_seconds, most_seconds

    def run(self, tell: Callable[[str], object]) -> bool:
        """Wait for a quiet moment; return whether that took any time.

        Args:
            tell: called with what comes first, again and again.
        """
        has_waited = False
        while self._left_seconds > 0 and self._jobs.get(self._name).phase is JobPhase.RUNNING:
            comes_first = self._comes_first()
            if comes_first is None:
                break
            tell(comes_first)
            time.sleep(_LOOK_SECONDS)
            self._left_seconds -= _LOOK_SECONDS
            has_waited = True
        return has_waited

    def _comes_first(self) -> occupations.Occupation | None:
        now = self._jobs.clock()
        known = now - self._known_seconds
        recording = self._jobs.recording(self._name, since=known - windows.LONGEST_STAND_SECONDS)
        return occupations.current(recording, known, now)
