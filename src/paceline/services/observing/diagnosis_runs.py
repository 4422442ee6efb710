"""Looks at a job: its recent measurements and what the rules find in them; cheap enough to be frequent."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeVar

from paceline.diagnosing import diagnoses
from paceline.diagnosing.cases import Case
from paceline.diagnosing.situations import Situation
from paceline.model.explanations.causes import Explanation
from paceline.model.measures.recordings import Recording
from paceline.services.life_cycles import JobReader
from paceline.services.observing import recordings

T = TypeVar("T")

#: How often a running job is looked at.
LOOK_SECONDS = 5.0
#: The same while a finding is there that the next look has to confirm.
CONFIRM_SECONDS = 2.5
#: A look that takes long is taken less often: looks take at most this share of the time.
LOOK_SHARE = 0.2
#: How far back a look at a running job reaches: rules judge its last half minute, some compare it with
#: before.
REACH_SECONDS = 120.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisRun:
    """What is known of a job at one moment, and the explanation of its state.

    Attributes:
        unjudged: the names of causes that could not be judged for lack of data.
    """

    recording: Recording
    explanation: Explanation
    unjudged: frozenset[str] = frozenset()


class Looker:
    """Looks at a job repeatedly; files that have not changed are read only once.

    Args:
        jobs: where the job is.
        name: its name.
        thinned: whether to combine the measurements of a large ended job into longer intervals
            (`recordings.read`).
    """

    def __init__(self, jobs: JobReader, name: str, *, thinned: bool = False) -> None:
        self._jobs = jobs
        self._name = name
        self._thinned = thinned
        self._kept = recordings.RunFilesCache()

    def look(self) -> DiagnosisRun:
        """Return how the job does now, or did over its whole life if it has ended.

        Raises:
            NotFound: the job does not exist.
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
        recording: the recording of a job.
        situation: the situation of the job; None: as far as the recording describes it.
    """
    situation = situation or recordings.situation(recording)
    if recording.conclusion is not None:
        return DiagnosisRun(recording=recording, explanation=recordings.judged(recording, situation))
    case = Case.of(recording)
    found = diagnoses.diagnose(recording, situation, case=case)
    return DiagnosisRun(recording=recording, explanation=found, unjudged=diagnoses.unjudged(case))


def pause_seconds(took_seconds: float, *, confirms: bool = False) -> float:
    """Return how long to wait after a look before the next one.

    Args:
        took_seconds: how long the look took.
        confirms: whether the next look has to confirm a finding (`FindingDebounce.awaits_confirmation`).
    """
    return max(CONFIRM_SECONDS if confirms else LOOK_SECONDS, took_seconds / LOOK_SHARE)


def now_and_then(look: Callable[[], T], clock: Callable[[], float]) -> Callable[[], T]:
    """Return a function that looks again when it is time, and otherwise returns the last result.

    Args:
        look: the function that looks.
        clock: seconds of any monotonic clock.
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
