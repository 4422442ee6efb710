"""What came out of a search, in numbers."""

from __future__ import annotations

import dataclasses

import pytest
from support import searches
from support.searches import ENDED

from paceline.model.studies.studies import TrialPair
from paceline.tuning import summaries


def test_what_was_measured_in_turn_counts() -> None:
    found = summaries.summary(ENDED)
    assert found.factor == pytest.approx(8.2)
    assert found.factor_low is not None
    assert found.factor_high is not None
    assert 7 < found.factor_low < 8.2 < found.factor_high < 10
    assert (found.pairs, found.trials, found.kept) == (1, 4, 1)
    assert (found.examples_per_second_before, found.examples_per_second_after) == (1_500.0, 12_000.0)
    assert (found.auc_before, found.auc_after, found.auc_examples) == (0.7012, 0.7010, 45_000)


def test_more_pairs_tell_it_more_exactly_and_pairs_that_differ_less() -> None:
    def width(*after: float) -> float:
        pairs = tuple(
            TrialPair(before=searches.outcome(1_000.0), after=searches.outcome(each)) for each in after
        )
        found = summaries.summary(dataclasses.replace(ENDED, pairs=pairs))
        assert found.factor_low is not None
        assert found.factor_high is not None
        return found.factor_high / found.factor_low

    assert width(8_000.0, 8_000.0, 8_000.0) < width(8_000.0)
    assert width(4_000.0, 16_000.0) > width(8_000.0, 8_000.0)


def test_without_pairs_the_trials_say_it() -> None:
    found = summaries.summary(dataclasses.replace(ENDED, pairs=(), quality=None))
    assert found.factor == pytest.approx(8.0)
    assert (found.pairs, found.auc_before, found.auc_after) == (0, None, None)


def test_of_a_search_without_a_gain_nothing_is_told() -> None:
    found = summaries.summary(dataclasses.replace(ENDED, trials=ENDED.trials[:1], pairs=()))
    assert (found.factor, found.factor_low, found.factor_high) == (None, None, None)
    nothing = summaries.summary(dataclasses.replace(ENDED, trials=(), pairs=()))
    assert (nothing.factor, nothing.trials, nothing.examples_per_second_before) == (None, 0, None)
