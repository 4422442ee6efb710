"""Looks at a job: what was measured of late, and what the rules find in it; cheap enough to be frequent."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeVar

from paceline.diagnosing import diagnoses
from paceline.diagnosing.cases import Case
from paceline.diagnosing.situations import Situation
from paceline.model.explanations.causes import Explanation
from paceline.model.measures.recordings import Recording
from paceline.services.life_cycles import LifeCycle
from paceline.services.observing import recordings

T = TypeVar("T")

#: How often a job that runs is looked at.
LOOK_SECONDS = 5.0
#: A look that takes long is not taken so often: what it takes is at most this part of the time.
LOOK_SHARE = 0.2
#: How far back a look at a job that runs reaches: rules judge its last half minute, some ask what was before.
REACH_SECONDS = 120.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisRun:
    """What is known of a job at one moment, and why it is as it is.

    Attributes:
        unjudged: names of causes that could not be judged for want of data.
    """

    recording: Recording
    explanation: Explanation
    unjudged: frozenset[str] = frozenset()


class Looker:
    """Looks at a job again and again; files that stay the same are read once.

    Args:
        jobs: where it is.
        name: its name.
        thinned: of a job that has ended, look at longer intervals if it is much (`recordings.read`).
    """

    def __init__(self, jobs: LifeCycle, name: str, *, thinned: bool = False) -> None:
        self._jobs = jobs
        self._name = name
        self._thinned = thinned
        self._kept = recordings.RunFilesCache()

    def look(self) -> DiagnosisRun:
        """Return how the job does now, or did over its whole life once it has ended.

        Raises:
            NotFound: there is no such job.
            StoreError: the store or the run's folder cannot be read.
            ClusterError: the cluster does not answer.
        """
        final = self._jobs.get(self._name).phase.is_final
        since = None if final else self._jobs.clock() - REACH_SECONDS
        recording = recordings.whole(
            self._jobs, self._name, since=since, thinned=final and self._thinned, kept=self._kept
        )
        return of(recording, recordings.situation_of(self._jobs, recording))


def of(recording: Recording, situation: Situation | None = None) -> DiagnosisRun:
    """Return the look at a recording, wherever it was made.

    Args:
        recording: of a job.
        situation: where the job stands; None: as far as the recording says.
    """
    situation = situation or recordings.situation(recording)
    if recording.conclusion is not None:
        return DiagnosisRun(recording=recording, explanation=recordings.judged(recording, situation))
    case = Case.of(recording)
    found = diagnoses.diagnose(recording, situation, case=case)
    return DiagnosisRun(recording=recording, explanation=found, unjudged=diagnoses.unjudged(case))


def pause_seconds(took_seconds: float) -> float:
    """Return how long to wait after a look that took so long before the next one is taken."""
    return max(LOOK_SECONDS, took_seconds / LOOK_SHARE)


def now_and_then(look: Callable[[], T], clock: Callable[[], float]) -> Callable[[], T]:
    """Return a function that looks anew when it is time for that, and else gives what was seen last.

    Args:
        look: looks.
        clock: seconds of any clock that only goes on.
    """
    last: tuple[float, T] | None = None

    def current() -> T:
        nonlocal last
        now = clock()
        if last is None or now >= last[0]:
            found = look()
            done = clock()
            last = done + pause_seconds(done - now), found
        return last[1]

    return current
