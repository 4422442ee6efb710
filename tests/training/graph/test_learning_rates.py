"""The rates of a step on each server: counted there, sent by no trainer."""

import numpy as np
import pytest

from paceline.model.variables import schedules
from paceline.training import settings

pytestmark = pytest.mark.slow

WARM = settings.Optimizer("adagrad", 0.5, schedules.LearningRateSchedule("cosine", 4, 10))
PLAIN = settings.Optimizer("ftrl", 0.1)


def test_every_server_counts_the_steps_that_it_applies():
    import tensorflow.compat.v1 as tf1

    from paceline.training.graph import learning_rates

    with tf1.Graph().as_default(), tf1.Session() as session:
        made = learning_rates.create({"deep": WARM, "wide": PLAIN}, [1, 0, 1], lambda _: "")
        found = {server: made.next(server, tf1.constant(0))[0] for server in (0, 1)}
        step = tf1.placeholder(tf1.int64, [])
        renewed = tf1.group(*made.renewed(step))
        several = made.next(0, tf1.constant(0), 3)
        session.run(tf1.global_variables_initializer())
        first = [session.run(found[0]) for _ in range(20)]
        assert session.run(found[1]) == first[0]
        session.run(renewed, {step: 7})
        assert [session.run(found[server]) for server in (0, 1)] == [first[7]] * 2
        session.run(renewed, {step: 7})
        assert session.run(several) == first[7:10]
    expected = 0.5 * WARM.schedule.factor(np.arange(20.0), np)
    np.testing.assert_allclose([each["deep"] for each in first], expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose([each["wide"] for each in first], 0.1, rtol=1e-6)


def test_nothing_is_counted_for_constant_rates():
    import tensorflow.compat.v1 as tf1

    from paceline.training.graph import learning_rates

    with tf1.Graph().as_default():
        made = learning_rates.create({"deep": PLAIN, "wide": PLAIN}, [0, 1], lambda _: "")
        assert made.next(1, tf1.constant(0)) == [{"deep": 0.1, "wide": 0.1}]
        assert tf1.global_variables() == []


DECAYS = {
    "constant": schedules.LearningRateSchedule(),
    "exponential": schedules.LearningRateSchedule("exponential", decay_steps=50, end_factor=0.5),
    "line": schedules.LearningRateSchedule("polynomial", decay_steps=80, end_factor=0.1),
    "square root": schedules.LearningRateSchedule("polynomial", decay_steps=80, power=0.5),
    "cosine": schedules.LearningRateSchedule("cosine", decay_steps=80, end_factor=0.2),
}


@pytest.mark.parametrize("name", DECAYS)
def test_tensorflow_has_the_same_rates(name):
    import tensorflow as tf
    import tensorflow.compat.v1 as tf1

    steps = np.arange(0, 200, 7, dtype=np.float64)
    with tf1.Graph().as_default(), tf1.Session() as session:
        step = tf1.placeholder(tf.float64, [])
        decayed = {
            "constant": lambda: tf.constant(1.0),
            "exponential": lambda: tf1.train.exponential_decay(1.0, step, 50, 0.5),
            "line": lambda: tf1.train.polynomial_decay(1.0, step, 80, 0.1),
            "square root": lambda: tf1.train.polynomial_decay(1.0, step, 80, 0.0, power=0.5),
            "cosine": lambda: tf1.train.cosine_decay(1.0, step, 80, alpha=0.2),
        }[name]()
        own = tf.constant(1.0, tf.float64) * DECAYS[name].factor(step, tf)
        found = [session.run([own, decayed], {step: each}) for each in steps]
    np.testing.assert_allclose([each[0] for each in found], [each[1] for each in found], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose([each[0] for each in found], DECAYS[name].factor(steps, np), rtol=1e-12)
