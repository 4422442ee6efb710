"""Judgements: whether a trial is better than the best one before it, beyond the ordinary spread of runs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from paceline.model.deviations import NORMAL_90, students_t
from paceline.model.studies.studies import Loss, TrialOutcome, TrialPair
from paceline.model.studies.tunings import Judgement, Objective

#: Standard deviation of the speed of runs of one job file, as a share of it: `calibrations.SPEED_SPREAD`.
RUN_SPREAD = 0.04
#: The least standard deviation between adjacent windows of one run, as a share of the speed.
WINDOW_SPREAD = 0.01
#: The loss may be higher by this share before a change counts as harm; the noise within a trial is added.
LOSS_TOLERANCE = 0.01
#: Losses are compared over the last part of the examples that both trials have seen, this share of them, as
#: losses in the first steps of any optimizer vary wildly.
_COMPARED = 0.5
_LEAST_LOSSES = 4


def judge(objective: Objective, best: TrialOutcome, trial: TrialOutcome) -> Judgement:
    """Return whether the changes of a trial stay.

    They stay if the trial is within the limits, is better with a probability of 95 % (the lower end of the
    interval is above 1), and does not learn worse. As long as no trial is within the limits, the fastest
    trial is the best.
    """
    if not trial.examples_per_second or not best.examples_per_second:
        return Judgement(kept=False, times=0.0, low=0.0, high=0.0, why=trial.failure or "it did not train")
    score = objective.score if is_allowed(objective, best) else _speed
    times = score(trial.speed, trial.asked_cores) / score(best.speed, best.asked_cores)
    spread = NORMAL_90 * math.hypot(_spread(best), _spread(trial))
    low, high = times * math.exp(-spread), times * math.exp(spread)
    is_kept, why = True, f"{times:.2f} times as good"
    if is_allowed(objective, trial) != is_allowed(objective, best):
        is_kept = is_allowed(objective, trial)
        why = "it is within the limits, which it was not before" if is_kept else "it is not within the limits"
    elif high < 1:
        is_kept, why = False, "it is worse"
    elif low <= 1:
        is_kept, why = False, "no difference"
    elif (worse := harm(best, trial)) is not None:
        is_kept, why = False, worse
    return Judgement(kept=is_kept, times=times, low=low, high=high, why=why)


def in_turns(objective: Objective, before: TrialOutcome, after: TrialOutcome) -> Judgement:
    """Return whether changes stay that were tried in turn within one run, window after window.

    Each window is compared with the adjacent window of the other side, so the noise is that of windows, not
    that of runs (`RUN_SPREAD`): their standard deviation, at least `WINDOW_SPREAD`, with Student's t.
    """
    if not before.speed or not after.speed:
        return Judgement(kept=False, times=0.0, low=0.0, high=0.0, why="it did not train")
    logs = [
        math.log(objective.score(new, after.asked_cores) / objective.score(old, before.asked_cores))
        for old, new in zip(before.examples_per_second, after.examples_per_second, strict=True)
        if old and new
    ]
    if not logs:
        why = "there are no two windows in turn in which it trained"
        return Judgement(kept=False, times=0.0, low=0.0, high=0.0, why=why)
    middle = statistics.fmean(logs)
    spread = WINDOW_SPREAD if len(logs) < 2 else max(WINDOW_SPREAD, statistics.stdev(logs))
    half = students_t(0.90, len(logs) - 1) * spread / math.sqrt(len(logs))
    times, low, high = (math.exp(each) for each in (middle, middle - half, middle + half))
    if not is_allowed(objective, after):
        kept, why = False, "it is not within the limits"
    elif high < 1:
        kept, why = False, "it is worse"
    elif low <= 1:
        kept, why = False, "no difference"
    else:
        kept, why = True, f"{times:.2f} times as good, in turn within one run"
    return Judgement(kept=kept, times=times, low=low, high=high, why=why)


def proven(objective: Objective, pairs: Sequence[TrialPair]) -> tuple[float, float, float] | None:
    """Return how many times as good the second run of a pair is, with the interval of 90 %.

    The middle is the geometric mean over the pairs. The spread of a few pairs is uncertain, so it is taken to
    be at least the ordinary spread of runs. None: there is no pair, or a run did not train.
    """
    if not pairs or not all(each.before.speed and each.after.speed for each in pairs):
        return None
    logs = [
        math.log(
            objective.score(each.after.speed, each.after.asked_cores)
            / objective.score(each.before.speed, each.before.asked_cores)
        )
        for each in pairs
    ]
    middle = statistics.mean(logs)
    found = statistics.stdev(logs) if len(logs) > 1 else 0.0
    spread = NORMAL_90 * max(found, math.sqrt(2) * RUN_SPREAD) / math.sqrt(len(logs))
    return math.exp(middle), math.exp(middle - spread), math.exp(middle + spread)


def is_allowed(objective: Objective, outcome: TrialOutcome) -> bool:
    """Whether a trial is within the limits of the objective."""
    return objective.allows(outcome.speed, outcome.asked_cores)


def interval(outcome: TrialOutcome) -> tuple[float, float, float] | None:
    """Return the speed of a run, with the interval of 90 % for runs like it; None: it has no speed."""
    if not outcome.speed:
        return None
    spread = NORMAL_90 * _spread(outcome)
    return outcome.speed, outcome.speed * math.exp(-spread), outcome.speed * math.exp(spread)


def loss(outcome: TrialOutcome, examples: int) -> float | None:
    """Return the mean loss over the last part of a number of examples; None: too few losses are known."""
    found = _between(outcome.losses, examples * (1 - _COMPARED), examples)
    return statistics.mean(found) if len(found) >= _LEAST_LOSSES else None


def _speed(examples_per_second: float, _cores: float | None) -> float:
    return examples_per_second


def _spread(outcome: TrialOutcome) -> float:
    """Return the standard deviation of the logarithm of a speed, between runs and within this run."""
    found = outcome.examples_per_second
    if len(found) < 2 or outcome.speed <= 0:
        return RUN_SPREAD
    within = statistics.stdev(found) / outcome.speed / math.sqrt(len(found))
    return math.hypot(RUN_SPREAD, within)


def harm(best: TrialOutcome, trial: TrialOutcome) -> str | None:
    """Return that a trial learns worse, by the loss after equally many examples; None: nothing shows it."""
    common = min(each.losses[-1].examples if each.losses else 0 for each in (best, trial))
    first = common * (1 - _COMPARED)
    before, after = (_between(each.losses, first, common) for each in (best, trial))
    if min(len(before), len(after)) < _LEAST_LOSSES:
        return None
    errors = (statistics.stdev(each) / math.sqrt(len(each)) for each in (before, after))
    noise = NORMAL_90 * math.hypot(*errors)
    old, new = statistics.mean(before), statistics.mean(after)
    if new <= old * (1 + LOSS_TOLERANCE) + noise:
        return None
    return f"it learns worse: after {common:,} examples the loss is {new:.4f}, was {old:.4f}"


def _between(losses: Sequence[Loss], first: float, last: float) -> list[float]:
    return [each.value for each in losses if first <= each.examples <= last and math.isfinite(each.value)]
