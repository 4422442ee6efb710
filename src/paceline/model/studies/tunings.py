"""A search for a better job file: its objective, and the trials that were made on the way."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence

from paceline.model.instants import UnixSeconds
from paceline.model.studies.proposals import Proposal
from paceline.model.studies.studies import Study, TrialOutcome, TrialPair


class Goal(enum.StrEnum):
    """The goal of a search."""

    FASTEST = "fastest"  # as many examples a second as possible
    CHEAPEST = "cheapest"  # as many examples for each second of the cores that it asks for


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What a search should achieve, and its limits.

    Attributes:
        goal: what to optimize.
        most_cores: the most cores that the job may ask for; None: any number.
        least_examples_per_second: the speed that the job has to reach, as for a deadline; None: any speed.
        batch_size: whether the batch size may change.
        relearning: whether changes are allowed with which the model may learn differently.
    """

    goal: Goal = Goal.FASTEST
    most_cores: float | None = None
    least_examples_per_second: float | None = None
    batch_size: bool = False
    relearning: bool = True

    def score(self, examples_per_second: float, cores: float | None) -> float:
        """Return the score of a layout; the highest is the best.

        Args:
            examples_per_second: its speed.
            cores: the cores that it asks for; None: not limited, so their cost does not count.
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
        """Whether a number of cores is within the limits."""
        return self.most_cores is None or cores is None or cores <= self.most_cores * (1 + 1e-9)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A trial compared with the best trial before it.

    Attributes:
        kept: whether its changes stay.
        times: how many times as good it is.
        low, high: the interval of ``times``.
        why: the reason, in one sentence.
    """

    kept: bool
    times: float
    low: float
    high: float
    why: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A trial: a job file that is run and measured.

    Attributes:
        number: 0 is the original job.
        run: the name of its run.
        source: its job file.
        base: the number of the trial whose job file it changes; None: it changes none.
        proposals: the changes.
        outcome: what was measured; None: the trial is under way.
        judgement: the comparison with the best trial before it; None: there was none to compare with.
        since: when its run took on this job file; None: the run always had it, or never.
    """

    number: int
    run: str
    source: str
    base: int | None = None
    proposals: tuple[Proposal, ...] = ()
    outcome: TrialOutcome | None = None
    judgement: Judgement | None = None
    since: UnixSeconds | None = None

    @property
    def is_in_turn(self) -> bool:
        """Whether it was tried within the run of another trial."""
        return self.number > 0 and not self.run.endswith(f"-{self.number}")

    @property
    def is_kept(self) -> bool:
        """Whether its changes were judged and stay."""
        return self.judgement is not None and self.judgement.kept

    @property
    def is_undone(self) -> bool:
        """Whether its changes were judged and taken back."""
        return self.judgement is not None and not self.judgement.kept


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """The AUC of the original and of the best job after equally many examples; None: not evaluated."""

    examples: int
    auc_before: float | None
    auc_after: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tuning(Study):
    """A search with its results so far.

    Attributes:
        job: the name of the job.
        objective: the objective.
        most_trials: the most trials that may be made.
        trials: the trials in order; only the last may be under way.
        ended: why the search ended; empty: it goes on.
        pairs: the pairs of runs that verify its result.
        quality: see `Quality`; None: not compared.
    """

    job: str
    objective: Objective
    most_trials: int
    trials: tuple[Trial, ...] = ()
    ended: str = ""
    pairs: tuple[TrialPair, ...] = ()
    quality: Quality | None = None

    @property
    def done_runs(self) -> int:
        """Return how many trials were measured, or failed."""
        return len(self.finished)

    @property
    def planned_runs(self) -> int:
        """Return the most trials that may be made."""
        return self.most_trials

    @property
    def is_complete(self) -> bool:
        """Whether the search has ended."""
        return bool(self.ended)

    @property
    def best(self) -> Trial | None:
        """Return the trial whose job file is the best so far; None: there is none yet."""
        kept = [each for each in self.finished if each.outcome and each.outcome.speed and not each.is_undone]
        return kept[-1] if kept else None

    @property
    def first(self) -> Trial | None:
        """Return the trial of the original job; None: it was not measured yet."""
        return next(iter(self.finished), None)

    @property
    def finished(self) -> tuple[Trial, ...]:
        """Return the trials that were measured, or failed."""
        return tuple(each for each in self.trials if each.outcome is not None)

    @property
    def undone(self) -> Sequence[Trial]:
        """Return the trials whose changes were taken back."""
        return [each for each in self.trials if each.is_undone]
