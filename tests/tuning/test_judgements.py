"""Whether a trial stays."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from paceline.model.studies.studies import Loss, TrialOutcome
from paceline.model.studies.tunings import Goal, Objective
from paceline.tuning.judgements import in_turns, judge

FASTEST = Objective()


def outcome(speed: float, *, cores: float | None = 4.0, loss: float = 0.5) -> TrialOutcome:
    return TrialOutcome(
        examples_per_second=(speed * 0.99, speed, speed * 1.01),
        asked_cores=cores,
        losses=tuple(Loss(examples=1000 * number, value=loss) for number in range(1, 40)),
    )


def test_what_is_faster_beyond_the_noise_stays() -> None:
    found = judge(FASTEST, outcome(100), outcome(130))
    assert found.kept
    assert 1 < found.low < 1.3 < found.high
    assert math.isclose(found.times, 1.3)


def test_what_is_within_the_noise_is_no_difference() -> None:
    found = judge(FASTEST, outcome(100), outcome(105))
    assert (found.kept, found.why) == (False, "no difference")


def test_what_is_slower_is_worse() -> None:
    assert judge(FASTEST, outcome(100), outcome(70)).why == "it is worse"


def test_speeds_that_vary_much_have_to_differ_more() -> None:
    wild = TrialOutcome(examples_per_second=(60, 200, 100, 220, 70), asked_cores=4.0)
    assert judge(FASTEST, outcome(100), outcome(130)).kept
    assert not judge(FASTEST, outcome(100), wild).kept


def test_what_learns_worse_is_taken_back_however_fast_it_is() -> None:
    found = judge(FASTEST, outcome(100, loss=0.45), outcome(1000, loss=0.47))
    assert not found.kept
    assert "it learns worse: after 39,000 examples the loss is 0.4700, was 0.4500" in found.why


def test_losses_are_compared_after_as_many_examples() -> None:
    slow = TrialOutcome(
        examples_per_second=(10, 10), losses=tuple(Loss(examples=10 * n, value=0.7) for n in range(1, 20))
    )
    # It has come further, so its last losses are lower; after as many examples it had 0.8.
    fast = TrialOutcome(
        examples_per_second=(100, 100),
        losses=tuple(Loss(examples=10 * n, value=0.8 if n < 20 else 0.3) for n in range(1, 200)),
    )
    assert "it learns worse" in judge(FASTEST, slow, fast).why


def test_of_too_few_losses_nothing_is_said() -> None:
    few = TrialOutcome(examples_per_second=(200, 200), losses=(Loss(examples=10, value=9.0),))
    assert judge(FASTEST, outcome(100), few).kept


def test_what_did_not_train_says_why() -> None:
    failed = TrialOutcome(failure="ps-0 was killed: out of memory")
    assert judge(FASTEST, outcome(100), failed).why == "ps-0 was killed: out of memory"


def test_the_cheapest_has_the_most_examples_for_its_cores() -> None:
    cheapest = Objective(goal=Goal.CHEAPEST)
    assert judge(cheapest, outcome(100, cores=4.0), outcome(90, cores=2.0)).kept
    assert not judge(cheapest, outcome(100, cores=4.0), outcome(150, cores=8.0)).kept


def test_what_is_too_slow_for_a_deadline_is_taken_back() -> None:
    deadline = Objective(goal=Goal.CHEAPEST, least_examples_per_second=95)
    found = judge(deadline, outcome(100, cores=4.0), outcome(90, cores=1.0))
    assert (found.kept, found.why) == (False, "it is not within the limits")


def test_from_beyond_the_limits_it_comes_back_even_if_that_is_slower() -> None:
    small = Objective(most_cores=4.0)
    assert judge(small, outcome(100, cores=8.0), outcome(60, cores=4.0)).kept


def test_as_long_as_nothing_is_within_the_limits_the_faster_one_stays() -> None:
    deadline = Objective(goal=Goal.CHEAPEST, least_examples_per_second=1000)
    assert judge(deadline, outcome(100, cores=1.0), outcome(200, cores=4.0)).kept


@given(st.floats(1e-3, 1e9), st.floats(1e-3, 1e9), st.lists(st.floats(0.5, 1.5), min_size=2, max_size=6))
def test_it_never_keeps_what_may_be_a_loss(before: float, after: float, noise: list[float]) -> None:
    first = TrialOutcome(examples_per_second=tuple(before * each for each in noise))
    then = TrialOutcome(examples_per_second=tuple(after * each for each in reversed(noise)))
    found = judge(FASTEST, first, then)
    assert found.low <= found.times <= found.high
    assert not (found.kept and found.low <= 1)


def test_turns_in_which_never_both_trained_are_not_judged() -> None:
    before = TrialOutcome(examples_per_second=(0.0, 100.0), asked_cores=4.0)
    after = TrialOutcome(examples_per_second=(100.0, 0.0), asked_cores=4.0)
    found = in_turns(FASTEST, before, after)
    assert (found.kept, found.why) == (False, "there are no two windows in turn in which it trained")
