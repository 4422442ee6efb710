"""Tries a change that needs no restart in turn with the current settings, within one run: A, B, A, B.

Runs of the same job file differ by some per cent. Successive windows of one run differ by less, and they need
no restart. So a try takes seconds.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from paceline.control import resizings
from paceline.errors import Conflict
from paceline.model.jobs.adjustments import Adjustment
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import Run
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.probes import RateUnit
from paceline.model.studies.studies import TrialOutcome
from paceline.probing import occupations, windows
from paceline.services.life_cycles import LiveControl
from paceline.services.studying import probes
from paceline.services.studying.quiet_waits import QuietWait

#: The number of turns of each side.
TURNS = 3
#: A turn is taken again if an evaluation or a checkpoint took more of one side than of the other, at most so
#: often: a job that always does something else is measured with it.
_MOST_AGAIN = 3
#: Turns wait for evaluations and checkpoints for at most so many windows.
_MOST_WAITED_WINDOWS = 6


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TurnOutcome:
    """What was measured: the windows of both sides, in the order of their turns."""

    before: TrialOutcome
    after: TrialOutcome


class _Turn(NamedTuple):
    """When a job was measured as it is, and when with the change: the start and the end of each."""

    before: tuple[float, float]
    after: tuple[float, float]


def is_possible(jobs: LiveControl, run: Run, before: JobSpec, after: JobSpec) -> bool:
    """Return whether a running job can take over another job file without a restart.

    Args:
        jobs: where the job runs.
        run: the job.
        before: the spec of its own job file; the run of a trial differs from it, but not in its cores.
        after: the spec of the other job file.
    """
    found = resizings.between(before, after, until=0.0)
    return found is not None and {each.knob for each in found} <= jobs.knobs(run)


def take_turns(
    jobs: LiveControl,
    name: str,
    before: JobSpec,
    after: JobSpec,
    times: probes.ProbeTimes,
    tell: Callable[[str], None] = lambda _: None,
) -> TurnOutcome:
    """Give a running job the settings of another job file for some seconds, in turn with its own settings.

    In the end the job has its own settings again. Turns give way to evaluations and checkpoints, and are
    taken again if one of these took more of one side than of the other.

    Args:
        jobs: where the job runs.
        name: the job.
        before: the spec of its own job file.
        after: the spec of the other job file.
        times: how long a window is, and how long until it can be read.
        tell: called with what goes on, in a few words.

    Raises:
        Conflict: the job ends meanwhile, is being changed, or would need a restart.
        EngineError: the engine refuses the change.
    """
    run = jobs.get(name)
    adjustments = resizings.between(before, after, until=0.0)
    if run.phase is not JobPhase.RUNNING:
        raise Conflict(
            f"{name} is {run.phase}, and only a running job can be changed", f"paceline get {name}"
        )
    if adjustments is None:
        raise Conflict(f"this change needs a restart of {name}", f"paceline describe {name}")
    began_at = jobs.clock()
    times = times.suited_to(jobs.recording(name, since=began_at - probes.HISTORY_SECONDS))
    quiet = QuietWait(jobs, name, known_seconds=times.known, most_seconds=_MOST_WAITED_WINDOWS * times.window)
    taken: list[_Turn] = []
    with jobs.changing(name, "tried with other cores"):
        missing = TURNS
        while True:
            planned = len(taken) + missing
            while len(taken) < planned:
                quiet.run(tell)
                tell(f"turn {len(taken) + 1} of {planned}")
                taken.append(_turn(jobs, name, adjustments, times))
            time.sleep(times.known)
            recording = jobs.recording(name, since=began_at)
            comparable = [turn for turn in taken if occupations.difference(recording, turn) is None]
            missing = min(TURNS - len(comparable), TURNS + _MOST_AGAIN - len(taken))
            if missing <= 0:
                break
    used = comparable if len(comparable) >= TURNS else taken
    speeds = [
        tuple(windows.rate(RateUnit.EXAMPLES, recording.steps, (), *span) or 0.0 for span in spans)
        for spans in zip(*used, strict=True)
    ]
    return TurnOutcome(
        before=TrialOutcome(examples_per_second=speeds[0], asked_cores=before.asked_cores),
        after=TrialOutcome(examples_per_second=speeds[1], asked_cores=after.asked_cores),
    )


def _turn(jobs: LiveControl, name: str, adjustments: Sequence[Adjustment], times: probes.ProbeTimes) -> _Turn:
    """Measure a running job as it is, then with adjustments, and take these back."""
    before = _window(jobs, times)
    until = jobs.clock() + times.cut + times.known
    jobs.adjust(name, [dataclasses.replace(adjustment, until=until) for adjustment in adjustments])
    try:
        time.sleep(times.settle)
        after = _window(jobs, times)
    finally:
        jobs.adjust(name, adjustments)
    time.sleep(times.settle)
    return _Turn(before, after)


def _window(jobs: LiveControl, times: probes.ProbeTimes) -> tuple[float, float]:
    since = jobs.clock()
    time.sleep(times.window)
    return since, jobs.clock()


def keep(jobs: LiveControl, name: str, wanted: JobSpec) -> None:
    """Give a running job the settings of another job file permanently.

    Raises:
        Conflict: the job ends meanwhile, or is being changed.
        EngineError: the engine refuses the change.
    """
    for resize in resizings.resizes(jobs.get(name).spec, wanted):
        jobs.resize(name, resize)
