"""Synchronous steps over real servers in this process."""

import dataclasses
import time
from concurrent import futures

import numpy as np
import pytest

from paceline.model.variables import consistencies
from paceline.training import clusters, errors, features, settings

pytestmark = pytest.mark.slow

COLUMNS = tuple(features.Identity(f"f{i}", rows) for i, rows in enumerate((30, 20, 10)))
FEATURES = features.FeatureSet((features.Numeric("x"),), COLUMNS, features.Label("l"))
CHOSEN = settings.Settings(
    batch_size=16,
    optimizer=settings.Optimizer("lazy-adam", 0.05),
    embedding_dimension=4,
    hidden_units=(8,),
    partitioning=settings.PartitioningSettings("min-size", "hashed", min_shard_bytes=64),
)
ALONE = clusters.ClusterTask({"worker": ("localhost:0",)}, "worker", 0)


def model():
    from paceline import training

    return training.WideAndDeep(FEATURES)


def batches(count, examples=16):
    random = np.random.default_rng(0)
    return [
        features.Examples(
            random.normal(size=(examples, 1)).astype(np.float32),
            np.stack([random.integers(0, each.rows, examples) for each in COLUMNS], 1).astype(np.int32),
            random.integers(0, 2, examples).astype(np.float32),
        )
        for _ in range(count)
    ]


def joined(several):
    return features.Examples(*(np.concatenate(each) for each in zip(*several, strict=True)))


def synchronous(backup_workers=None):
    consistency = consistencies.Consistency("synchronous", backup_workers=backup_workers)
    return dataclasses.replace(CHOSEN, consistency=consistency)


def trained(trainer, given):
    with trainer.pace() as pace:
        return [pace.step(batch) for batch in given]


def together(*calls):
    """Makes calls at the same time; returns their results."""
    with futures.ThreadPoolExecutor(len(calls)) as pool:
        return [each.result() for each in [pool.submit(*call) for call in calls]]


def values(graph, session):
    import tensorflow.compat.v1 as tf1

    with graph.graph.as_default():
        every = tf1.trainable_variables()
    return {each.op.name: session.run(each.read_value()) for each in every}


def alone(folder, given):
    """The parameters after training in one process on the batches of two, from the newest in a folder."""
    import tensorflow.compat.v1 as tf1

    from paceline.training.checkpoints import checkpoints
    from paceline.training.graph import graphs

    of_two = dataclasses.replace(CHOSEN, batch_size=2 * CHOSEN.batch_size)
    graph = graphs.build(model(), ALONE, of_two)
    with tf1.Session(graph=graph.graph) as session:
        checkpoints.Checkpoints(str(folder), graph.contents, 60).restore(session)
        for batch in given:
            feed = dict(zip(graph.inputs, batch, strict=True))
            session.run([graph.counted, *graph.updates], feed)
        return values(graph, session)


def save(chief, folder, step):
    from paceline.training.checkpoints import checkpoints

    checkpoints.Checkpoints(str(folder), chief.graph.contents, 60).save(chief.session, step)


def test_two_trainers_compute_what_one_does_on_both_batches(servers, tmp_path):
    one, two = servers.trainers(model(), synchronous(), tmp_path, 2)
    first, second = batches(10)[:5], batches(10)[5:]
    expected = alone(tmp_path, [joined(pair) for pair in zip(first, second, strict=True)])
    steps = together((trained, one, first), (trained, two, second))
    for each in steps:
        assert [(step.step, step.dropped) for step in each] == [(number, False) for number in range(1, 6)]
    save(one, tmp_path, 5)
    found = alone(tmp_path, [])
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-6)


def test_a_trainer_whose_step_fails_is_not_waited_for(servers, tmp_path):
    """Without that, a call of these tests that TensorFlow refuses would stop them for ever."""
    import tensorflow as tf

    one, two = servers.trainers(model(), synchronous(), tmp_path, 2)
    (first,) = batches(1)
    wrong = features.Examples(first[0], first[1], first[2][:3])
    with pytest.raises(tf.errors.InvalidArgumentError):
        together((trained, one, [first]), (trained, two, [wrong]))


def test_the_gradient_of_a_slow_trainer_is_dropped_and_counted(servers, tmp_path):
    """Two of three trainers make a step; the third comes with its gradient when they have made four."""
    one, two, slow = servers.trainers(model(), synchronous(backup_workers=1), tmp_path, 3)
    first, second = batches(10)[:5], batches(10)[5:]
    expected = alone(tmp_path, [joined(pair) for pair in zip(first[:4], second[:4], strict=True)])
    with one.pace() as chief, two.pace() as other, slow.pace() as late:
        for pair in zip(first[:4], second[:4], strict=True):
            steps = together((chief.step, pair[0]), (other.step, pair[1]))
            assert [step.dropped for step in steps] == [False, False]
        assert steps[0].step == 4
        found = late.step(batches(1)[0])
        assert (found.step, found.dropped) == (4, True)
        save(one, tmp_path, 4)
        # it goes on from where the others are
        assert [step.dropped for step in together((chief.step, first[4]), (late.step, second[4]))] == [
            False
        ] * 2
    after = alone(tmp_path, [])
    for name, value in expected.items():
        np.testing.assert_allclose(after[name], value, rtol=1e-4, atol=1e-6)


def await_key(trainer):
    """Waits until a trainer has left its gradient and waits for the step."""
    read = trainer.session.make_callable(trainer.graph.rounds.noted)
    while read()[trainer.cluster.trainer_index] < 0:
        time.sleep(0.01)


def test_without_a_backup_the_others_wait_until_a_lost_trainer_is_back(servers, tmp_path):
    one, two = servers.trainers(model(), synchronous(), tmp_path, 2)
    first, second = batches(2)
    with one.pace() as chief, futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(chief.step, first)
        await_key(one)
        assert not waiting.done()
        with two.pace() as back:
            assert back.step(second).step == 1
        assert waiting.result().step == 1


def test_a_chief_that_comes_back_drops_what_lies_on_the_servers(servers, tmp_path):
    one, two = servers.trainers(model(), synchronous(), tmp_path, 2)
    first, second = batches(2)
    with one.pace():
        pass
    with two.pace() as other, futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(other.step, second)
        await_key(two)
        with one.pace() as chief:
            again = waiting.result()
            assert (again.step, again.dropped) == (0, True)
            steps = together((chief.step, first), (other.step, second))
    assert [(step.step, step.dropped) for step in steps] == [(1, False)] * 2
    assert values_left(one) == [0, 0]


def values_left(trainer):
    """How many gradients lie on each server."""
    import tensorflow as tf

    found = []
    with trainer.graph.graph.as_default():
        for operation in trainer.graph.graph.get_operations():
            if operation.type == "MapStage":
                with tf.device(operation.device):
                    kinds = operation.get_attr("dtypes")
                    size = tf.raw_ops.MapSize(dtypes=kinds, shared_name=operation.get_attr("shared_name"))
                found.append(trainer.session.run(size))
    return found


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (synchronous(backup_workers=2), "backup_workers is 2, but only 2 replicas train"),
        (dataclasses.replace(synchronous(), steps_in_flight=2), "steps_in_flight is above 1"),
        (dataclasses.replace(synchronous(), steps_per_exchange=2), "steps_per_exchange is above 1"),
    ],
)
def test_a_job_that_cannot_be_synchronous_is_refused(chosen, message):
    from paceline.training import trainers

    with pytest.raises(errors.SettingsError, match=message):
        trainers.total_steps(chosen, 1000, 2)


def test_an_epoch_has_fewer_steps_of_several_gradients():
    from paceline.training import trainers

    chosen = dataclasses.replace(synchronous(backup_workers=1), batch_size=10)
    assert trainers.total_steps(chosen, 1000, 5) == 25
