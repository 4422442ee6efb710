"""Summaries of the traces of one moment: means for a step, over the traced steps of each trainer.

The traffic and the computing of trainers add up on the parameter servers, so these means are added over the
trainers: the sums are what the servers see in the time in which each trainer makes a step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from paceline.model.instants import UnixSeconds
from paceline.model.traces.traced_steps import Direction, Split, Trace, Transfer


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class VariableTraffic:
    """The traffic of a step for a shard of a variable, to or from its PS; None: not measured."""

    variable: str | None
    shard: int | None
    server: str
    direction: Direction
    bytes: float | None
    microseconds: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerTime:
    """The computing of a step on a parameter server for a shard of a variable, by kind of operation."""

    kind: str
    variable: str | None
    shard: int | None
    server: str
    calls: float
    microseconds: float


def traffic(traces: Sequence[Trace]) -> tuple[VariableTraffic, ...]:
    """Return the traffic of a step, most bytes first, then what has no bytes measured, longest first."""
    groups_by_key: dict[tuple[str | None, int | None, str, Direction], list[tuple[int, list[Transfer]]]] = {}
    for trace in traces:
        trace_transfers: dict[tuple[str | None, int | None, str, Direction], list[Transfer]] = {}
        for transfer in trace.transfers:
            trace_transfers.setdefault(
                (transfer.variable, transfer.shard, transfer.server, transfer.direction), []
            ).append(transfer)
        for key, transfers in trace_transfers.items():
            groups_by_key.setdefault(key, []).append((max(len(trace.splits), len(transfers)), transfers))
    rows = (
        VariableTraffic(
            variable=variable, shard=shard, server=server, direction=direction,
            bytes=_sum([_mean(steps, [transfer.bytes for transfer in some]) for steps, some in groups]),
            microseconds=_sum(
                [_mean(steps, [transfer.microseconds for transfer in some]) for steps, some in groups]
            ),
        )
        for (variable, shard, server, direction), groups in groups_by_key.items()
    )  # fmt: skip
    return tuple(sorted(rows, key=_order))


def _order(row: VariableTraffic) -> tuple[float, float, str, str]:
    longest = (row.microseconds or 0.0) if row.bytes is None else 0.0
    return -(row.bytes or 0.0), -longest, row.server, row.variable or ""


def _mean(steps: int, values: Sequence[float | None]) -> float | None:
    """Return the mean over the steps in which a value was measured; a step without a transfer moved nothing.

    None: the value was measured in no step.
    """
    known = [value for value in values if value is not None]
    return sum(known) / (steps - len(values) + len(known)) if known else None


def _sum(means: Sequence[float | None]) -> float | None:
    """Return the sum over trainers; a trainer without a measurement counts as the mean of the others."""
    known = [mean for mean in means if mean is not None]
    return sum(known) / len(known) * len(means) if known else None


def server_time(traces: Sequence[Trace]) -> tuple[ServerTime, ...]:
    """Return the computing of a step on the parameter servers, the longest first."""
    found: dict[tuple[str, str | None, int | None, str], tuple[float, float]] = {}
    for trace in traces:
        for each in trace.operations:
            key = each.kind, each.variable, each.shard, each.server
            found[key] = _added(found.get(key), trace, each.calls, each.microseconds)
    rows = (
        ServerTime(
            kind=kind, variable=variable, shard=shard, server=server, calls=total[0], microseconds=total[1]
        )
        for (kind, variable, shard, server), total in found.items()
    )
    return tuple(sorted(rows, key=lambda row: (-row.microseconds, row.server, row.variable or "")))


def _added(
    total: tuple[float, float] | None, trace: Trace, first: float, second: float
) -> tuple[float, float]:
    before, steps = total or (0.0, 0.0), max(1, len(trace.splits))
    return before[0] + first / steps, before[1] + second / steps


def mean_split(trace: Trace) -> Split | None:
    """Return the mean of a trace's steps, with the number of the first step; None: the trace has no step.

    The wait for input is None unless it is known for all steps.
    """
    if not trace.splits:
        return None
    count, waits = len(trace.splits), [split.input_wait_microseconds for split in trace.splits]
    known = [wait for wait in waits if wait is not None]
    return Split(
        step=trace.splits[0].step,
        start_at=trace.splits[0].start_at,
        input_wait_microseconds=sum(known) / count if len(known) == count else None,
        pull_microseconds=sum(split.pull_microseconds for split in trace.splits) / count,
        compute_microseconds=sum(split.compute_microseconds for split in trace.splits) / count,
        push_microseconds=sum(split.push_microseconds for split in trace.splits) / count,
        other_microseconds=sum(split.other_microseconds for split in trace.splits) / count,
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """The shares of the time of steps, between 0 and 1.

    Attributes:
        at: when the last of the traces was made.
        trainers: the number of traced trainers.
        input_wait: the wait for input; None: it was not measured for all trainers, and the whole has only the
            waits that were measured.
    """

    at: UnixSeconds
    trainers: int
    input_wait: float | None
    pull: float
    compute: float
    push: float
    other: float


def shares(traces: Sequence[Trace]) -> Shares | None:
    """Return the shares of the time of a mean step of all trainers; None: no step was traced."""
    splits = [split for trace in traces if (split := mean_split(trace)) is not None]
    total = sum(split.total_microseconds for split in splits)
    if total <= 0:
        return None
    waits = [split.input_wait_microseconds for split in splits]
    known = [wait for wait in waits if wait is not None]
    return Shares(
        at=max(trace.at for trace in traces),
        trainers=len(splits),
        input_wait=sum(known) / total if len(known) == len(waits) else None,
        pull=sum(split.pull_microseconds for split in splits) / total,
        compute=sum(split.compute_microseconds for split in splits) / total,
        push=sum(split.push_microseconds for split in splits) / total,
        other=sum(split.other_microseconds for split in splits) / total,
    )


def ahead_microseconds(trace: Trace, reference: Trace) -> float:
    """Return how far a trainer's clock is ahead of another's, through the process that both know best.

    0: there is no process whose clock both know.
    """
    known = {clock.process: clock for clock in reference.clocks}
    both = [(clock, known[clock.process]) for clock in trace.clocks if clock.process in known]
    if not both:
        return 0.0
    mine, other = min(both, key=lambda pair: sum(clock.uncertainty_microseconds for clock in pair))
    return other.offset_microseconds - mine.offset_microseconds
