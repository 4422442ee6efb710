"""Every optimizer against its formula in NumPy: rows used, and rows not used."""

import numpy as np
import pytest

from paceline.training import settings

pytestmark = pytest.mark.slow

ROWS, WIDTH, STEPS, RATE = 12, 3, 6, 0.1
USED = np.array([1, 4, 7], dtype=np.int32)


def gradients():
    return np.random.default_rng(0).normal(size=(STEPS, len(USED), WIDTH)).astype(np.float32)


def start():
    return np.random.default_rng(1).normal(size=(ROWS, WIDTH)).astype(np.float32)


def dense(gradient):
    """The gradient of the whole table: zero where no row is used."""
    whole = np.zeros((ROWS, WIDTH), dtype=np.float64)
    whole[USED] = gradient
    return whole


def adagrad(value, every):
    total = np.full_like(value, 0.1)
    for gradient in every:
        total += gradient**2
        value = value - RATE * gradient / np.sqrt(total)
    return value


def ftrl(value, every):
    """McMahan et al. 2013, algorithm 1, without regularisation, from the accumulator 0.1."""
    total, linear = np.full_like(value, 0.1), np.zeros_like(value)
    for gradient in every:
        new = total + gradient**2
        linear = linear + gradient - (np.sqrt(new) - np.sqrt(total)) / RATE * value
        value, total = -linear * RATE / np.sqrt(new), new
    return value


def momentum(value, every):
    moment = np.zeros_like(value)
    for gradient in every:
        moment = 0.9 * moment + gradient
        value = value - RATE * moment
    return value


def adadelta(value, every):
    """Zeiler 2012, algorithm 1."""
    squares, updates = np.zeros_like(value), np.zeros_like(value)
    for gradient in every:
        squares = 0.95 * squares + 0.05 * gradient**2
        update = np.sqrt(updates + 1e-8) / np.sqrt(squares + 1e-8) * gradient
        updates = 0.95 * updates + 0.05 * update**2
        value = value - RATE * update
    return value


def adam(value, every):
    """Kingma and Ba 2015, in the order of computation at the end of section 2."""
    first, second = np.zeros_like(value), np.zeros_like(value)
    for step, gradient in enumerate(every, start=1):
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        rate = RATE * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        value = value - rate * first / (np.sqrt(second) + 1e-8)
    return value


REFERENCES = {
    "adagrad": adagrad,
    "ftrl": ftrl,
    "momentum": momentum,
    "adadelta": adadelta,
    "adam": adam,
    "lazy-adam": adam,
}


def trained(name, *, rows):
    import tensorflow.compat.v1 as tf1

    from paceline.model.variables import variable_plans, variables
    from paceline.training import parameters
    from paceline.training.graph import learning_rates, optimizers

    rule = optimizers.rule(settings.Optimizer(name, RATE))
    plan = variable_plans.plan(
        [variables.Variable(name="table", shape=(ROWS, WIDTH), sparse=True)],
        servers=1,
        cut=variable_plans.RowPartitioning(strategy=variable_plans.CutStrategy.NONE),
        rule=variable_plans.PlacementRule.ROUND_ROBIN,
    )
    with tf1.Graph().as_default(), tf1.Session() as session:
        (parameter,) = parameters.create(
            plan,
            {"table": tf1.constant_initializer(start())},
            {"table": "deep"},
            {"deep": rule},
            lambda _: "",
        )
        gradient = tf1.placeholder(tf1.float32, [None, WIDTH])
        rate = learning_rates.create({"deep": settings.Optimizer(name, RATE)}, [0], lambda _: "")
        update = parameter.update(gradient, rate.next(0, gradient)[0]["deep"], USED if rows else None)
        session.run(tf1.global_variables_initializer())
        for each in gradients():
            session.run(update, {gradient: each if rows else dense(each)})
        return session.run(parameter.variable.read_value())


@pytest.mark.parametrize("name", REFERENCES)
def test_the_rows_used_follow_the_formula(name):
    expected = REFERENCES[name](start()[USED].astype(np.float64), list(gradients()))
    np.testing.assert_allclose(trained(name, rows=True)[USED], expected, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", REFERENCES)
def test_a_whole_array_follows_the_formula(name):
    expected = REFERENCES[name](start().astype(np.float64), [dense(each) for each in gradients()])
    found = trained(name, rows=False)
    np.testing.assert_allclose(found[USED], expected[USED], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_rows_not_used_stay_as_they_are(name):
    others = np.setdiff1d(np.arange(ROWS), USED)
    np.testing.assert_array_equal(trained(name, rows=True)[others], start()[others])


def test_adam_moves_rows_that_a_step_does_not_use_and_lazy_adam_does_not():
    import tensorflow.compat.v1 as tf1

    from paceline.model.variables import variable_plans, variables
    from paceline.training import parameters
    from paceline.training.graph import optimizers

    moved = {}
    for name in ("adam", "lazy-adam"):
        rule = optimizers.rule(settings.Optimizer(name, RATE))
        plan = variable_plans.plan(
            [variables.Variable(name="table", shape=(2, 1), sparse=True)],
            servers=1,
            cut=variable_plans.RowPartitioning(strategy=variable_plans.CutStrategy.NONE),
            rule=variable_plans.PlacementRule.ROUND_ROBIN,
        )
        with tf1.Graph().as_default(), tf1.Session() as session:
            (parameter,) = parameters.create(
                plan, {"table": tf1.zeros_initializer()}, {"table": "deep"}, {"deep": rule}, lambda _: ""
            )
            row = tf1.placeholder(tf1.int32, [1])
            update = parameter.update(tf1.constant([[1.0]]), RATE, row)
            session.run(tf1.global_variables_initializer())
            session.run(update, {row: [0]})
            before = session.run(parameter.variable.read_value())[0, 0]
            session.run(update, {row: [1]})
            moved[name] = session.run(parameter.variable.read_value())[0, 0] != before
    assert moved == {"adam": True, "lazy-adam": False}


def test_ftrl_without_regularisation_is_adagrad_for_weights_that_start_from_zero():
    zero, every = np.zeros((len(USED), WIDTH)), gradients().astype(np.float64)
    np.testing.assert_allclose(ftrl(zero, every), adagrad(zero, every), rtol=1e-9)
