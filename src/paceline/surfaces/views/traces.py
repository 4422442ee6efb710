"""A trace as tables: the traffic of variables, the parameter servers' operations, the split of steps."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.model.traces import trace_summaries
from paceline.model.traces.traced_steps import Trace
from paceline.surfaces.views import cells, tables

_TRAFFIC_ROWS = 12
_SERVER_ROWS = 5


def page(traces: Sequence[Trace], *, width: int | None) -> RenderableType:
    """Return the tables, with only the largest rows; without a width, with all rows."""
    return Group(
        _splits(traces, width),
        Text(),
        _traffic(trace_summaries.traffic(traces), width),
        Text(),
        _server_time(trace_summaries.server_time(traces), width),
        Text(cells.FOOTNOTE, style="dim"),
    )


def _splits(traces: Sequence[Trace], width: int | None) -> Text:
    means = [trace_summaries.mean_split(trace) for trace in traces]

    def column(header: str, name: str) -> tables.Column:
        values = [None if mean is None else getattr(mean, name) for mean in means]
        return tables.Column(header=header, cells=[_milliseconds(value) for value in values], right=True)

    columns = [
        tables.Column(header="TRAINER", cells=[trace.trainer for trace in traces]),
        tables.Column(header="STEPS", cells=[str(len(trace.splits)) for trace in traces], right=True, drop=1),
        column("STEP MS", "total_microseconds"),
        column("INPUT WAIT", "input_wait_microseconds"),
        column("PULL", "pull_microseconds"),
        column("COMPUTE", "compute_microseconds"),
        column("PUSH", "push_microseconds"),
        column("OTHER", "other_microseconds"),
    ]
    return tables.fit(columns, width).text


def _traffic(rows: Sequence[trace_summaries.VariableTraffic], width: int | None) -> Text:
    shown = rows if width is None else rows[:_TRAFFIC_ROWS]
    total = sum(row.bytes or 0 for row in rows)
    columns = [
        tables.Column(header="VARIABLE", cells=[_variable(row.variable) for row in shown], shrink_to=16),
        tables.Column(header="SHARD", cells=[_shard(row.shard) for row in shown], right=True, drop=1),
        tables.Column(header="PS", cells=[row.server for row in shown]),
        tables.Column(header="MOVES", cells=[row.direction.value for row in shown]),
        tables.Column(
            header="BYTES/STEP", cells=[cells.compact_bytes(row.bytes) for row in shown], right=True
        ),
        tables.Column(
            header="SHARE", cells=[_share(row.bytes, total) for row in shown],
            right=True, drop=2,
        ),
        tables.Column(
            header="US/STEP", cells=[cells.number(row.microseconds) for row in shown], right=True
        ),
    ]  # fmt: skip
    return _with_rest(tables.fit(columns, width).text, len(rows) - len(shown))


def _server_time(rows: Sequence[trace_summaries.ServerTime], width: int | None) -> Text:
    shown = rows if width is None else rows[:_SERVER_ROWS]
    columns = [
        tables.Column(header="ON THE PS", cells=[row.kind for row in shown], shrink_to=16),
        tables.Column(
            header="VARIABLE",
            cells=["several" if row.variable is None else _variable(row.variable) for row in shown],
            shrink_to=12,
        ),
        tables.Column(header="SHARD", cells=[_shard(row.shard) for row in shown], right=True, drop=1),
        tables.Column(header="PS", cells=[row.server for row in shown]),
        tables.Column(
            header="CALLS/STEP", cells=[cells.number(row.calls) for row in shown], right=True, drop=2
        ),
        tables.Column(header="US/STEP", cells=[cells.number(row.microseconds) for row in shown], right=True),
    ]
    return _with_rest(tables.fit(columns, width).text, len(rows) - len(shown))


def _with_rest(table: Text, left_out: int) -> Text:
    return table if left_out <= 0 else Text.assemble(table, (f"\n… {left_out} more (-o wide)", "dim"))


def _variable(name: str | None) -> str:
    return cells.UNMEASURED if name is None else cells.clean(name)


def _shard(number: int | None) -> str:
    return "" if number is None else str(number)


def _share(part: float | None, total: float) -> str:
    return cells.UNMEASURED if part is None or total == 0 else cells.percent(part / total)


def _milliseconds(microseconds: float | None) -> str:
    return cells.UNMEASURED if microseconds is None else f"{microseconds / 1000:.2f}"
