"""The traffic and the time of a traced step, as rows of stacked bars."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from paceline.diagnosing.cases import Case
from paceline.model.measures.recordings import Recording
from paceline.model.roles import ReplicaId
from paceline.model.traces import trace_summaries
from paceline.model.traces.trace_summaries import Shares
from paceline.model.traces.traced_steps import Direction
from paceline.surfaces.charts import bars
from paceline.surfaces.charts.bars import BarRow

#: The most rows that are shown, and the least share of all traffic that a shown variable has.
MOST_ROWS, LEAST_SHARE = 12, 0.005
#: This many parameter servers, those with the most traffic, have a colour of their own.
MOST_COLOURS = 4
OTHER = "tint-muted"
#: The parts of a step, each with its colour.
PARTS = {
    "pull": "tint-orange", "compute": "tint-blue", "push": "tint-vermilion", "wait": "tint-purple",
    "other": "tint-muted",
}  # fmt: skip
_TINTS = ("tint-vermilion", "tint-blue", "tint-orange", "tint-sky")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StepTraffic:
    """The traffic of a step.

    Attributes:
        legend: the styles, each with what it stands for and its share of all traffic.
        ways: a row for each variable, by direction: ``pull`` and ``push``, or ``both`` if only their sum is
            known.
        left_out: how many variables have no row, and their traffic.
        is_traced: whether the traffic was traced; else it was counted from the ids of batches, for one
            trainer.
    """

    legend: tuple[tuple[str, str, float], ...]
    ways: Mapping[str, tuple[BarRow, ...]]
    left_out: tuple[int, float]
    is_traced: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Splits:
    """How each trainer spends the time of a step, in microseconds; ``parts`` are the colours of the parts."""

    rows: tuple[BarRow, ...]
    left_out: int
    shares: Shares
    parts: Mapping[str, str] = dataclasses.field(default_factory=PARTS.copy)


_Amounts = dict[str, dict[str, float]]


def traffic(recording: Recording) -> StepTraffic | None:
    """Return the traffic of variables by parameter server; None if it was not measured."""
    ways = _traced(recording)
    is_traced = bool(ways)
    if not ways:
        counted: _Amounts = {}
        for shard in Case.of(recording).traffic:
            _add(counted, shard.variable, shard.server, shard.bytes)
        ways = {"both": counted} if counted else {}
    totals: dict[str, float] = {}
    by_server: dict[str, float] = {}
    for amounts in ways.values():
        for variable, servers in amounts.items():
            for server, moved in servers.items():
                totals[variable] = totals.get(variable, 0.0) + moved
                by_server[server] = by_server.get(server, 0.0) + moved
    if not totals:
        return None
    ranked = sorted(totals, key=lambda name: (-totals[name], name))
    least = LEAST_SHARE * sum(totals.values())
    shown = [name for name in ranked if totals[name] >= least][:MOST_ROWS]
    styles = _styles(by_server)
    return StepTraffic(
        legend=_legend(styles, by_server),
        ways={way: _rows(amounts, shown, styles) for way, amounts in ways.items()},
        left_out=(len(ranked) - len(shown), sum(totals[name] for name in ranked[len(shown) :])),
        is_traced=is_traced,
    )


def _traced(recording: Recording) -> dict[str, _Amounts]:
    """Return bytes by direction, variable and server; the ids of pulled rows count as pull traffic."""
    found: dict[str, _Amounts] = {}
    for each in trace_summaries.traffic(recording.traces):
        if each.variable is not None and each.bytes:
            way = "push" if each.direction is Direction.PUSH else "pull"
            _add(found.setdefault(way, {}), each.variable, each.server, each.bytes)
    return dict(sorted(found.items()))


def _add(amounts: _Amounts, variable: str, server: str, moved: float | None) -> None:
    if moved:
        servers = amounts.setdefault(variable, {})
        servers[server] = servers.get(server, 0.0) + moved


def _styles(by_server: Mapping[str, float]) -> dict[str, str]:
    """Return the colour of each server, in the order of the servers' indices."""
    busiest = sorted(by_server, key=lambda server: -by_server[server])[:MOST_COLOURS]
    named = sorted(busiest, key=ReplicaId.parse)
    return {
        server: _TINTS[named.index(server)] if server in named else OTHER
        for server in sorted(by_server, key=ReplicaId.parse)
    }


def _legend(styles: Mapping[str, str], by_server: Mapping[str, float]) -> tuple[tuple[str, str, float], ...]:
    total = sum(by_server.values())
    named = [(style, of, by_server[of] / total) for of, style in styles.items() if style != OTHER]
    others = [by_server[of] for of, style in styles.items() if style == OTHER]
    if others:
        named.append((OTHER, f"+ {len(others)} PS", sum(others) / total))
    return tuple(named)


def _rows(amounts: _Amounts, variables: Sequence[str], styles: Mapping[str, str]) -> tuple[BarRow, ...]:
    longest = max((sum(amounts.get(name, {}).values()) for name in variables), default=0.0)
    return tuple(
        bars.row(
            name,
            [(styles[server], server, amounts.get(name, {}).get(server, 0.0)) for server in styles],
            longest,
        )
        for name in variables
    )


def splits(recording: Recording) -> Splits | None:
    """Return the mean step's split for the trainers with the longest steps; None if no step was traced."""
    shares = trace_summaries.shares(recording.traces)
    means = [
        (trace.trainer, mean)
        for trace in recording.traces
        if (mean := trace_summaries.mean_split(trace)) is not None
    ]
    if shares is None:
        return None
    longest = sorted(means, key=lambda pair: -pair[1].total_microseconds)[:MOST_ROWS]
    top = longest[0][1].total_microseconds
    rows = []
    for trainer, mean in sorted(longest, key=lambda pair: ReplicaId.parse(pair[0])):
        values = (
            mean.pull_microseconds, mean.compute_microseconds, mean.push_microseconds,
            mean.input_wait_microseconds or 0.0, mean.other_microseconds,
        )  # fmt: skip
        rows.append(
            bars.row(
                trainer,
                [(style, part, value) for (part, style), value in zip(PARTS.items(), values, strict=True)],
                top,
            )
        )
    return Splits(rows=tuple(rows), left_out=len(means) - len(rows), shares=shares)
