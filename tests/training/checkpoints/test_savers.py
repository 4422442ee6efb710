"""Who writes what of a checkpoint, with real parameter servers."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from support import ports, server_sessions

from paceline.model.variables import row_layouts, variables
from paceline.training import clusters, features, settings

pytestmark = pytest.mark.slow

COLUMNS = tuple(features.Identity(f"f{i}", rows) for i, rows in enumerate((300, 200, 10)))
FEATURES = features.FeatureSet((features.Numeric("x"),), COLUMNS, features.Label("l"))
CHOSEN = settings.Settings(
    embedding_dimension=4,
    hidden_units=(16, 8),
    partitioning=settings.PartitioningSettings("min-size", "hashed", min_shard_bytes=64),
)
ALONE = clusters.ClusterTask({"worker": ("localhost:0",)}, "worker", 0)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Pieces of a few rows, so that these small tables have many."""
    from paceline.training.checkpoints import savers

    monkeypatch.setattr(savers, "PIECE_BYTES", 3000)


def build(cluster):
    from paceline import training
    from paceline.training.graph import graphs

    return graphs.build(training.WideAndDeep(FEATURES, deep=COLUMNS[:2]), cluster, CHOSEN)


def values(session, graph):
    """All parameters and slots, whole, in the order of the checkpoint, by their name there."""
    from paceline.training import parameters

    found = {}
    for parameter in graph.contents.parameters:
        for slot, variable in parameter.saved.items():
            name = parameters.stored_name(parameter.shard, slot)
            found.setdefault(name, []).append((parameter.shard.index, session.run(variable.read_value())))
    return {
        name: np.concatenate([np.atleast_1d(each) for _, each in sorted(shards, key=lambda one: one[0])])
        for name, shards in found.items()
    }


def trained(session, graph):
    random = np.random.default_rng(0)
    ids = np.stack([random.integers(0, column.rows, 64) for column in COLUMNS], axis=1).astype(np.int32)
    labels = random.integers(0, 2, 64).astype(np.float32)
    batch = features.Examples(random.normal(size=(64, 1)).astype(np.float32), ids, labels)
    session.run(graph.initialise)
    session.run([graph.counted, *graph.updates], dict(zip(graph.inputs, batch, strict=True)))
    return values(session, graph)


@pytest.mark.parametrize("gathered", [False, True])
def test_what_is_written_is_read_by_both_ways_and_by_any_number_of_servers(cluster, tmp_path, gathered):
    import tensorflow.compat.v1 as tf1

    made, target = cluster
    prefix = str(tmp_path / "model.ckpt-1")
    graph = build(made)
    with server_sessions.session(made, target, graph.graph) as session:
        expected = trained(session, graph)
        graph.contents.saver.save(session, prefix, gathered=gathered)
        assert not list(tmp_path.glob("*temp*"))
        for way in (False, True):
            session.run(graph.initialise)
            graph.contents.saver.restore(session, prefix, gathered=way)
            assert session.run(graph.step) == 1
            found = values(session, graph)
            assert all((found[name] == each).all() for name, each in expected.items())
    alone = build(ALONE)
    with tf1.Session(graph=alone.graph) as session:
        alone.contents.saver.restore(session, prefix, gathered=False)
        found = values(session, alone)
        assert found.keys() == expected.keys()
        assert all((found[name] == each).all() for name, each in expected.items())


def test_parameters_that_servers_write_do_not_cross_the_network(cluster, tmp_path):

    made, target = cluster
    graph = build(made)
    with server_sessions.session(made, target, graph.graph) as session:
        trained(session, graph)
        saver = graph.contents.saver
        assert saver.stranger(session, str(tmp_path / "model.ckpt-1")) is None
        assert not list(tmp_path.iterdir())
    crossing = [crossing_floats(saver._writes[gathered].rounds) for gathered in (False, True)]
    assert crossing[0] == 0
    assert crossing[1] == sum(parameter.shard.memory_bytes // 4 for parameter in graph.contents.parameters)


def crossing_floats(rounds):
    """How many values lead from one task to another below operations."""
    wanted, seen, count = [each for group in rounds for each in group], set(), 0
    while wanted:
        each = wanted.pop()
        if each.name in seen:
            continue
        seen.add(each.name)
        for tensor in each.inputs:
            if tensor.op.device != each.device and tensor.dtype.name == "float32":
                count += tensor.shape.num_elements()
            wanted.append(tensor.op)
        wanted += each.control_inputs
    return count


SERVE = """
import json, sys
import tensorflow as tf
tf.distribute.Server(tf.train.ClusterSpec(json.loads(sys.argv[1])), "ps", 1).join()
"""


@pytest.fixture
def apart(tmp_path):
    """A worker and a parameter server in this process, and another server to which `tmp_path` is an empty
    folder of its own; as `cluster`.
    """
    import tensorflow as tf

    hosts = ports.addresses(3)
    addresses = {"ps": hosts[:2], "worker": hosts[2:]}
    command = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(tmp_path)]
    process = subprocess.Popen([*command, sys.executable, "-c", SERVE, json.dumps(addresses)])
    spec = tf.train.ClusterSpec(addresses)
    servers = [tf.distribute.Server(spec, role, 0) for role in ("ps", "worker")]
    yield (
        clusters.ClusterTask({role: tuple(each) for role, each in addresses.items()}, "worker", 0),
        servers[1].target,
    )
    process.kill()
    process.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a server another folder")
def test_where_a_server_does_not_see_the_folder_the_chief_writes(apart, tmp_path, caplog):

    from paceline.training.checkpoints import checkpoints

    made, target = apart
    graph = build(made)
    saved = checkpoints.Checkpoints(str(tmp_path), graph.contents, 60)
    with server_sessions.session(made, target, graph.graph) as session:
        expected = trained(session, graph)
        for step in (1, 2):
            saved.save(session, step)
        assert caplog.text.count("/job:ps/task:1 does not share") == 1
        session.run(graph.initialise)
        assert saved.restore(session) == str(tmp_path / "model.ckpt-2")
        found = values(session, graph)
    assert all((found[name] == each).all() for name, each in expected.items())
    assert not list(tmp_path.glob("*temp*"))


def test_pieces_cover_every_row_once():
    from paceline.training import parameters
    from paceline.training.checkpoints import savers
    from paceline.training.graph import optimizers

    layout = row_layouts.RowLayout(rows=100, shards=3, order=row_layouts.RowOrder.HASHED)
    table = variables.Variable(name="table", shape=(100, 4))
    rule = optimizers.rule(settings.Optimizer("adagrad"))
    every = [
        parameters.Parameter(variables.Shard(variable=table, layout=layout, index=i, server=i), None,
                             {"accumulator": None}, rule)
        for i in range(3)
    ]  # fmt: skip
    found = list(savers.pieces(every, 7 * table.row_bytes))
    for name in ("table/hashed", "table/accumulator/hashed"):
        ranges = [piece.place.split()[2].split(":")[0] for piece in found if piece.name == name]
        rows = [
            row
            for start, count in (map(int, each.split(",")) for each in ranges)
            for row in range(start, start + count)
        ]
        assert sorted(rows) == list(range(100))
    assert all(piece.bytes <= 7 * table.row_bytes for piece in found)
    grouped = savers.parts(found, 200)
    assert [piece for part in grouped for piece in part] == found
    assert all(sum(piece.bytes for piece in part) <= 200 for part in grouped)
