"""Conditions that a job can be waited for: a phase, a step, a finding."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import math
import time
from collections.abc import Iterator, Sequence

from paceline.diagnosing import catalogues
from paceline.errors import EngineError
from paceline.model.explanations.causes import Cause
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.runs import Run
from paceline.model.jobs.statuses import JobPhase
from paceline.services.life_cycles import JobReader
from paceline.services.observing import diagnosis_runs, finding_debounce


class Condition(abc.ABC):
    """A condition that a job is waited for; an instance serves one job and one wait."""

    @abc.abstractmethod
    def is_met(self, run: Run) -> bool:
        """Return whether the condition holds now.

        Args:
            run: the job as it is now.
        """

    def outcome(self, run: Run) -> str:
        """Return what to say of a job that meets the condition, such as its phase."""
        return str(run.phase)

    def shortfall(self) -> str:
        """Return what a job still misses while the condition is not met, such as `` without PS001``."""
        return ""


@dataclasses.dataclass(frozen=True, slots=True)
class PhaseReached(Condition):
    """The job is in one of the given phases."""

    phases: frozenset[JobPhase]

    def is_met(self, run: Run) -> bool:
        """Return whether the job is in one of the phases."""
        return run.phase in self.phases


SUCCEEDED = PhaseReached(frozenset({JobPhase.SUCCEEDED}))
#: A job that has succeeded did run.
RUNNING = PhaseReached(frozenset({JobPhase.RUNNING, JobPhase.SUCCEEDED}))
FINISHED = PhaseReached(frozenset(phase for phase in JobPhase if phase.is_final))


class StepReached(Condition):
    """The job has trained up to a step.

    Args:
        jobs: where the job is.
        step: the step of all trainers together.
        is_further: whether to count from the job's step at the first look.
    """

    def __init__(self, jobs: JobReader, step: int, *, is_further: bool = False) -> None:
        self._jobs, self._step = jobs, step
        self._is_further = is_further

    def is_met(self, run: Run) -> bool:
        """Return whether a trainer has reported this step or a later one."""
        # Agents of pods that have just begun do not answer yet.
        with contextlib.suppress(EngineError):
            step = self._jobs.snapshot(run.name).step or 0
            if self._is_further:
                self._step, self._is_further = step + self._step, False
            return step >= self._step
        return False

    def outcome(self, run: Run) -> str:
        """Return the step."""
        return f"step {self._step}"

    def shortfall(self) -> str:
        """Return the step that the job has not reached."""
        return f" before step {self._step}"


class FindingMade(Condition):
    """A rule finds something in the job, as ``paceline why`` shows it.

    Measurements are noisy: while the job runs, two looks in a row have to agree (`FindingDebounce`).

    Args:
        jobs: where the job is.
        name: the job.
        codes: the codes of causes, such as ``PS001``; any of them is enough. Empty: any cause that is at
            least a warning.
    """

    def __init__(self, jobs: JobReader, name: str, codes: Sequence[str] = ()) -> None:
        self._codes = tuple(codes)
        self._looker = diagnosis_runs.Looker(jobs, name, thinned=True)
        self._seen = 0
        self._next_at = -math.inf
        self._cause: Cause | None = None

    def is_met(self, run: Run) -> bool:
        """Return whether there is such a cause; looks again when it is time, or when the job has ended."""
        began = time.monotonic()
        if began < self._next_at and not run.phase.is_final:
            return False
        with contextlib.suppress(EngineError):  # As with steps.
            explanation = self._looker.look().explanation
            self._cause = next(filter(self._is_awaited, _all(explanation.causes)), None)
            self._seen = 0 if self._cause is None else self._seen + 1
        ended = time.monotonic()
        self._next_at = ended + diagnosis_runs.pause_seconds(ended - began, confirms=self._seen > 0)
        return self._seen >= (1 if run.phase.is_final else finding_debounce.TO_APPEAR)

    def _is_awaited(self, cause: Cause) -> bool:
        if self._codes:
            return not cause.is_past and _code(cause) in self._codes
        return not cause.is_past and cause.severity.rank >= Severity.WARNING.rank

    def outcome(self, run: Run) -> str:
        """Return the cause in one line."""
        cause = self._cause
        return "" if cause is None else f"{_code(cause)} {cause.severity}: {' '.join(cause.what.split())}"

    def shortfall(self) -> str:
        """Return the codes that the job does not have."""
        return f" without {' or '.join(self._codes) or 'a finding'}"


def _code(cause: Cause) -> str:
    return catalogues.topic(cause.name).code


def _all(causes: Sequence[Cause]) -> Iterator[Cause]:
    for cause in causes:
        yield cause
        yield from _all(cause.effects)
