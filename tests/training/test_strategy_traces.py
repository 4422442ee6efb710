"""Traces of a real strategy, whose workers and parameter servers know nothing of them."""

import pytest

from paceline.model import trace_summaries, traces
from paceline.model.traces import Direction
from paceline.sources import traces as sources
from paceline.training import clusters, settings

pytestmark = pytest.mark.slow


def test_a_strategy_is_traced_through_its_coordinator(launched_job, tmp_path):
    processes = launched_job({"trace": {"steps": 3}}, script="strategy_job.py", ps=2, worker=2, chief=1)
    processes.environment["PACELINE_RUN_DIR"] = str(tmp_path)
    processes.start_all()
    processes.wait("chief", 0)
    found = [sources.read(tmp_path, name) for name in sources.names(tmp_path)]
    assert all(len(each.traces) > 1 and each.broken == () for each in found), "a trace has steps"
    whole = next(each for each in found if len(each.traces) == 3)
    chief, *workers = whole.traces
    assert (chief.trainer, chief.splits, chief.events) == ("chief-0", (), ())
    assert [each.trainer for each in workers] == ["worker-0", "worker-1"]
    for worker in workers:
        assert [split.step for split in worker.splits] == [1, 2, 3]
        for split in worker.splits:
            assert split.input_wait_microseconds >= 0
            assert split.compute_microseconds > 0
            assert split.pull_microseconds > 0
            assert abs(split.start_at - worker.at) < 60
        named_as_layers(worker)
    assert not list((tmp_path / traces.FOLDER).glob("*/profile"))


def named_as_layers(worker):
    """Each variable is pulled and pushed once a step and shard, and its update is on its server."""
    traffic = trace_summaries.traffic([worker])
    moved = {(row.variable, row.shard, row.direction) for row in traffic}
    for shard in (0, 1):
        assert {("model/site", shard, direction) for direction in Direction} <= moved
    assert {("model/tags", None, direction) for direction in Direction} <= moved
    assert {("model/hidden/MatMul", None, each) for each in (Direction.PULL, Direction.PUSH)} <= moved
    assert all(row.bytes is None for row in traffic)
    assert all(row.microseconds > 0 for row in traffic if row.variable == "model/site")
    server = {row.shard: row.server for row in traffic if row.variable == "model/site"}
    assert sorted(server.values()) == ["ps-0", "ps-1"]
    updates = [
        row for row in trace_summaries.server_time([worker]) if row.kind == "ResourceSparseApplyAdagradV2"
    ]
    assert {(row.variable, row.shard, row.server) for row in updates} >= {
        ("model/site", shard, server[shard]) for shard in (0, 1)
    }
    assert all(row.calls == 1 for row in updates)


def test_who_does_not_coordinate_traces_nothing(tmp_path):
    from paceline.training import strategy_traces

    addresses = {"chief": ("localhost:1",), "ps": ("localhost:2",), "worker": ("localhost:3",)}
    for role, run_dir in (("worker", str(tmp_path)), ("chief", None)):
        cluster = clusters.Cluster(addresses, role, 0)
        with strategy_traces.StrategyTracer(cluster, settings.Trace(every_seconds=1), run_dir):
            pass
    assert list(tmp_path.iterdir()) == []
