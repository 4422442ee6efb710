"""Studies: many runs of changed job files that answer one question.

A study is one value that is saved after each run. There are two kinds: a search (`tunings.Tuning`) chooses
its next run by what was measured before, an experiment (`experiments.Experiment`) runs the variants that it
began with.
"""

from __future__ import annotations

import abc
import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The loss of a batch, after a number of examples of all trainers together."""

    examples: int
    value: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrialOutcome:
    """What was measured of a trial.

    Attributes:
        examples_per_second: the speed in successive stretches of time; empty: the job did not train.
        asked_cores: the cores that the job asks for; None: they are not limited.
        used_cores: the cores that all replicas used; None: not measured.
        losses: the losses, in the order of examples.
        failure: why the job did not train; empty: it did.
    """

    examples_per_second: tuple[float, ...] = ()
    asked_cores: float | None = None
    used_cores: float | None = None
    losses: tuple[Loss, ...] = ()
    failure: str = ""

    @property
    def speed(self) -> float:
        """Return the mean speed in examples a second; 0: the job did not train."""
        found = self.examples_per_second
        return sum(found) / len(found) if found else 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrialPair:
    """The original job and the best one, run one after the other, so that the time of day does not matter."""

    before: TrialOutcome
    after: TrialOutcome


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Study(abc.ABC):
    """A study of either kind.

    Attributes:
        name: its name; the names of its runs begin with it.
        source: the job file that its runs change.
        base: the folder that relative paths in the job file start from.
    """

    name: str
    source: str
    base: str

    @property
    @abc.abstractmethod
    def done_runs(self) -> int:
        """Return how many of its runs were measured, or failed."""

    @property
    @abc.abstractmethod
    def planned_runs(self) -> int:
        """Return how many runs it makes, or makes at most."""

    @property
    @abc.abstractmethod
    def is_complete(self) -> bool:
        """Whether nothing is left to be run."""
