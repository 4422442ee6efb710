"""Whether a trial is better than the best one before it, beyond what runs differ by anyway."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from paceline.model.deviations import NORMAL_90, students_t
from paceline.model.studies.tunings import FinalPair, Judgement, Loss, Objective, TrialOutcome

#: Standard deviation of the speed of runs of one job file, as a share of it: `calibrations.SPEED_SPREAD`.
RUN_SPREAD = 0.04
#: That of windows of one run beside each other, at least.
WINDOW_SPREAD = 0.01
#: By so much of itself the loss may be higher before a change counts as harm; noise within a trial is added.
LOSS_TOLERANCE = 0.01
#: The share of the examples that both have seen over which losses are compared: the last part, as the first
#: steps of any optimizer are wild.
_COMPARED = 0.5
_LEAST_LOSSES = 4


def judge(objective: Objective, best: TrialOutcome, trial: TrialOutcome) -> Judgement:
    """Return whether the changes of a trial stay.

    They do if it is within the limits, better with 95 % likelihood (the lower end of the interval is above 1)
    and does not learn worse. As long as nothing is within the limits, the fastest one is the best.
    """
    if not trial.examples_per_second or not best.examples_per_second:
        return Judgement(kept=False, times=0.0, low=0.0, high=0.0, why=trial.failure or "it did not train")
    score = objective.score if is_allowed(objective, best) else _speed
    times = score(trial.speed, trial.asked_cores) / score(best.speed, best.asked_cores)
    spread = NORMAL_90 * math.hypot(_spread(best), _spread(trial))
    low, high = times * math.exp(-spread), times * math.exp(spread)
    kept, why = True, f"{times:.2f} times as good"
    if is_allowed(objective, trial) != is_allowed(objective, best):
        kept = is_allowed(objective, trial)
        why = "it is within the limits, which it was not before" if kept else "it is not within the limits"
    elif high < 1:
        kept, why = False, "it is worse"
    elif low <= 1:
        kept, why = False, "no difference"
    elif (worse := harm(best, trial)) is not None:
        kept, why = False, worse
    return Judgement(kept=kept, times=times, low=low, high=high, why=why)


def in_turns(objective: Objective, before: TrialOutcome, after: TrialOutcome) -> Judgement:
    """Return whether changes stay that were tried in turn within one run, window after window.

    Each window is held against those of the other side beside it, so the noise is that of windows, and not of
    runs (`RUN_SPREAD`): their standard deviation with Student's t, and at least `WINDOW_SPREAD`.
    """
    if not before.speed or not after.speed:
        return Judgement(kept=False, times=0.0, low=0.0, high=0.0, why="it did not train")
    logs = [
        math.log(objective.score(new, after.asked_cores) / objective.score(old, before.asked_cores))
        for old, new in zip(before.examples_per_second, after.examples_per_second, strict=True)
        if old and new
    ]
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


def proven(objective: Objective, pairs: Sequence[FinalPair]) -> tuple[float, float, float] | None:
    """Return how many times as good the second of each pair is, and between which that lies with 90 %.

    The middle is the geometric mean. How much few pairs differ is not certain, so at least what runs differ
    by anyway is taken. None: there is no pair, or one did not train.
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
    """Whether a trial is within the limits of what is asked for."""
    return objective.allows(outcome.speed, outcome.asked_cores)


def interval(outcome: TrialOutcome) -> tuple[float, float, float] | None:
    """Return the speed of a run, and between which that of its like lies with 90 %; None: it has none."""
    if not outcome.speed:
        return None
    spread = NORMAL_90 * _spread(outcome)
    return outcome.speed, outcome.speed * math.exp(-spread), outcome.speed * math.exp(spread)


def loss(outcome: TrialOutcome, examples: int) -> float | None:
    """Return the loss over the last part of so many examples; None: too little is known of that."""
    found = _between(outcome.losses, examples * (1 - _COMPARED), examples)
    return statistics.mean(found) if len(found) >= _LEAST_LOSSES else None


def _speed(examples_per_second: float, _cores: float | None) -> float:
    return examples_per_second


def _spread(outcome: TrialOutcome) -> float:
    """Return the standard deviation of the logarithm of a speed: between runs, and within this one."""
    found = outcome.examples_per_second
    if len(found) < 2 or outcome.speed <= 0:
        return RUN_SPREAD
    within = statistics.stdev(found) / outcome.speed / math.sqrt(len(found))
    return math.hypot(RUN_SPREAD, within)


def harm(best: TrialOutcome, trial: TrialOutcome) -> str | None:
    """Return that a trial learns worse, by the loss after as many examples; None: nothing shows it."""
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
