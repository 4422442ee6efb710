"""What holds of a search when it is run again."""

from __future__ import annotations

import dataclasses

import pytest
from support.searches import ENDED, SHORT, TUNED, outcome

from paceline.model.studies.studies import TrialOutcome, TrialPair
from paceline.model.studies.tunings import Judgement, Objective, Quality, Trial, Tuning
from paceline.tuning import proofs

#: A third trial that is kept, on top of the first one that is.
MORE = Trial(
    number=4, run="clicks-trial-4", source=TUNED, base=1, proposals=(SHORT,), outcome=outcome(14_000.0),
    judgement=Judgement(kept=True, times=1.2, low=1.1, high=1.3, why="1.20 times as good"),
)  # fmt: skip


def kept(tuning: Tuning | None) -> list[int]:
    assert tuning is not None
    return [each.number for each in tuning.finished if each.judgement is None or each.judgement.kept]


def test_what_is_borne_out_stays() -> None:
    assert proofs.withdrawn(ENDED) is None
    assert proofs.withdrawn(dataclasses.replace(ENDED, pairs=())) is None


@pytest.mark.parametrize("speed", [1_500.0, 1_550.0, 900.0])
def test_what_is_no_faster_when_it_is_run_again_goes_whole(speed: float) -> None:
    again = TrialPair(before=outcome(1_500.0), after=outcome(speed))
    searched = dataclasses.replace(ENDED, trials=(*ENDED.trials, MORE), pairs=(again, again))
    less = proofs.withdrawn(searched)
    assert kept(less) == [0]
    assert less is not None
    assert (less.pairs, less.quality) == ((), None)
    assert less.best is not None
    assert less.best.number == 0
    assert proofs.withdrawn(less) is None


def test_what_does_not_train_when_it_is_run_again_goes() -> None:
    again = TrialPair(before=outcome(1_500.0), after=TrialOutcome(failure="killed"))
    assert kept(proofs.withdrawn(dataclasses.replace(ENDED, pairs=(again,)))) == [0]


def test_the_last_change_by_which_less_may_be_learnt_goes_first() -> None:
    quality = Quality(examples=10_000, auc_before=0.71, auc_after=0.70)
    both = dataclasses.replace(ENDED, trials=(*ENDED.trials, MORE), quality=quality)
    less = proofs.withdrawn(both)
    assert kept(less) == [0, 1]
    assert less is not None
    assert less.undone[-1].judgement is not None
    assert less.undone[-1].judgement.why == "AUC 0.7000 after 10,000 examples, of the job as it came 0.7100"
    again = dataclasses.replace(less, pairs=ENDED.pairs, quality=quality)
    assert kept(proofs.withdrawn(again)) == [0]


def test_a_little_less_is_no_harm_and_neither_is_what_was_not_evaluated() -> None:
    for auc in (0.7085, None):
        quality = Quality(examples=10_000, auc_before=0.71, auc_after=auc)
        assert proofs.withdrawn(dataclasses.replace(ENDED, quality=quality)) is None


def test_what_is_within_the_limits_at_last_need_not_be_faster() -> None:
    first = dataclasses.replace(
        ENDED.trials[0], outcome=dataclasses.replace(outcome(1_500.0), asked_cores=9.0)
    )
    slower = TrialPair(before=outcome(1_500.0), after=outcome(1_000.0))
    limited = dataclasses.replace(
        ENDED,
        objective=Objective(most_cores=4.0),
        trials=(first, *ENDED.trials[1:]),
        pairs=(slower,),
    )
    assert proofs.withdrawn(limited) is None
