"""What the graph computes, checked in one process."""

import dataclasses
import itertools

import numpy as np
import pytest
from support import nights

from paceline.training import clusters, features, settings

pytestmark = pytest.mark.slow

ROWS = (7, 40, 3)
IDS = tuple(features.Identity(f"f{i}", rows) for i, rows in enumerate(ROWS))
FEATURES = features.FeatureSet((features.Numeric("x"),), IDS, features.Label("l"))
ALONE = clusters.ClusterTask({"worker": ("localhost:0",)}, "worker", 0)
TWO_SERVERS = clusters.ClusterTask({"ps": ("a:1", "b:1"), "worker": ("c:1",)}, "worker", 0)
SMALL = settings.Settings(
    batch_size=32,
    embedding_dimension=4,
    hidden_units=(8,),
    partitioning=settings.PartitioningSettings("none"),
    variable_placement="round-robin",
)


def build(chosen, cluster=ALONE):
    from paceline.training.graph import graphs
    from paceline.training.models import wide_and_deep

    return graphs.build(wide_and_deep.WideAndDeep(FEATURES, wide=IDS[:2]), cluster, chosen)


def batches(count):
    random = np.random.default_rng(0)
    for _ in range(count):
        ids = np.stack([random.integers(0, min(rows, 5), 32) for rows in ROWS], axis=1).astype(np.int32)
        yield features.Examples(
            random.normal(size=(32, 1)).astype(np.float32),
            ids,
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


def separate_tables(values):
    """The same values for a graph of separate tables, cut out of the fused ones.

    f0 and f1 are wide and deep, f2 is deep alone: "deep/vectors/0" has the rows of f0 and f1.
    """
    cut = {}
    for name, value in values.items():
        columns = {"deep/vectors/0": IDS[:2], "deep/vectors/1": IDS[2:], "wide/weights": IDS[:2]}.get(name)
        start = 0
        for column in columns or ():
            cut[f"{name.removesuffix('/0').removesuffix('/1')}/{column.name}"] = value[
                start : start + column.rows
            ]
            start += column.rows
        if columns is None:
            cut[name] = value
    return cut


def update(graph, session, batch):
    return session.run([graph.counted, *graph.updates], feed(graph, batch))[0]


#: Optimizers with kernels of TensorFlow, and those made of other operations.
FUSED = ("adagrad", "ftrl", "adam", "lazy-adam", "adadelta", "momentum")


@pytest.mark.parametrize("optimizer", nights.but(FUSED, often=("ftrl", "lazy-adam")))
def test_fused_and_separate_tables_compute_the_same(optimizer):
    chosen = dataclasses.replace(SMALL, optimizer=settings.Optimizer(optimizer, 0.1))
    fused = build(chosen)
    separate = build(dataclasses.replace(chosen, fused_tables=False))
    with session_of(fused) as one, session_of(separate) as other:
        one.run(fused.initialise)
        other.run(separate.initialise)
        first = {name: one.run(each.read_value()) for name, each in variables(fused).items()}
        assign(separate, other, separate_tables(first))
        for step, batch in enumerate(batches(5), start=1):
            found = one.run([fused.probabilities, fused.loss], feed(fused, batch))
            expected = other.run([separate.probabilities, separate.loss], feed(separate, batch))
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
            np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)
            assert update(fused, one, batch) == step
            assert update(separate, other, batch) == step
        last = separate_tables({name: one.run(each.read_value()) for name, each in variables(fused).items()})
        for name, each in variables(separate).items():
            np.testing.assert_allclose(last[name], other.run(each.read_value()), rtol=1e-4, atol=1e-6)
        touched = last["deep/vectors/f1"][:5] != separate_tables(first)["deep/vectors/f1"][:5]
        assert touched.all()
        np.testing.assert_array_equal(
            last["deep/vectors/f1"][5:], separate_tables(first)["deep/vectors/f1"][5:]
        )


CUTS = {
    "whole": settings.PartitioningSettings("none"),
    "2 ranges": settings.PartitioningSettings("fixed", "contiguous", shards=2),
    "3 by size": settings.PartitioningSettings("min-size", "contiguous", shards=3, min_shard_bytes=64),
    "2 strided": settings.PartitioningSettings("fixed", "strided", shards=2),
    "3 strided": settings.PartitioningSettings("fixed", "strided", shards=3),
    "2 hashed": settings.PartitioningSettings("fixed", "hashed", shards=2),
    "3 hashed": settings.PartitioningSettings("fixed", "hashed", shards=3),
}


def saved_in(graph, folder):
    from paceline.training.checkpoints import checkpoints

    return checkpoints.Checkpoints(str(folder), graph.contents, 60)


RECUTS = [
    *itertools.pairwise(CUTS),
    ("3 hashed", "whole"),
    ("2 hashed", "2 strided"),
    ("3 strided", "2 ranges"),
]
OFTEN = [("whole", "2 ranges"), ("3 hashed", "whole"), ("2 hashed", "2 strided")]


@pytest.mark.parametrize(("before", "after"), nights.but(RECUTS, often=OFTEN))
def test_a_checkpoint_fits_any_partitioning(tmp_path, before, after):
    chosen = dataclasses.replace(SMALL, optimizer=settings.Optimizer("lazy-adam", 0.1))
    one = build(dataclasses.replace(chosen, partitioning=CUTS[before]))
    other = build(dataclasses.replace(chosen, partitioning=CUTS[after]))
    first, second = batches(2)
    with session_of(one) as session:
        session.run(one.initialise)
        update(one, session, first)
        saved_in(one, tmp_path).save(session, 1)
        update(one, session, second)
        expected = session.run(one.probabilities, feed(one, second))
    with session_of(other) as session:
        saved_in(other, tmp_path).restore(session)
        assert session.run(other.step) == 1
        assert update(other, session, second) == 2
        found = session.run(other.probabilities, feed(other, second))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("cut", nights.but(CUTS, often=("2 ranges", "3 by size", "2 hashed")))
def test_every_partitioning_computes_the_same(tmp_path, cut):
    plain, other = build(SMALL), build(dataclasses.replace(SMALL, partitioning=CUTS[cut]))
    with session_of(plain) as one, session_of(other) as two:
        one.run(plain.initialise)
        saved_in(plain, tmp_path).save(one, 0)
        saved_in(other, tmp_path).restore(two)
        for batch in batches(5):
            found = [
                session.run(graph.loss, feed(graph, batch)) for graph, session in ((plain, one), (other, two))
            ]
            np.testing.assert_allclose(*found, rtol=1e-5)
            update(plain, one, batch)
            update(other, two, batch)


def test_dense_layers_in_bfloat16_compute_nearly_the_same_with_parameters_in_float32():
    import tensorflow as tf

    exact, coarse = build(SMALL), build(dataclasses.replace(SMALL, compute_precision="bfloat16"))
    (batch,) = batches(1)
    values, moved, scores = {}, [], []
    for graph in (exact, coarse):
        with session_of(graph) as session:
            session.run(graph.initialise)
            if graph is exact:
                values = {name: session.run(each) for name, each in variables(graph).items()}
            assign(graph, session, values)
            scores.append(session.run(graph.probabilities, feed(graph, batch)))
            update(graph, session, batch)
            moved.append({name: session.run(each) for name, each in variables(graph).items()})
        products = {each.outputs[0].dtype for each in graph.graph.get_operations() if each.type == "MatMul"}
        assert (tf.bfloat16 in products) == (graph is coarse)
    assert not np.array_equal(*scores)
    np.testing.assert_allclose(*scores, atol=0.01)
    for name in values:
        assert moved[1][name].dtype == np.float32
        np.testing.assert_allclose(moved[1][name], moved[0][name], atol=0.01)


def test_steps_of_one_exchange_are_applied_one_after_the_other():
    momentum, rate = 0.9, 0.1
    chosen = dataclasses.replace(
        SMALL,
        optimizer=settings.Optimizer("momentum", rate),
        wide_optimizer=settings.Optimizer("momentum", rate),
        partitioning=CUTS["2 hashed"],
    )
    single, together = build(chosen), build(dataclasses.replace(chosen, steps_per_exchange=3))
    three = list(batches(3))
    with session_of(single) as session:
        session.run(single.initialise)
        first = {name: session.run(each.read_value()) for name, each in variables(single).items()}
        gradients, losses = [], []
        for batch in three:
            session.run(single.initialise)
            assign(single, session, first)
            losses.append(session.run(single.loss, feed(single, batch)))
            update(single, session, batch)
            gradients.append(
                {name: (first[name] - session.run(each)) / rate for name, each in variables(single).items()}
            )
    with session_of(together) as session:
        session.run(together.initialise)
        assign(together, session, first)
        joined = features.Examples(*(np.concatenate(each) for each in zip(*three, strict=True)))
        step, loss, *_ = session.run(
            [together.counted, together.loss, *together.updates], feed(together, joined)
        )
        assert step == 3
        np.testing.assert_allclose(loss, np.mean(losses), rtol=1e-5)
        for name, variable in variables(together).items():
            one, two, three_ = (each[name] for each in gradients)
            moved = one * (1 + momentum + momentum**2) + two * (1 + momentum) + three_
            used = np.logical_and.reduce([each != 0 for each in (one, two, three_)])
            assert used.any()
            np.testing.assert_allclose(
                session.run(variable)[used], (first[name] - rate * moved)[used], rtol=1e-4, atol=1e-5
            )


def test_an_example_moves_the_parameters_as_far_in_a_smaller_batch_as_in_a_full_one():
    (batch,) = batches(1)
    one_example = features.Examples(*(rows[:1] for rows in batch))
    rules = {part: settings.Optimizer("momentum", 0.1) for part in ("optimizer", "wide_optimizer")}
    chosen = dataclasses.replace(SMALL, **rules)
    values, losses, moved = {}, [], []
    for size in (1, 32):
        graph = build(dataclasses.replace(chosen, batch_size=size))
        with session_of(graph) as session:
            session.run(graph.initialise)
            values = values or {name: session.run(each) for name, each in variables(graph).items()}
            assign(graph, session, values)
            losses.append(session.run(graph.loss, feed(graph, one_example)))
            update(graph, session, one_example)
            moved.append({name: session.run(each) - values[name] for name, each in variables(graph).items()})
    assert losses[0] == losses[1]
    assert any(each.any() for each in moved[0].values())
    for name, whole in moved[0].items():
        np.testing.assert_allclose(moved[1][name], whole / 32, rtol=1e-3, atol=1e-6)


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
    own = found["deep/vectors/0"]
    assert all(found[name] != own for name in found if name.startswith("deep/l") and "/kernel" in name)


def test_the_seed_determines_the_first_values():
    def first(seed):
        graph = build(dataclasses.replace(SMALL, seed=seed))
        with session_of(graph) as session:
            session.run(graph.initialise)
            return session.run(variables(graph)["deep/vectors/0"].read_value())

    np.testing.assert_array_equal(first(1), first(1))
    assert (first(1) != first(2)).any()


def test_an_evaluator_has_no_update():
    evaluator = clusters.ClusterTask({"ps": ("a:1",), "worker": ("c:1",)}, "evaluator", 0)
    graph = build(SMALL, evaluator)
    assert graph.updates == ()
    assert set(devices(graph).values()) == {""}
