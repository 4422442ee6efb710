from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

ROWS, WIDTH = 2_000_000, 16


def anonymous_bytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def test_a_table_and_its_slots_lie_in_memory_once():
    import tensorflow as tf
    import tensorflow.compat.v1 as tf1

    from paceline.model.variables import variable_plans, variables
    from paceline.training import parameters, settings
    from paceline.training.graph import initializers, optimizers

    table = variables.Variable(name="table", shape=(ROWS, WIDTH), sparse=True, slots=1)
    plan = variable_plans.plan(
        [table], servers=1, cut=variable_plans.RowPartitioning(), rule=variable_plans.DEFAULT_RULE
    )
    rules = {"deep": optimizers.rule(settings.Optimizer("adagrad"))}
    with tf1.Graph().as_default():
        first = {"table": initializers.filled(0.5)}
        (created,) = parameters.create(plan, first, {"table": "deep"}, rules, lambda _: "")
        ids = tf1.placeholder(tf.int32, [None])
        update = created.update(tf.ones([2, WIDTH]), 0.1, ids)
        some = tf.gather(created.variable, [0, ROWS - 1]), tf.gather(created.slots["accumulator"], [1])
        with tf1.Session() as session:
            session.run(tf.constant(1) + 1)  # what a session itself takes
            before = anonymous_bytes()
            session.run(tf1.global_variables_initializer())
            values, slot = session.run(some)
            session.run(update, {ids: [1, 2]})
            used = anonymous_bytes() - before
    np.testing.assert_array_equal(values, np.full((2, WIDTH), 0.5))
    np.testing.assert_allclose(slot, np.full((1, WIDTH), 0.1))
    assert used < 1.3 * table.memory_bytes
