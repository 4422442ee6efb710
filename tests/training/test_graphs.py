"""What the graph computes, checked in one process."""

import dataclasses

import numpy as np
import pytest

from paceline.training import clusters, features, settings

pytestmark = pytest.mark.slow

ROWS = (7, 40, 3)
IDS = tuple(features.Identity(f"f{i}", rows) for i, rows in enumerate(ROWS))
ENCODER = features.FeatureSet((features.Numeric("x"),), IDS, IDS[:2], features.Label("l"))
ALONE = clusters.Cluster({"worker": ("localhost:0",)}, "worker", 0)
TWO_SERVERS = clusters.Cluster({"ps": ("a:1", "b:1"), "worker": ("c:1",)}, "worker", 0)
SMALL = settings.Settings(embedding_dimension=4, hidden_units=(8,))


def build(chosen, cluster=ALONE):
    from paceline.training import graphs
    from paceline.training.models import wide_and_deep

    return graphs.build(wide_and_deep.WideAndDeep(ENCODER), cluster, chosen)


def batches(count):
    random = np.random.default_rng(0)
    for _ in range(count):
        ids = np.stack([random.integers(0, min(rows, 5), 32) for rows in ROWS], axis=1).astype(np.int32)
        yield features.Examples(
            random.normal(size=(32, 1)).astype(np.float32),
            ids,
            ids[:, :2],
            random.integers(0, 2, 32).astype(np.float32),
        )


def session_of(graph):
    import tensorflow.compat.v1 as tf1

    return tf1.Session(graph=graph.graph)


def feed(graph, batch):
    return dict(zip(graph.inputs, batch, strict=True))


def variables(graph):
    import tensorflow.compat.v1 as tf1

    with graph.graph.as_default():
        return {each.op.name: each for each in tf1.trainable_variables()}


def assign(graph, session, values):
    for name, variable in variables(graph).items():
        variable.load(values[name], session)


def whole(values):
    """The same values for a graph of separate tables, cut out of the fused ones; and back."""
    cut = {}
    for name, value in values.items():
        if not name.endswith("/all"):
            cut[name] = value
            continue
        start = 0
        for column in IDS if name.startswith("deep") else IDS[:2]:
            cut[f"{name[: -len('all')]}{column.name}"] = value[start : start + column.rows]
            start += column.rows
    return cut


@pytest.mark.parametrize("optimizer", ["adagrad", "ftrl", "adam"])
def test_fused_and_separate_tables_compute_the_same(optimizer):
    chosen = dataclasses.replace(SMALL, optimizer=settings.Optimizer(optimizer, 0.1))
    fused = build(chosen)
    separate = build(dataclasses.replace(chosen, fused_tables=False))
    with session_of(fused) as one, session_of(separate) as other:
        one.run(fused.initialise)
        other.run(separate.initialise)
        first = {name: one.run(each.read_value()) for name, each in variables(fused).items()}
        assign(separate, other, whole(first))
        for step, batch in enumerate(batches(5), start=1):
            found = one.run([fused.probabilities, fused.loss], feed(fused, batch))
            expected = other.run([separate.probabilities, separate.loss], feed(separate, batch))
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
            np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)
            assert one.run(fused.update, feed(fused, batch)) == step
            assert other.run(separate.update, feed(separate, batch)) == step
        last = whole({name: one.run(each.read_value()) for name, each in variables(fused).items()})
        for name, each in variables(separate).items():
            np.testing.assert_allclose(last[name], other.run(each.read_value()), rtol=1e-4, atol=1e-6)
        touched = last["deep/vectors/f1"][:5] != whole(first)["deep/vectors/f1"][:5]
        assert touched.all()
        np.testing.assert_array_equal(last["deep/vectors/f1"][5:], whole(first)["deep/vectors/f1"][5:])


@pytest.mark.parametrize("strategy", ["fixed", "min-size"])
def test_a_cut_table_is_restored_whole(tmp_path, strategy):
    from paceline.training import checkpoints

    cut = build(
        dataclasses.replace(SMALL, partitioning=settings.Partitioning(strategy, shards=3, min_shard_bytes=64))
    )
    uncut = build(SMALL)
    shards = [name for name in variables(cut) if name.startswith("deep/vectors/all")]
    assert len(shards) == 3
    (batch,) = batches(1)
    with session_of(cut) as session:
        session.run(cut.initialise)
        session.run(cut.update, feed(cut, batch))
        expected = session.run(cut.probabilities, feed(cut, batch))
        checkpoints.Checkpoints(str(tmp_path), cut.saver, 60).save(session, 1)
    with session_of(uncut) as session:
        checkpoints.Checkpoints(str(tmp_path), uncut.saver, 60).restore(session)
        np.testing.assert_allclose(session.run(uncut.probabilities, feed(uncut, batch)), expected, rtol=1e-5)
        assert session.run(uncut.step) == 1


def devices(graph):
    import tensorflow.compat.v1 as tf1

    with graph.graph.as_default():
        every = tf1.global_variables()
    return {each.op.name: each.device for each in every}


@pytest.mark.parametrize("placement", ["round-robin", "greedy"])
def test_variables_live_on_parameter_servers_and_slots_follow(placement):
    graph = build(dataclasses.replace(SMALL, variable_placement=placement), TWO_SERVERS)
    found = devices(graph)
    assert set(found.values()) == {"/job:ps/task:0", "/job:ps/task:1"}
    for name, device in found.items():
        owner = max((other for other in found if name.startswith(f"{other}/")), key=len, default=name)
        assert found[owner] == device
    assert graph.loss.device == "/job:worker/task:0"


def test_greedy_placement_keeps_the_rest_away_from_the_large_table():
    chosen = dataclasses.replace(SMALL, variable_placement="greedy", embedding_dimension=64)
    found = devices(build(chosen, TWO_SERVERS))
    own = found["deep/vectors/all"]
    assert all(found[name] != own for name in found if name.startswith("deep/l") and "/kernel" in name)


def test_the_seed_determines_the_first_values():
    def first(seed):
        graph = build(dataclasses.replace(SMALL, seed=seed))
        with session_of(graph) as session:
            session.run(graph.initialise)
            return session.run(variables(graph)["deep/vectors/all"].read_value())

    np.testing.assert_array_equal(first(1), first(1))
    assert (first(1) != first(2)).any()


def test_an_evaluator_has_no_update():
    evaluator = clusters.Cluster({"ps": ("a:1",), "worker": ("c:1",)}, "evaluator", 0)
    graph = build(SMALL, evaluator)
    assert graph.update is None
    assert set(devices(graph).values()) == {""}
