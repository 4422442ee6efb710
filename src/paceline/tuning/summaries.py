"""The result of a search in a few numbers."""

from __future__ import annotations

import dataclasses

from paceline.model.studies.tunings import Tuning
from paceline.tuning import judgements


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SearchSummary:
    """The result of a search; None: not measured.

    Attributes:
        factor: how many times as good the best job file is as the first one.
        factor_low, factor_high: the interval of this factor, with 90 %.
        pairs: the number of pairs of runs, in turn, that it was measured by; 0: it comes from the trials,
            which were minutes apart.
        examples_per_second_before, examples_per_second_after: the speeds of the first and the best trial.
        auc_before, auc_after: the AUC of both after `auc_examples` examples.
        trials: the number of finished trials, including the original job.
        kept: the number of these whose changes stay.
    """

    factor: float | None
    factor_low: float | None
    factor_high: float | None
    pairs: int
    examples_per_second_before: float | None
    examples_per_second_after: float | None
    auc_before: float | None
    auc_after: float | None
    auc_examples: int | None
    trials: int
    kept: int


def summary(tuning: Tuning) -> SearchSummary:
    """Return the result of a search so far."""
    factor, low, high = _factor(tuning) or (None, None, None)
    first, best, quality = tuning.first, tuning.best, tuning.quality
    speeds = [trial.outcome.speed if trial and trial.outcome else None for trial in (first, best)]
    return SearchSummary(
        factor=factor,
        factor_low=low,
        factor_high=high,
        pairs=len(tuning.pairs),
        examples_per_second_before=speeds[0] or None,
        examples_per_second_after=speeds[1] or None,
        auc_before=quality.auc_before if quality else None,
        auc_after=quality.auc_after if quality else None,
        auc_examples=quality.examples if quality else None,
        trials=len(tuning.finished),
        kept=sum(trial.is_kept for trial in tuning.finished),
    )


def _factor(tuning: Tuning) -> tuple[float, float, float] | None:
    proven = judgements.proven(tuning.objective, tuning.pairs)
    if proven is not None:
        return proven
    first, best = tuning.first, tuning.best
    if not (first and first.outcome and best and best.outcome and best.number):
        return None
    found = judgements.judge(tuning.objective, first.outcome, best.outcome)
    return found.times, found.low, found.high
