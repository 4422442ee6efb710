"""How much of a search is left."""

from __future__ import annotations

import dataclasses

import pytest

from paceline.model.studies.studies import TrialOutcome, TrialPair
from paceline.model.studies.tunings import Judgement, Objective, Quality, Trial, Tuning
from paceline.tuning import estimates
from paceline.tuning.estimates import RunCount

FAST = TrialOutcome(examples_per_second=(10.0, 10.0))
KEPT = Judgement(kept=True, times=2.0, low=1.8, high=2.2, why="")
NEW = Tuning(name="x-trial", job="x", objective=Objective(), most_trials=4, source="", base="/")


def trials(count: int, judgement: Judgement | None = KEPT) -> tuple[Trial, ...]:
    return tuple(
        Trial(number=each, run="r", source="", outcome=FAST, judgement=judgement if each else None)
        for each in range(count)
    )


def test_runs_of_trials_and_of_the_proof() -> None:
    assert estimates.runs(NEW, pairs=0) == RunCount(done=0, most=4)
    assert estimates.runs(NEW, pairs=1) == RunCount(done=0, most=8)
    some = dataclasses.replace(NEW, trials=trials(2))
    assert estimates.runs(some, pairs=2) == RunCount(done=2, most=10)
    ended = dataclasses.replace(some, ended="nothing is left")
    assert estimates.runs(ended, pairs=2) == RunCount(done=2, most=8)
    proven = dataclasses.replace(ended, pairs=(TrialPair(before=FAST, after=FAST),))
    assert estimates.runs(proven, pairs=1) == RunCount(done=4, most=6)
    whole = dataclasses.replace(proven, quality=Quality(examples=1, auc_before=None, auc_after=None))
    assert estimates.runs(whole, pairs=1) == RunCount(done=6, most=6)


def test_what_is_no_better_is_not_proven() -> None:
    undone = dataclasses.replace(KEPT, kept=False)
    ended = dataclasses.replace(NEW, trials=trials(2, undone), ended="nothing is left")
    assert estimates.runs(ended, pairs=2) == RunCount(done=2, most=2)


def test_the_time_that_is_left_follows_from_the_runs_before() -> None:
    runs = RunCount(done=3, most=8)
    assert runs.seconds_left(3, 0.0, 5.0) is None
    assert runs.seconds_left(1, 60.0, 0.0) == pytest.approx(150.0)
    assert runs.seconds_left(1, 60.0, 20.0) == pytest.approx(130.0)
    assert runs.seconds_left(1, 60.0, 1000.0) == 0.0
