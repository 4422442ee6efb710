"""Bars of what a step moves and where its time goes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from paceline.model.measures.recordings import Recording
from paceline.model.traces.traced_steps import Direction, Split, Trace, Transfer
from paceline.stores import recordings
from paceline.surfaces.charts import steps

RECORDED = Path(__file__).parents[3] / "benchmarks" / "diagnosis" / "recordings"


@pytest.fixture(scope="module")
def untraced() -> Recording:
    found = recordings.read(RECORDED / "ps-cpu-bound.gross.deepfm-large-plain-4.parquet")
    return dataclasses.replace(found, traces=())


def moved(server: int, direction: Direction, count: int, variable: str = "table") -> Transfer:
    return Transfer(
        step=1, server=f"ps-{server}", direction=direction, variable=variable, shard=None, bytes=count,
        microseconds=1.0,
    )  # fmt: skip


def traced(untraced: Recording, *transfers: Transfer) -> Recording:
    split = Split(
        step=1, start_at=1.0, input_wait_microseconds=None, pull_microseconds=100.0,
        compute_microseconds=300.0, push_microseconds=0.0, other_microseconds=100.0,
    )  # fmt: skip
    return dataclasses.replace(
        untraced, traces=(Trace(trainer="worker-0", attempt=1, at=1.0, splits=(split,), transfers=transfers),)
    )


def test_pulls_and_pushes_by_server(untraced: Recording) -> None:
    found = steps.traffic(
        traced(
            untraced,
            moved(0, Direction.PULL, 500),
            moved(1, Direction.PULL, 400),
            moved(1, Direction.IDS, 100),
            moved(1, Direction.PUSH, 200),
            moved(1, Direction.PUSH, 3, "bias"),
        )
    )
    assert found is not None
    assert found.is_traced
    assert [(each[1], round(each[2], 2)) for each in found.legend] == [("ps-0", 0.42), ("ps-1", 0.58)]
    (pull,), (push,) = found.ways["pull"], found.ways["push"]
    assert [(each.of, each.left, each.width) for each in pull.pieces] == [
        ("ps-0", 0.0, 500.0),
        ("ps-1", 500.0, 500.0),
    ]
    assert (pull.total, push.total) == (1000.0, 200.0)
    assert found.left_out == (1, 3.0)


def test_of_many_servers_those_with_the_most_have_colours(untraced: Recording) -> None:
    found = steps.traffic(traced(untraced, *(moved(each, Direction.PULL, 100 + each) for each in range(20))))
    assert found is not None
    assert [each[1] for each in found.legend] == ["ps-16", "ps-17", "ps-18", "ps-19", "+ 16 PS"]


def test_without_a_trace_traffic_is_what_was_counted_of_batches(untraced: Recording) -> None:
    found = steps.traffic(untraced)
    assert found is not None
    assert (found.is_traced, list(found.ways)) == (False, ["both"])
    assert steps.splits(untraced) is None
    assert steps.traffic(dataclasses.replace(untraced, plan=None)) is None


def test_where_the_time_of_a_step_goes(untraced: Recording) -> None:
    found = steps.splits(traced(untraced))
    assert found is not None
    (row,) = found.rows
    assert row.total == 500.0
    assert [(each.of, each.width) for each in row.pieces] == [("pull", 200), ("compute", 600), ("other", 200)]
