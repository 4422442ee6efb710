"""What goes over the wire, between real servers in this process."""

import dataclasses

import numpy as np
import pytest
from support import nights, server_sessions

from paceline.model.variables import consistencies, schedules
from paceline.training import clusters, features, settings

pytestmark = pytest.mark.slow

COLUMNS = tuple(features.Identity(f"f{i}", rows) for i, rows in enumerate((300, 200, 10)))
FEATURES = features.FeatureSet((features.Numeric("x"),), COLUMNS, features.Label("l"))
CHOSEN = settings.Settings(
    batch_size=16,
    embedding_dimension=4,
    hidden_units=(16, 8),
    partitioning=settings.PartitioningSettings("min-size", "hashed", min_shard_bytes=64),
)


def examples():
    random = np.random.default_rng(0)
    ids = np.stack([random.integers(0, column.rows, 64) for column in COLUMNS], axis=1).astype(np.int32)
    labels = random.integers(0, 2, 64).astype(np.float32)
    return features.Examples(random.normal(size=(64, 1)).astype(np.float32), ids, labels)


def losses(cluster, folder, transfers):
    """The losses of ten steps from the parameters in a folder; those are made if it is empty."""

    from paceline import training
    from paceline.training.checkpoints import checkpoints
    from paceline.training.graph import graphs

    made, target = cluster
    chosen = dataclasses.replace(CHOSEN, transfers=transfers)
    graph = graphs.build(training.WideAndDeep(FEATURES, deep=COLUMNS[:2]), made, chosen)
    saved = checkpoints.Checkpoints(str(folder), graph.contents, 60)
    with server_sessions.session(made, target, graph.graph) as session:
        if saved.restore(session) is None:
            session.run(graph.initialise)
            saved.save(session, 0)
        found = []
        feed = dict(zip(graph.inputs, examples(), strict=True))
        for _ in range(10):
            found.append(session.run([graph.loss, *graph.updates], feed)[0])
        return found


def test_packed_and_separate_transfers_train_the_same(cluster, tmp_path):
    expected = losses(cluster, tmp_path, settings.Transfers(packed=False))
    assert expected[-1] < expected[0]
    found = losses(cluster, tmp_path, settings.Transfers(packed=True))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("precision", "error"), nights.but([("bfloat16", 1e-2), ("float16", 2e-3)], often=[("bfloat16", 1e-2)])
)
def test_a_lower_precision_on_the_wire_changes_little(cluster, tmp_path, precision, error):
    expected = losses(cluster, tmp_path, settings.Transfers())
    found = losses(cluster, tmp_path, settings.Transfers(precision=precision))
    assert found != expected
    np.testing.assert_allclose(found, expected, rtol=error)


def crossing(cluster, **chosen):
    """How many edges of the graph of an exchange lead from one task to another."""
    from paceline import training
    from paceline.training.graph import graphs

    graph = graphs.build(training.WideAndDeep(FEATURES), cluster[0], dataclasses.replace(CHOSEN, **chosen))
    fetched = [*graph.updates, *([graph.clocks.ticked] if graph.clocks is not None else [])]
    wanted, seen, edges = [each.op if hasattr(each, "op") else each for each in fetched], set(), set()
    while wanted:
        operation = wanted.pop()
        if operation.name not in seen:
            seen.add(operation.name)
            for tensor in operation.inputs:
                if tensor.op.device != operation.device and tensor.dtype.name != "resource":
                    edges.add((tensor.name, operation.device))
                wanted.append(tensor.op)
            for other in operation.control_inputs:
                if other.device != operation.device:
                    edges.add((other.name, operation.device))
                wanted.append(other)
    return len(edges)


def test_packed_a_step_takes_three_messages_for_each_server(cluster):
    assert crossing(cluster, transfers=settings.Transfers(packed=True)) == 2 * 3
    assert crossing(cluster, transfers=settings.Transfers(packed=False)) > 20


def test_steps_of_one_exchange_share_its_messages(cluster):
    assert crossing(cluster, steps_per_exchange=4) == 2 * 3


def test_features_of_several_values_train_as_in_one_process(cluster, tmp_path):
    """Batches with padding, and batches without any value."""

    from paceline import training
    from paceline.training.checkpoints import checkpoints
    from paceline.training.graph import graphs

    columns = (features.Several(COLUMNS[0], 3), features.Several(COLUMNS[1], 2, "sqrtn"))
    known = features.FeatureSet((features.Numeric("x"),), columns, features.Label("l"))
    padded = examples()._replace(ids=examples().ids[:, [0, 0, 0, 1, 1]])
    padded.ids[::2, 1:3] = -1
    padded.ids[::3, 3:] = -1
    empty = padded._replace(ids=np.full_like(padded.ids, -1))
    found = []
    for made, target in ((clusters.ClusterTask({}, "worker", 0), ""), cluster):
        graph = graphs.build(training.WideAndDeep(known), made, CHOSEN)
        saved = checkpoints.Checkpoints(str(tmp_path), graph.contents, 60)
        with server_sessions.session(made, target, graph.graph) as session:
            if saved.restore(session) is None:
                session.run(graph.initialise)
                saved.save(session, 0)
            batches = [dict(zip(graph.inputs, each, strict=True)) for each in (padded, empty) * 4]
            found.append([session.run([graph.loss, *graph.updates], feed)[0] for feed in batches])
    np.testing.assert_allclose(*found, rtol=1e-4)
    assert found[0][-2] < found[0][0]


@pytest.mark.parametrize(
    "consistency",
    [
        consistencies.Consistency(),
        consistencies.Consistency("bounded-staleness", 3),
        consistencies.Consistency("synchronous"),
    ],
    ids=lambda consistency: consistency.mode,
)
def test_schedules_and_consistency_take_no_message_more(cluster, consistency):
    schedule = schedules.LearningRateSchedule("cosine", warmup_steps=10, decay_steps=100)
    optimizer = settings.Optimizer("lazy-adam", 0.1, schedule)
    assert crossing(cluster, optimizer=optimizer, consistency=consistency) == 2 * 3
