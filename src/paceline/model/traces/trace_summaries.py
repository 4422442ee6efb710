"""What traces of one moment say together: means for a step, over the traced steps of each trainer.

What trainers move and compute adds up on the parameter servers, so those means are added over the trainers:
in the time that each takes for a step, this is what the servers see.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from paceline.model.traces.traced_steps import Direction, Split, Trace, Transfer


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class VariableTraffic:
    """What a step moves of a shard of a variable, to or from its parameter server; None: not measured."""

    variable: str | None
    shard: int | None
    server: str
    direction: Direction
    bytes: float | None
    microseconds: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerTime:
    """What a step computes on a parameter server for a shard of a variable, by kind of operation."""

    kind: str
    variable: str | None
    shard: int | None
    server: str
    calls: float
    microseconds: float


def traffic(traces: Sequence[Trace]) -> tuple[VariableTraffic, ...]:
    """Return what a step moves, the most bytes first, and where they are not measured the longest."""
    found: dict[tuple[str | None, int | None, str, Direction], list[tuple[int, list[Transfer]]]] = {}
    for trace in traces:
        own: dict[tuple[str | None, int | None, str, Direction], list[Transfer]] = {}
        for each in trace.transfers:
            own.setdefault((each.variable, each.shard, each.server, each.direction), []).append(each)
        for key, transfers in own.items():
            found.setdefault(key, []).append((max(len(trace.splits), len(transfers)), transfers))
    rows = (
        VariableTraffic(
            variable=variable, shard=shard, server=server, direction=direction,
            bytes=_sum([_mean(steps, [each.bytes for each in some]) for steps, some in groups]),
            microseconds=_sum([_mean(steps, [each.microseconds for each in some]) for steps, some in groups]),
        )
        for (variable, shard, server, direction), groups in found.items()
    )  # fmt: skip
    return tuple(sorted(rows, key=_order))


def _order(row: VariableTraffic) -> tuple[float, float, str, str]:
    longest = (row.microseconds or 0.0) if row.bytes is None else 0.0
    return -(row.bytes or 0.0), -longest, row.server, row.variable or ""


def _mean(steps: int, values: Sequence[float | None]) -> float | None:
    """Return the mean over the steps in which it was measured; a step without a value moved nothing.

    None: it was measured in none.
    """
    known = [value for value in values if value is not None]
    return sum(known) / (steps - len(values) + len(known)) if known else None


def _sum(means: Sequence[float | None]) -> float | None:
    """Return the sum over trainers; one where it was not measured counts as the others do on average."""
    known = [mean for mean in means if mean is not None]
    return sum(known) / len(known) * len(means) if known else None


def server_time(traces: Sequence[Trace]) -> tuple[ServerTime, ...]:
    """Return what a step computes on parameter servers, the longest first."""
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
    """Return the mean of a trace's steps under the number of the first; None if it has none.

    The wait for input is None unless it is known of all.
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
    """Where the time of steps goes, as parts of 1.

    Attributes:
        at: when it was traced, the last time (Unix seconds).
        trainers: how many were traced.
        input_wait: None: it was not measured of all, and the others are shares of the rest.
    """

    at: float
    trainers: int
    input_wait: float | None
    pull: float
    compute: float
    push: float
    other: float


def shares(traces: Sequence[Trace]) -> Shares | None:
    """Return where the time of a mean step of all trainers goes; None: no step was traced."""
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
    """Return by how much a trainer's clock is ahead of another's, through the server that both know best.

    0 where they know none together.
    """
    known = {clock.process: clock for clock in reference.clocks}
    both = [(clock, known[clock.process]) for clock in trace.clocks if clock.process in known]
    if not both:
        return 0.0
    mine, other = min(both, key=lambda pair: sum(clock.uncertainty_microseconds for clock in pair))
    return other.offset_microseconds - mine.offset_microseconds
