"""What is tried next, and when a search ends."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from paceline.model.explanations.causes import FieldChange, Gain
from paceline.model.studies.proposals import Proposal
from paceline.model.studies.studies import TrialOutcome
from paceline.model.studies.tunings import Judgement, Objective, Trial, Tuning
from paceline.tuning import searches

LEAST = 1.1
FIRST = Trial(number=0, run="t-0", source="", outcome=TrialOutcome(examples_per_second=(1.0,)))


def proposal(name: str, gain: float, *, field: str | None = None, value: object = 1) -> Proposal:
    return Proposal(
        name=name,
        what="",
        changes=(FieldChange(path=("spec", *(field or name).split(".")), value=value),),
        gain=Gain(low=gain, high=gain),
        basis="",
    )


def tuning(*trials: Trial, most: int = 8) -> Tuning:
    return Tuning(
        name="t",
        job="t",
        objective=Objective(),
        most_trials=most,
        source="",
        base="/",
        trials=(FIRST, *trials),
    )


def undone(number: int, *proposals: Proposal) -> Trial:
    return Trial(
        number=number,
        run=f"t-{number}",
        source="",
        base=0,
        proposals=proposals,
        outcome=TrialOutcome(examples_per_second=(0.5,)),
        judgement=Judgement(kept=False, times=0.5, low=0.4, high=0.6, why="it is worse"),
    )


def names(found: Sequence[Proposal]) -> list[str]:
    return [each.name for each in found]


def test_the_likeliest_is_tried_first() -> None:
    found = searches.worth([proposal("a", 1.2), proposal("b", 3.0)], LEAST)
    assert names(searches.chosen(tuning(), found)) == ["b"]


def test_what_is_within_the_noise_is_not_worth_a_trial() -> None:
    assert searches.worth([proposal("a", 1.05)], LEAST) == []
    assert searches.worth([proposal("a", 1.05)], 1.02)


def test_a_change_without_a_known_gain_is_not_worth_a_trial() -> None:
    unknown = Proposal(name="a", what="", changes=(), gain=None, basis="")
    assert searches.worth([unknown], LEAST) == []


def test_with_few_trials_left_several_are_tried_at_once() -> None:
    found = [proposal(name, 2.0) for name in "abcd"]
    assert names(searches.chosen(tuning(most=3), found)) == ["a", "b"]
    assert names(searches.chosen(tuning(most=2), found)) == ["a", "b", "c", "d"]


def test_two_that_change_one_field_are_not_tried_at_once() -> None:
    found = [proposal("a", 2.0, field="roles.ps"), proposal("b", 1.5, field="roles.ps.cpu")]
    assert names(searches.chosen(tuning(most=2), found)) == ["a"]


def test_what_may_learn_otherwise_is_tried_alone() -> None:
    learning = proposal("a", 2.0, field="training.optimizer.name")
    assert learning.relearns
    assert names(searches.chosen(tuning(most=2), [learning, proposal("b", 1.5)])) == ["a"]
    assert names(searches.chosen(tuning(most=2), [proposal("b", 3.0), learning])) == ["b"]


def test_what_was_taken_back_is_not_tried_again_but_parts_of_it_are() -> None:
    one, other = proposal("a", 2.0), proposal("b", 1.5)
    both = undone(1, one, other)
    assert names(searches.chosen(tuning(both, most=3), [one, other])) == ["a"]
    assert names(searches.chosen(tuning(both, undone(2, one)), [one, other])) == ["b"]
    assert searches.chosen(tuning(undone(1, one), undone(2, other)), [one, other]) == ()


def test_another_value_of_a_field_is_another_change() -> None:
    failed = undone(1, proposal("a", 2.0, value=4))
    assert names(searches.chosen(tuning(failed), [proposal("a", 2.0, value=8)])) == ["a"]


@given(st.lists(st.floats(0.1, 10.0), max_size=12), st.integers(2, 20))
def test_a_search_ends_when_all_is_taken_back(gains: list[float], most: int) -> None:
    found = searches.worth([proposal(f"p{number}", gain) for number, gain in enumerate(gains)], LEAST)
    trials: list[Trial] = []
    while chosen := searches.chosen(tuning(*trials, most=most), found):
        trials.append(undone(len(trials) + 1, *chosen))
        assert len(trials) <= 3 * len(found)
    tried = {each.name for trial in trials for each in trial.proposals if len(trial.proposals) == 1}
    assert tried == {each.name for each in found}
