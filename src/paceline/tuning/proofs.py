"""Whether the result of a search holds when it is run again in turn with the original job."""

from __future__ import annotations

import dataclasses

from paceline.model.studies.tunings import Quality, Trial, Tuning
from paceline.tuning import judgements

#: The AUC after equally many examples may be lower by this much before that counts as harm.
AUC_TOLERANCE = 0.002


def withdrawn(tuning: Tuning) -> Tuning | None:
    """Return a search without the changes that its verification refutes; None: it confirms all of them.

    If the best job file is no better when both run in turn, all kept changes are undone: a part of them would
    bring even less. If the model learns worse, the last change that can be the reason is undone, with all
    changes made on top of it; the best job file that is left has to be verified again.
    """
    best, first = tuning.best, tuning.first
    if best is None or not best.number or not tuning.pairs or first is None or first.outcome is None:
        return None
    # If the original job is not within the limits, the best one need not be faster.
    if judgements.is_allowed(tuning.objective, first.outcome):
        found = judgements.proven(tuning.objective, tuning.pairs)
        if found is None:
            return _without(tuning, 0, "run again, it did not train")
        if found[1] <= 1:
            times, low, high = found
            return _without(tuning, 0, f"run in turn: {times:.2f} times ({low:.2f} to {high:.2f})")
    suspects = [each.number for each in tuning.finished if each.is_kept and _relearns(each)]
    if suspects and (harm := _harm(tuning.quality)) is not None:
        return _without(tuning, suspects[-1], harm)
    return None


def _harm(quality: Quality | None) -> str | None:
    """Return the message that the best job learns less from equally many examples; None: it does not."""
    if quality is None or quality.auc_before is None or quality.auc_after is None:
        return None
    if quality.auc_after >= quality.auc_before - AUC_TOLERANCE:
        return None
    return (
        f"AUC {quality.auc_after:.4f} after {quality.examples:,} examples, of the job as it came "
        f"{quality.auc_before:.4f}"
    )


def _relearns(trial: Trial) -> bool:
    return any(each.relearns for each in trial.proposals)


def _without(tuning: Tuning, first: int, why: str) -> Tuning:
    """Return a search with all trials from a number on undone, and without its verification."""
    trials = tuple(
        dataclasses.replace(each, judgement=dataclasses.replace(each.judgement, kept=False, why=why))
        if each.judgement and each.is_kept and each.number >= first
        else each
        for each in tuning.trials
    )
    return dataclasses.replace(tuning, trials=trials, pairs=(), quality=None)
