"""What past runs of the same model tell: which job file was the best, and which run is slower than it was."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from paceline.diagnosing.headrooms import LEAST_GAIN
from paceline.model import trained_models
from paceline.model.causes import Change
from paceline.model.jobs import JobSpec
from paceline.model.tunings import Objective

#: Fields of a job file that decide its speed; others are what the job is, or where it puts things.
_SPEED = (
    ("spec", "roles"), ("spec", "placement", "strategy"), ("spec", "threads"), ("spec", "cpu_policy"),
    ("spec", "training"),
)  # fmt: skip
#: Of these, what a user decides from job to job.
_OWN = (
    "command", "restart", "environment", "memory_growth", "epochs", "max_steps", "seed", "checkpoint",
    "trace", "export_dir", "inputs", "measured_variables", "variables",
)  # fmt: skip
#: So many earlier runs of the same settings it takes to call one slower.
_LEAST_BEFORE = 2


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """A run that was measured.

    Attributes:
        settings: its job file, plain.
        used_cores: by all replicas together, on average; None: not measured.
        auc: of its last evaluation; None: there was none.
    """

    name: str
    spec: JobSpec
    settings: Mapping[str, Any]
    submitted_at: float
    examples_per_second: float
    used_cores: float | None
    auc: float | None

    @property
    def examples_per_core_second(self) -> float | None:
        """Return the examples for each second of a core that it used; None: not measured."""
        return self.examples_per_second / self.used_cores if self.used_cores else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """A run that does less with its cores than those before it with the same settings did.

    Attributes:
        times: its examples for each core-second, over the median of theirs.
        before: their names, the newest first.
    """

    run: PastRun
    times: float
    before: tuple[str, ...]


def is_alike(spec: JobSpec, other: JobSpec) -> bool:
    """Whether two jobs train the same model."""
    return trained_models.name_of(spec) == trained_models.name_of(other)


def best(runs: Sequence[PastRun], objective: Objective) -> PastRun | None:
    """Return the run with the highest score within the limits; None: there is none."""
    allowed = [each for each in runs if objective.allows(each.examples_per_second, each.spec.asked_cores)]
    return max(
        allowed,
        key=lambda each: objective.score(each.examples_per_second, each.spec.asked_cores),
        default=None,
    )


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    """Return the changes that give one job file the settings of another that decide its speed."""
    return tuple(
        change
        for change in _differences((), before, after)
        if any(change.path[: len(each)] == each for each in _SPEED) and not set(change.path) & set(_OWN)
    )


def _differences(path: tuple[str, ...], before: Any, after: Any) -> Iterator[Change]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys((*before, *after)):
            yield from _differences((*path, key), before.get(key), after.get(key))
    elif isinstance(after, Mapping) and before is None:
        for key, value in after.items():
            yield from _differences((*path, key), None, value)
    elif before != after:
        yield Change(path=path, value=after)


def regressions(runs: Sequence[PastRun]) -> tuple[Regression, ...]:
    """Return the runs that are worse than those of the same settings before them, the newest first."""
    found = []
    ordered = sorted(runs, key=lambda each: -each.submitted_at)
    for place, run in enumerate(ordered):
        own = run.examples_per_core_second
        same = [
            each
            for each in ordered[place + 1 :]
            if each.examples_per_core_second and not differences(each.settings, run.settings)
        ]
        if own is None or len(same) < _LEAST_BEFORE:
            continue
        usual = statistics.median(each.examples_per_core_second or 0.0 for each in same)
        if own * LEAST_GAIN < usual:
            names = tuple(each.name for each in same)
            found.append(Regression(run=run, times=own / usual, before=names))
    return tuple(found)
