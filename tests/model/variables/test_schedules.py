"""Learning-rate schedules: what holds of all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.model.variables import schedules

SCHEDULES = st.builds(
    schedules.LearningRateSchedule,
    decay=st.sampled_from(["exponential", "polynomial", "cosine"]),
    warmup_steps=st.integers(0, 1000),
    decay_steps=st.integers(1, 10_000),
    end_factor=st.floats(0.001, 1),
)


def factors(schedule, steps):
    return schedule.factor(np.asarray(steps, dtype=np.float64), np) * np.ones(len(steps))


@given(SCHEDULES)
def test_a_rate_grows_to_its_height_and_then_falls(schedule):
    steps = np.arange(schedule.warmup_steps + 200)
    found = factors(schedule, steps)
    assert (np.diff(found[: schedule.warmup_steps]) >= 0).all()
    assert (np.diff(found[schedule.warmup_steps :]) <= 1e-12).all()
    assert (found >= 0).all()
    assert found.max() <= 1
    assert found[schedule.warmup_steps] == pytest.approx(1)


@given(SCHEDULES)
def test_the_end_factor_is_reached_after_the_decay(schedule):
    end = schedule.warmup_steps + schedule.decay_steps
    at_end, later = factors(schedule, [end, end + schedule.decay_steps])
    assert at_end == pytest.approx(schedule.end_factor)
    expected = schedule.end_factor**2 if schedule.decay == "exponential" else schedule.end_factor
    assert later == pytest.approx(expected)


@given(st.integers(1, 1000))
def test_a_warm_up_alone_is_a_line(steps):
    found = factors(schedules.LearningRateSchedule(warmup_steps=steps), range(steps + 3))
    np.testing.assert_allclose(found[:steps], np.arange(1, steps + 1) / steps)
    assert (found[steps:] == 1).all()


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (schedules.LearningRateSchedule(decay_steps=3), "decay_steps needs a decay"),
        (schedules.LearningRateSchedule("cosine"), "the decay cosine needs decay_steps"),
        (
            schedules.LearningRateSchedule("cosine", decay_steps=5, power=2),
            "power belongs to the decay polynomial",
        ),
        (schedules.LearningRateSchedule("exponential", decay_steps=5), "needs an end_factor above 0"),
        (
            schedules.LearningRateSchedule("exponential", decay_steps=5, end_factor=0),
            "needs an end_factor above 0",
        ),
    ],
)
def test_keys_that_do_not_go_together(schedule, message):
    assert message in schedule.conflict()


@given(SCHEDULES)
def test_keys_that_do(schedule):
    assert schedule.conflict() is None
