"""A search for a better job file: what is asked for, and the trials that were made on the way."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence

from paceline.model.studies.proposals import Proposal


class Goal(enum.StrEnum):
    """What a job should be."""

    FASTEST = "fastest"  # as many examples a second as possible
    CHEAPEST = "cheapest"  # as many examples for each second of the cores that it asks for


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What is asked for.

    Attributes:
        goal: what is to be as good as possible.
        most_cores: that the job may ask for; None: any number.
        least_examples_per_second: that it has to reach, as for a deadline; None: any speed.
        batch_size: whether that may change.
        relearning: whether changes are allowed by which the model may learn otherwise.
    """

    goal: Goal = Goal.FASTEST
    most_cores: float | None = None
    least_examples_per_second: float | None = None
    batch_size: bool = False
    relearning: bool = True

    def score(self, examples_per_second: float, cores: float | None) -> float:
        """Return how good a layout is; of several the one with the highest is the best.

        Args:
            examples_per_second: its speed.
            cores: that it asks for; None: they are not limited, so they cost the same whatever it does.
        """
        if self.goal is Goal.FASTEST or cores is None:
            return examples_per_second
        return examples_per_second / cores

    def allows(self, examples_per_second: float, cores: float | None) -> bool:
        """Whether a layout is within the limits."""
        is_fast = (
            self.least_examples_per_second is None or examples_per_second >= self.least_examples_per_second
        )
        return is_fast and self.affords(cores)

    def affords(self, cores: float | None) -> bool:
        """Whether so many cores are within the limits."""
        return self.most_cores is None or cores is None or cores <= self.most_cores * (1 + 1e-9)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The loss of a batch, after so many examples of all trainers."""

    examples: int
    value: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrialOutcome:
    """What was measured of a trial.

    Attributes:
        examples_per_second: in stretches of time that follow each other; empty: it did not train.
        asked_cores: by the job; None: they are not limited.
        used_cores: by all replicas; None: not measured.
        losses: in the order of examples.
        failure: why it did not train; empty: it did.
    """

    examples_per_second: tuple[float, ...] = ()
    asked_cores: float | None = None
    used_cores: float | None = None
    losses: tuple[Loss, ...] = ()
    failure: str = ""

    @property
    def speed(self) -> float:
        """Return the mean of what was measured; 0: it did not train."""
        found = self.examples_per_second
        return sum(found) / len(found) if found else 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a trial is worth against the best one before it.

    Attributes:
        kept: whether its changes stay.
        times: how many times as good it is.
        low, high: between which that lies.
        why: one sentence.
    """

    kept: bool
    times: float
    low: float
    high: float
    why: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A job that was run to see how it does.

    Attributes:
        number: 0 is the job as it came.
        run: the name of its run.
        source: its job file.
        base: the number of the trial that it changes; None: of none.
        proposals: what was changed.
        outcome: None: it is under way.
        judgement: None: there was nothing to judge it against.
        since: from when on its run was as this trial has it (Unix seconds); None: all the time, or never.
    """

    number: int
    run: str
    source: str
    base: int | None = None
    proposals: tuple[Proposal, ...] = ()
    outcome: TrialOutcome | None = None
    judgement: Judgement | None = None
    since: float | None = None

    @property
    def is_in_turn(self) -> bool:
        """Whether it was tried within the run of another trial."""
        return self.number > 0 and not self.run.endswith(f"-{self.number}")

    @property
    def is_kept(self) -> bool:
        """Whether its changes were judged, and stay."""
        return self.judgement is not None and self.judgement.kept

    @property
    def is_undone(self) -> bool:
        """Whether its changes were judged, and taken back."""
        return self.judgement is not None and not self.judgement.kept


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FinalPair:
    """The job as it came and the best one, run one after the other: what differs is not the hour."""

    before: TrialOutcome
    after: TrialOutcome


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """What both learn from as many examples; None: nothing was evaluated."""

    examples: int
    auc_before: float | None
    auc_after: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """A search, as far as it is.

    Attributes:
        name: of the search.
        job: the name of the job.
        objective: what is asked for.
        most_trials: that may be made.
        source: the job file that it began with.
        base: the folder that relative paths in it start from.
        trials: in their order; only the last may be under way.
        ended: why it went no further; empty: it goes on.
        pairs: that prove what came out of it.
        quality: see `Quality`; None: it was not looked at.
    """

    name: str
    job: str
    objective: Objective
    most_trials: int
    source: str
    base: str
    trials: tuple[Trial, ...] = ()
    ended: str = ""
    pairs: tuple[FinalPair, ...] = ()
    quality: Quality | None = None

    @property
    def best(self) -> Trial | None:
        """Return the trial whose job file is the best so far; None: there is none yet."""
        kept = [each for each in self.finished if each.outcome and each.outcome.speed and not each.is_undone]
        return kept[-1] if kept else None

    @property
    def first(self) -> Trial | None:
        """Return the trial of the job as it came; None: it was not measured yet."""
        return next(iter(self.finished), None)

    @property
    def finished(self) -> tuple[Trial, ...]:
        """Return the trials that were measured, or failed."""
        return tuple(each for each in self.trials if each.outcome is not None)

    @property
    def undone(self) -> Sequence[Trial]:
        """Return the trials whose changes were taken back."""
        return [each for each in self.trials if each.is_undone]
