"""Lessons from past runs of the same model: the best job file, and runs that did worse than earlier ones."""

from __future__ import annotations

import dataclasses
import enum
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from paceline.diagnosing.headrooms import LEAST_GAIN
from paceline.model.deviations import NORMAL_90
from paceline.model.explanations.causes import FieldChange
from paceline.model.instants import UnixSeconds
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.studies import trained_models
from paceline.model.studies.tunings import Objective
from paceline.tuning import judgements, proofs

#: Fields of a job file that decide its speed; other fields say what the job is, or where it puts things.
_SPEED = (
    ("spec", "roles"), ("spec", "placement", "strategy"), ("spec", "threads"), ("spec", "cpu_policy"),
    ("spec", "training"),
)  # fmt: skip
_ROLES = ("spec", "roles")
#: Keys within these fields that a user chooses for each job.
_OWN = (
    "command", "restart", "environment", "memory_growth", "epochs", "max_steps", "seed", "checkpoint",
    "trace", "export_dir", "inputs", "measured_variables", "variables",
)  # fmt: skip
#: The fewest earlier runs with the same settings that a run can be compared with.
_LEAST_BEFORE = 2


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """A run that was measured.

    Attributes:
        settings: its job file as plain data.
        used_cores: the mean number of cores that all replicas used together; None: not measured.
        auc: the AUC of its last evaluation; None: there was none.
    """

    name: str
    spec: JobSpec
    settings: Mapping[str, Any]
    submitted_at: UnixSeconds
    examples_per_second: float
    used_cores: float | None
    auc: float | None

    @property
    def examples_per_core_second(self) -> float | None:
        """Return the examples for each core second that it used; None: not measured."""
        return self.examples_per_second / self.used_cores if self.used_cores else None


class Measure(enum.StrEnum):
    """The measure by which runs are compared."""

    WORK = "examples for each core-second"
    QUALITY = "AUC"


#: The ordinary standard deviation between runs of one job file (of logarithms), and the factor by which a run
#: has to be worse to be reported.
_SPREADS = {
    Measure.WORK: (judgements.RUN_SPREAD, LEAST_GAIN.default),
    Measure.QUALITY: (proofs.AUC_TOLERANCE / NORMAL_90, 1 + proofs.AUC_TOLERANCE),
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """A run that did worse than earlier runs with the same settings, beyond the ordinary spread of runs.

    Attributes:
        measure: the measure by which it was worse.
        times: its value divided by the median of the earlier runs.
        low, high: the interval of ``times``, with 90 %.
        before: the names of the earlier runs, the newest first.
    """

    run: PastRun
    measure: Measure
    times: float
    low: float
    high: float
    before: tuple[str, ...]


def is_alike(spec: JobSpec, other: JobSpec) -> bool:
    """Whether two jobs train the same model."""
    return trained_models.name_of(spec) == trained_models.name_of(other)


def best(runs: Sequence[PastRun], objective: Objective) -> PastRun | None:
    """Return the run with the highest score among those within the limits; None: there is none."""
    allowed = [each for each in runs if objective.allows(each.examples_per_second, each.spec.asked_cores)]
    return max(
        allowed,
        key=lambda each: objective.score(each.examples_per_second, each.spec.asked_cores),
        default=None,
    )


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[FieldChange, ...]:
    """Return the changes that give one job file those settings of another that decide its speed.

    Roles that only one of them has stay as they are: a script needs the roles that it was written for.
    """
    lone = _role_names(before) ^ _role_names(after)
    return tuple(
        change
        for change in _differences((), before, after)
        if any(change.path[: len(each)] == each for each in _SPEED)
        and not set(change.path) & set(_OWN)
        and not (change.path[:2] == _ROLES and lone & set(change.path[2:3]))
    )


def _is_as_fast(settings: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two job files have the same settings that decide their speed, and the same roles."""
    return _role_names(settings) == _role_names(other) and not differences(settings, other)


def _role_names(settings: Mapping[str, Any]) -> Set[str]:
    spec = settings.get("spec")
    roles = spec.get("roles") if isinstance(spec, Mapping) else None
    return set(roles) if isinstance(roles, Mapping) else set()


def _differences(path: tuple[str, ...], before: Any, after: Any) -> Iterator[FieldChange]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys((*before, *after)):
            yield from _differences((*path, key), before.get(key), after.get(key))
    elif isinstance(after, Mapping) and before is None:
        for key, value in after.items():
            yield from _differences((*path, key), None, value)
    elif isinstance(before, Mapping) and after is None and (path in _SPEED or _has_own(before)):
        for key, value in before.items():
            yield from _differences((*path, key), value, None)
    elif before != after:
        yield FieldChange(path=path, value=after)


def _has_own(settings: Mapping[str, Any]) -> bool:
    """Return whether settings have, anywhere, what a user chooses for each job."""
    return any(
        key in _OWN or (isinstance(value, Mapping) and _has_own(value)) for key, value in settings.items()
    )


def regressions(runs: Sequence[PastRun]) -> tuple[Regression, ...]:
    """Return the runs that did worse than earlier runs with the same settings, the newest first."""
    found = []
    ordered = sorted(runs, key=lambda each: -each.submitted_at)
    for place, run in enumerate(ordered):
        same = [each for each in ordered[place + 1 :] if _is_as_fast(each.settings, run.settings)]
        found += [worse for measure in Measure if (worse := _worse(run, same, measure)) is not None]
    return tuple(found)


def _worse(run: PastRun, before: Sequence[PastRun], measure: Measure) -> Regression | None:
    """Return the regression of a run from earlier runs; None: it is not worse by enough and beyond the noise.

    The noise is that of a single run plus that of the median of the others. The spread of a few runs is
    uncertain, so it is taken to be at least the ordinary spread of runs.
    """
    score, earlier_runs = _value(run, measure), [past_run for past_run in before if _value(past_run, measure)]
    if not score or len(earlier_runs) < _LEAST_BEFORE:
        return None
    logs = [math.log(_value(past_run, measure) or 1.0) for past_run in earlier_runs]
    least, enough = _SPREADS[measure]
    spread = NORMAL_90 * max(least, statistics.stdev(logs)) * math.sqrt(1 + 1 / len(logs))
    times = score / math.exp(statistics.median(logs))
    low, high = times * math.exp(-spread), times * math.exp(spread)
    if times * enough >= 1 or high >= 1:
        return None
    names = tuple(past_run.name for past_run in earlier_runs)
    return Regression(run=run, measure=measure, times=times, low=low, high=high, before=names)


def _value(run: PastRun, measure: Measure) -> float | None:
    return run.examples_per_core_second if measure is Measure.WORK else run.auc
