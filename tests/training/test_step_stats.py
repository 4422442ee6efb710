"""The reader of traced steps, on what real servers in this process say of real steps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import server_sessions

from paceline.model.traces.traced_steps import Direction
from paceline.tracing import step_stats
from paceline.training import features, settings
from paceline.training.tracing import traces

COLUMNS = tuple(features.Identity(f"f{i}", rows) for i, rows in enumerate((300, 200, 10)))
FEATURES = features.FeatureSet((features.Numeric("x"),), COLUMNS, features.Label("l"))
WORKER = "/job:worker/task:0"
EXAMPLES = 64


def examples():
    random = np.random.default_rng(0)
    ids = np.stack([random.integers(0, column.rows, EXAMPLES) for column in COLUMNS], axis=1)
    labels = random.integers(0, 2, EXAMPLES).astype(np.float32)
    return features.Examples(
        random.normal(size=(EXAMPLES, 1)).astype(np.float32), ids.astype(np.int32), labels
    )


def traced(session, fetches, feed=None):
    """What TensorFlow traced of a step with the messages of all three processes.

    It turns their log on in the background: a busy process may lack it, or its first messages. A step has
    the same messages every time, so the most that were seen three times are all.
    """
    import tensorflow.compat.v1 as tf1

    options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE)
    counts = []
    for _ in range(100):
        session.run(fetches, feed)
        metadata = tf1.RunMetadata()
        session.run(fetches, feed, options=options, run_metadata=metadata)
        devices = logged(metadata)
        counts.append(sum(node.node_name == "RecvTensor" for device in devices for node in device.node_stats))
        is_whole = counts[-1] == max(counts) and counts.count(max(counts)) >= 3
        if is_whole and len({device.device for device in devices}) == 3:
            return metadata
    raise AssertionError("no step was logged whole")


def logged(metadata):
    return [
        device
        for device in metadata.step_stats.dev_stats
        if any(node.node_name == "RecvTensor" for node in device.node_stats)
    ]


def silent(metadata):
    """The same step without a log of messages."""
    import tensorflow.compat.v1 as tf1

    copy = tf1.RunMetadata()
    copy.CopyFrom(metadata)
    for device in copy.step_stats.dev_stats:
        kept = [node for node in device.node_stats if node.node_name != "RecvTensor"]
        del device.node_stats[:]
        device.node_stats.extend(kept)
    return copy


def step_of(cluster, **chosen):
    """The record of a step of a wide-and-deep model, and the step as TensorFlow traced it."""

    from paceline import training
    from paceline.training.graph import graphs

    made, target = cluster
    given = settings.Settings(embedding_dimension=4, hidden_units=(16, 8), **chosen)
    graph = graphs.build(training.WideAndDeep(FEATURES, deep=COLUMNS[:2]), made, given)
    with server_sessions.session(made, target, graph.graph) as session:
        session.run(graph.initialise)
        feed = dict(zip(graph.inputs, examples(), strict=True))
        metadata = traced(session, [graph.counted, graph.loss, *graph.updates], feed)
    names = traces.names(graph.contents.parameters)
    return step_stats.read([step_stats.TracedStep(7, metadata, 0.25)], WORKER, names), metadata, names


def moved(record, direction):
    """Bytes by variable, shards together."""
    found = {}
    for each in record.transfers:
        if each.direction is direction:
            found[each.variable] = found.get(each.variable, 0) + each.bytes
    return found


WEIGHTS = {
    "deep/layer0/kernel": 9 * 16 * 4,
    "deep/layer0/bias": 16 * 4,
    "deep/layer1/kernel": 16 * 8 * 4,
    "deep/layer1/bias": 8 * 4,
    "deep/logit/kernel": 8 * 4,
    "deep/logit/bias": 4,
    "wide/bias": 4,
}


@pytest.mark.slow
@pytest.mark.parametrize("packed", [True, False])
def test_bytes_of_every_variable_are_exact(cluster, packed):
    cut = settings.PartitioningSettings("min-size", "hashed", min_shard_bytes=64)
    record, metadata, names = step_of(cluster, partitioning=cut, transfers=settings.Transfers(packed=packed))
    ids = examples().ids
    rows = sum(len(np.unique(ids[:, place])) for place in (0, 1))
    others = len(np.unique(ids[:, 2]))
    tables = {"deep/vectors": rows * 4 * 4, "wide/weights/0": rows * 4, "wide/weights/1": others * 4}
    assert moved(record, Direction.PUSH) == WEIGHTS | tables
    assert moved(record, Direction.PULL) == WEIGHTS | tables | {"global_step": 8}
    sent = moved(record, Direction.IDS)
    assert set(sent) == set(tables)
    counts = 4 * 2 if packed else 0  # one PS has ids of two tables, and before them how many of each
    assert sum(sent.values()) == rows * 4 + others * 4 + counts
    assert {each.shard for each in record.transfers if each.variable == "deep/vectors"} == {0, 1}
    assert all(each.microseconds > 0 for each in record.transfers)
    (without,) = [step_stats.read([step_stats.TracedStep(7, silent(metadata))], WORKER, names)]
    measured = [each for each in record.transfers if each.variable != "global_step"]
    restored = [each.bytes for each in without.transfers]
    assert len(restored) == len(measured)
    assert all(
        size == each.bytes or (size is None and not packed)
        for size, each in zip(restored, measured, strict=True)
    )
    assert {each.microseconds for each in without.transfers} == {None}
    assert without.splits[0].pull_microseconds > 0
    assert without.clocks == ()


@pytest.mark.slow
def test_the_optimizer_on_the_server_is_named_with_its_variable(cluster):
    record, _, _ = step_of(
        cluster,
        partitioning=settings.PartitioningSettings("none"),
        optimizer=settings.Optimizer("adam", 0.001),
        transfers=settings.Transfers(precision="bfloat16"),
    )
    kinds = {each.kind for each in record.operations if each.variable == "deep/vectors"}
    assert {"ResourceGather", "ResourceScatterAdd", "Sqrt", "RealDiv"} <= kinds
    assert "ResourceSparseApplyFtrl" in {
        each.kind for each in record.operations if each.variable == "wide/weights/0"
    }
    assert not any("/m" in (each.variable or "") for each in record.operations)
    assert moved(record, Direction.PULL)["deep/layer0/kernel"] == WEIGHTS["deep/layer0/kernel"] // 2


@pytest.mark.slow
def test_the_parts_of_a_step_add_up_to_it(cluster):
    record, metadata, _ = step_of(cluster)
    (split,) = record.splits
    assert (split.step, split.input_wait_microseconds) == (7, 250_000)
    assert min(split.pull_microseconds, split.compute_microseconds, split.push_microseconds) > 0
    ends = [event.start_microseconds + event.microseconds for event in record.events]
    whole = max(ends) - record.events[0].start_microseconds
    assert split.total_microseconds == pytest.approx(250_000 + whole, abs=2)
    assert [(clock.process, clock.offset_microseconds) for clock in record.clocks] == [
        ("ps-0", 0),
        ("ps-1", 0),
    ]
    shifted = shift(metadata, "/job:ps/replica:0/task:1", 5_000_000)
    (moved_split,) = step_stats.read([step_stats.TracedStep(7, shifted, 0.25)], WORKER).splits
    assert moved_split.total_microseconds == pytest.approx(split.total_microseconds, abs=2000)


def shift(metadata, device, microseconds):
    """The same step, had the clock of a process been ahead; TensorFlow keeps a message's start within the
    receiver's time.
    """
    for stats in metadata.step_stats.dev_stats:
        for node in stats.node_stats if stats.device.startswith(device) else ():
            node.all_start_micros += microseconds
            node.all_start_nanos += microseconds * 1000
    return metadata


@pytest.mark.slow
@pytest.mark.parametrize("resource", [True, False])
def test_a_script_of_its_own_is_read_by_its_variables_names(cluster, resource):
    import tensorflow.compat.v1 as tf1

    made, target = cluster
    with tf1.Graph().as_default() as graph:
        setter = tf1.train.replica_device_setter(ps_tasks=2, worker_device=WORKER)
        with tf1.device(setter):
            table = tf1.get_variable("table", (50, 4), use_resource=resource)
            kernel = tf1.get_variable("kernel", (4, 1), use_resource=resource)
            ids = tf1.placeholder(tf1.int32, [None])
            rows = tf1.nn.embedding_lookup(table, ids)
            loss = tf1.reduce_mean(tf1.square(tf1.matmul(rows, kernel) - 1.0))
            train = tf1.train.AdagradOptimizer(0.1).minimize(loss)
        initialise = tf1.global_variables_initializer()
    with server_sessions.session(made, target, graph) as session:
        session.run(initialise)
        metadata = traced(session, [train, loss], {ids: [3, 4, 5]})
    record = step_stats.read([step_stats.TracedStep(1, metadata)], WORKER)
    pulled = {
        (each.variable, each.server): each.bytes for each in record.transfers if each.direction == "pull"
    }
    assert pulled == {("table", "ps-0"): 3 * 4 * 4, ("kernel", "ps-1"): 4 * 4}
    assert moved(record, Direction.PUSH)["kernel"] == 4 * 4
    applied = {each.variable for each in record.operations if "ApplyAdagrad" in each.kind}
    assert applied == {"table", "kernel"}
    assert record.splits[0].input_wait_microseconds is None


@given(
    st.integers(0, 10**9),
    st.lists(st.floats(0.001, 1000), min_size=1, max_size=20),
)
def test_a_message_is_shared_out_exactly(total, weights):
    shares = {str(place): weight / sum(weights) for place, weight in enumerate(weights)}
    parts = step_stats.shared_out(total, shares)
    assert sum(parts.values()) == total
    assert all(abs(parts[name] - total * share) <= 1 + 1e-6 * total for name, share in shares.items())


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=12))
def test_the_length_of_a_union_counts_every_moment_once(pairs):
    intervals = [(start, start + size) for start, size in pairs]
    moments = {moment for start, end in intervals for moment in range(start, end)}
    assert step_stats.length(intervals) == len(moments)
