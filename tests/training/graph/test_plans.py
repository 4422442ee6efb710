"""Replicas obey a saved plan, refuse one that is not theirs, and keep checkpoints whatever the plan."""

import dataclasses
import json

import numpy as np
import pytest
from support import server_sessions

from paceline.model.variables import plan_comparisons, saved_plans, variable_plans
from paceline.training import clusters, errors, features, settings

pytestmark = pytest.mark.slow

COLUMNS = tuple(features.Identity(f"f{i}", rows) for i, rows in enumerate((300, 200, 10)))
FEATURES = features.FeatureSet((features.Numeric("x"),), COLUMNS, features.Label("l"))
CHOSEN = settings.Settings(embedding_dimension=4, hidden_units=(16, 8))


@pytest.fixture(scope="module")
def cluster(three_servers):
    """Three parameter servers and a worker."""
    return three_servers


def with_servers(cluster, count):
    made = cluster[0]
    return dataclasses.replace(made, addresses={**made.addresses, "ps": made.addresses["ps"][:count]})


def build(made, chosen=CHOSEN):
    from paceline import training
    from paceline.training.graph import graphs

    return graphs.build(training.WideAndDeep(FEATURES, deep=COLUMNS[:2]), made, chosen)


def saved(graph, servers, **cut):
    """A saved plan of the graph's model, uneven on purpose, as the settings of a replica."""
    made = variable_plans.plan(
        graph.variables,
        servers=servers,
        cut=variable_plans.RowPartitioning(strategy=variable_plans.CutStrategy.FIXED, **cut),
        rule=variable_plans.PlacementRule.ROUND_ROBIN,
    )
    text = json.dumps({"variable_plan": saved_plans.write(made, traffic=False)})
    return made, dataclasses.replace(
        CHOSEN, variable_plan=settings.read({settings.VARIABLE: text}).variable_plan
    )


def shards(graph):
    return [(each.shard.name, each.shard.server, each.shard.rows) for each in graph.contents.parameters]


def examples(seed):
    random = np.random.default_rng(seed)
    ids = np.stack([random.integers(0, column.rows, 64) for column in COLUMNS], axis=1).astype(np.int32)
    labels = random.integers(0, 2, 64).astype(np.float32)
    return features.Examples(random.normal(size=(64, 1)).astype(np.float32), ids, labels)


def stepped(cluster, graph, folder, seed, *, first=False):
    """Restores what is in the folder, trains a step, saves; returns the scores of some examples after it."""
    import tensorflow.compat.v1 as tf1

    from paceline.training.checkpoints import checkpoints

    kept = checkpoints.Checkpoints(str(folder), graph.contents, 60)
    kept.prepare()
    tf1.Session.reset(cluster[1])  # the servers of a new job hold no variables
    with server_sessions.session(*cluster, graph.graph) as session:
        if first:
            session.run(graph.initialise)
        else:
            assert kept.restore(session)
        inputs = dict(zip(graph.inputs, examples(seed), strict=True))
        step, *_ = session.run([graph.counted, *graph.updates], inputs)
        kept.save(session, int(step))
        scored = dict(zip(graph.inputs, examples(99), strict=True))
        return session.run(graph.probabilities, scored)


def test_a_plan_is_obeyed_to_the_letter(cluster):
    made = cluster[0]
    plain = build(made)
    plan, chosen = saved(plain, 3, shards=2)
    obeyed = build(made, chosen)
    assert shards(obeyed) == [(each.name, each.server, each.rows) for each in plan.shards]
    assert shards(obeyed) != shards(plain)
    devices = {each.variable.device for each in obeyed.contents.parameters if each.shard.server == 2}
    assert devices == {"/job:ps/task:2"}


def test_a_plan_for_another_model_or_cluster_is_refused(cluster):
    made = cluster[0]
    plan, chosen = saved(build(made), 3)
    with pytest.raises(errors.SettingsError, match="it is for 3 ps, and there are 2"):
        build(with_servers(cluster, 2), chosen)
    with pytest.raises(errors.SettingsError, match=r"'deep/layer0/kernel' has the shape .* in it, not"):
        build(made, dataclasses.replace(chosen, hidden_units=(8, 8)))
    fewer = dataclasses.replace(plan, shards=plan.shards[:-1])
    with pytest.raises(errors.SettingsError, match="it lacks the variable 'deep/logit/bias'"):
        build(made, dataclasses.replace(chosen, variable_plan=fewer))


def test_without_servers_a_plan_for_any_number_will_do(cluster):
    _, chosen = saved(build(cluster[0]), 3)
    alone = build(clusters.ClusterTask({"worker": ("localhost:0",)}, "worker", 0), chosen)
    assert {each.variable.device for each in alone.contents.parameters} == {""}


def test_a_checkpoint_outlives_a_change_of_plan_and_of_servers(cluster, tmp_path):
    """From a default plan over 3 PS to a saved one over 2 and back, beside a run that changes nothing."""
    small = with_servers(cluster, 2)
    plain = build(cluster[0])
    _, chosen = saved(plain, 2, shards=4, order=variable_plans.RowOrder.CONTIGUOUS)
    planned = build(small, chosen)
    assert plan_comparisons.differences(
        variable_plans.Plan(servers=3, shards=tuple(each.shard for each in plain.contents.parameters)),
        chosen.variable_plan,
    )
    before = stepped(cluster, plain, tmp_path / "same", 0, first=True)
    # The first step of both is the same one: the checkpoint of it goes on in two ways.
    (tmp_path / "changed").mkdir()
    for file in (tmp_path / "same").iterdir():
        (tmp_path / "changed" / file.name).write_bytes(file.read_bytes())
    expected = [before, *(stepped(cluster, plain, tmp_path / "same", seed) for seed in (1, 2))]
    found = [
        before,
        stepped(cluster, planned, tmp_path / "changed", 1),
        stepped(cluster, plain, tmp_path / "changed", 2),
    ]
    assert not np.allclose(expected[0], expected[2], rtol=1e-3)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
