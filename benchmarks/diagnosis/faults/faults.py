"""What a fault is: a change of a healthy job, what is done to it meanwhile, and how it is felt."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Collection, Mapping

from benchmarks.diagnosis import acts, changes, trials
from benchmarks.diagnosis.bases import Base
from benchmarks.diagnosis.checks import Check
from benchmarks.diagnosis.knowns import Known
from benchmarks.diagnosis.trials import Ending
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.roles import Role

Change = Callable[[JobSpec, Known], JobSpec]


class Severity(enum.StrEnum):
    """How much a fault costs."""

    MILD = "mild"
    MEDIUM = "medium"
    GROSS = "gross"


def unchanged(spec: JobSpec, known: Known) -> JobSpec:
    """Leave a job as it is."""
    return spec


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault of a healthy job.

    Attributes:
        cause: its name, the primary one.
        also: further causes that are truly there, by construction.
        accepted: causes that may stand for the primary one.
        base: the healthy job, which is its twin.
        felt: how its effect is found out.
        change: of the job.
        act: what is done meanwhile, by what is known of the twin.
        endings: when it may be recorded.
        steps_from: the trainers that come to train; None: all.
        starts: whether it comes to train at all.
        seconds: of training before it is recorded.
        is_whole: what was before its limits held is kept, too.
    """

    cause: str
    base: Base
    felt: Check
    also: Collection[str] = ()
    accepted: Collection[str] = ()
    change: Change = unchanged
    act: Callable[[Known], acts.Act] | None = None
    endings: tuple[Ending, ...] = (Ending.LIVE, Ending.STOPPED)
    steps_from: Collection[str] | None = None
    starts: bool = True
    seconds: float = trials.TRAINING_SECONDS
    is_whole: bool = False

    def plan(self, known: Known, ending: Ending) -> trials.Plan:
        """Return how it is run."""
        return trials.Plan(
            act=None if self.act is None else self.act(known),
            ending=ending,
            steps_from=self.steps_from,
            seconds=self.seconds,
            starts=self.starts,
        )


Maker = Callable[[Base, Severity], Fault]


def of(severity: Severity, mild: float, medium: float, gross: float) -> float:
    """Return the value of a severity."""
    values: Mapping[Severity, float] = {
        Severity.MILD: mild,
        Severity.MEDIUM: medium,
        Severity.GROSS: gross,
    }
    return values[severity]


def both(first: Fault, second: Fault) -> Fault:
    """Return two faults of one healthy job as one; the first has the larger effect."""

    def change(spec: JobSpec, known: Known) -> JobSpec:
        return second.change(first.change(spec, known), known)

    def act(known: Known) -> acts.Act:
        return acts.together(*(each.act(known) for each in (first, second) if each.act is not None))

    return dataclasses.replace(
        first,
        also=tuple(dict.fromkeys((second.cause, *first.also, *second.also))),
        change=change,
        act=act,
    )


def fewer_cores(of_role: Role, share: float) -> Change:
    """Limit a role's replicas to a share of the cores that they use when they are healthy."""

    def change(spec: JobSpec, known: Known) -> JobSpec:
        return changes.role(spec, of_role, cpu_cores=round(known.cores[of_role] * share, 3))

    return change
