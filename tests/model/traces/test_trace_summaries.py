"""What traces say together."""

import pytest

from paceline.model.traces import trace_summaries
from paceline.model.traces.traced_steps import ClockOffset, Direction, Operation, Split, Trace, Transfer


def split(step, wait=None):
    return Split(
        step=step, start_at=1e9, input_wait_microseconds=wait, pull_microseconds=10.0,
        compute_microseconds=20.0 * step, push_microseconds=5.0, other_microseconds=1.0,
    )  # fmt: skip


def transfer(step, size, microseconds):
    return Transfer(
        step=step, server="ps-0", direction=Direction.PULL, variable="a", shard=None, bytes=size,
        microseconds=microseconds,
    )  # fmt: skip


def trace(trainer, *transfers, steps=2, **more):
    splits = tuple(split(step) for step in range(1, steps + 1))
    return Trace(trainer=trainer, attempt=1, at=1e9, splits=splits, transfers=transfers, **more)


def test_a_step_is_a_mean_over_steps_and_a_sum_over_trainers():
    both = [
        trace("worker-0", transfer(1, 100, 10.0), transfer(2, 300, 30.0)),
        trace("worker-1", transfer(1, 50, 4.0)),
    ]
    (row,) = trace_summaries.traffic(both)
    assert (row.bytes, row.microseconds) == (225, 22)


def test_what_was_not_measured_is_no_zero():
    (row,) = trace_summaries.traffic([trace("worker-0", transfer(1, 100, None), transfer(2, 300, 30.0))])
    assert (row.bytes, row.microseconds) == (200, 30)
    (row,) = trace_summaries.traffic([trace("worker-0", transfer(1, None, None))])
    assert (row.bytes, row.microseconds) == (None, None)  # though the other step moved nothing


def test_server_time_adds_up_by_kind_and_variable():
    done = [
        Operation(
            step=step, server="ps-1", kind="ResourceGather", variable="a", shard=0, calls=2,
            microseconds=50.0 * step,
        )
        for step in (1, 2)
    ]  # fmt: skip
    (row,) = trace_summaries.server_time([trace("worker-0", operations=tuple(done))] * 3)
    assert (row.kind, row.calls, row.microseconds) == ("ResourceGather", 6, 225)


def test_a_mean_split_knows_the_wait_only_if_all_do():
    one = trace("worker-0")
    assert trace_summaries.mean_split(one).compute_microseconds == 30
    assert trace_summaries.mean_split(one).input_wait_microseconds is None
    known = Trace(trainer="worker-0", attempt=1, at=1e9, splits=(split(1, 4.0), split(2, 8.0)))
    assert trace_summaries.mean_split(known).input_wait_microseconds == 6
    assert trace_summaries.mean_split(Trace(trainer="worker-0", attempt=1, at=1e9)) is None


def clocks(**offsets):
    return tuple(
        ClockOffset(
            process=process.replace("_", "-"), offset_microseconds=ahead, uncertainty_microseconds=wide
        )
        for process, (ahead, wide) in offsets.items()
    )


def test_clocks_of_trainers_are_compared_through_the_server_both_know_best():
    mine = trace("worker-1", clocks=clocks(ps_0=(-500.0, 3.0), ps_1=(0.0, 900.0)))
    reference = trace("worker-0", clocks=clocks(ps_0=(200.0, 3.0), ps_1=(0.0, 900.0)))
    assert trace_summaries.ahead_microseconds(mine, reference) == pytest.approx(700)
    assert trace_summaries.ahead_microseconds(reference, reference) == 0
    assert trace_summaries.ahead_microseconds(trace("worker-2"), reference) == 0
