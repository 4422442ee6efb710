"""Layouts of variables over parameter servers: compared, shard by shard, and as differences of two plans."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.model.variables.plan_comparisons import VariableDifference
from paceline.model.variables.variable_plans import Plan
from paceline.model.variables.variables import Shard
from paceline.services.variable_plans import Alternative
from paceline.surfaces.views import cells, tables


def alternatives(plans_tried: Sequence[Alternative], *, width: int | None) -> RenderableType:
    """Return a row for each alternative: bytes and traffic of the fullest server, and the imbalances."""
    plans = [one.plan for one in plans_tried]
    table = tables.fit(
        [
            tables.Column(header="PLAN", cells=[one.name for one in plans_tried]),
            tables.Column(header="SHARDS", cells=[_shards(plan) for plan in plans], right=True, drop=1),
            tables.Column(header="MAX BYTES", cells=[_most_bytes(plan) for plan in plans], right=True),
            tables.Column(
                header="MAX/MEAN",
                cells=[_ratio(None if plan is None else plan.memory_imbalance()) for plan in plans],
                right=True,
            ),
            tables.Column(
                header="MAX TRAFFIC/STEP", cells=[_most_traffic(plan) for plan in plans], right=True
            ),
            tables.Column(
                header="MAX/MEAN",
                cells=[_ratio(None if plan is None else plan.traffic_imbalance()) for plan in plans],
                right=True,
            ),
        ],
        width,
    ).text
    notes = [
        Text(f"{one.name}: {cells.clean(one.missing)}", style="yellow") for one in plans_tried if one.missing
    ]
    unmeasured = any(one.plan is not None and one.plan.step_bytes() is None for one in plans_tried)
    return Group(table, *notes, *([Text(cells.FOOTNOTE, style="dim")] if notes or unmeasured else []))


def shards(plan: Plan, *, width: int | None) -> RenderableType:
    """Return a row for each shard: its server, its bytes and its traffic per step."""
    columns = [
        tables.Column(header="VARIABLE", cells=[shard.name for shard in plan.shards], shrink_to=16),
        tables.Column(header="PS", cells=[str(shard.server) for shard in plan.shards], right=True),
        tables.Column(header="ROWS", cells=[f"{shard.rows:,}" for shard in plan.shards], right=True),
        tables.Column(header="ORDER", cells=[shard.layout.order.value for shard in plan.shards], drop=1),
        tables.Column(
            header="BYTES",
            cells=[cells.compact_bytes(shard.memory_bytes) for shard in plan.shards],
            right=True,
        ),
        tables.Column(
            header="TRAFFIC/STEP",
            cells=[cells.compact_bytes(shard.step_bytes) for shard in plan.shards],
            right=True,
        ),
    ]
    unmeasured = plan.step_bytes() is None
    return Group(
        tables.fit(columns, width).text,
        Text(f"bytes max/mean {_ratio(plan.memory_imbalance())}"),
        Text(f"traffic max/mean {_ratio(plan.traffic_imbalance())}"),
        *([Text(cells.FOOTNOTE, style="dim")] if unmeasured else []),
    )


def differences(found: Sequence[VariableDifference], *, width: int | None) -> RenderableType:
    """Return a row for each variable whose layout differs: servers before and after, and moved bytes."""
    if not found:
        return Text("nothing moves: both plans are the same")
    moved = cells.compact_bytes(sum(one.moved_bytes or 0 for one in found))
    most = "at most " if any(one.is_reordered for one in found) else ""
    columns = [
        tables.Column(header="VARIABLE", cells=[one.variable for one in found], shrink_to=16),
        tables.Column(header="BEFORE ON PS", cells=[_servers(one.before) for one in found], shrink_to=12),
        tables.Column(header="AFTER ON PS", cells=[_servers(one.after) for one in found], shrink_to=12),
        tables.Column(header="MOVES", cells=[_moved(one) for one in found], right=True),
    ]
    summary = Text(f"{most}{moved} move to another PS, slots included")
    return Group(tables.fit(columns, width).text, summary)


def _servers(parts: Sequence[Shard]) -> str:
    return " ".join(str(shard.server) for shard in parts) or "not there"


def _moved(one: VariableDifference) -> str:
    if one.moved_bytes is None:
        return "another variable" if one.before and one.after else "new" if one.after else "gone"
    return f"{'at most ' if one.is_reordered else ''}{cells.compact_bytes(one.moved_bytes)}"


def _shards(plan: Plan | None) -> str:
    return cells.UNMEASURED if plan is None else str(len(plan.shards))


def _most_bytes(plan: Plan | None) -> str:
    return cells.compact_bytes(None if plan is None else max(plan.memory_bytes()))


def _most_traffic(plan: Plan | None) -> str:
    traffic = None if plan is None else plan.step_bytes()
    return cells.compact_bytes(None if traffic is None else max(traffic))


def _ratio(value: float | None) -> str:
    return cells.UNMEASURED if value is None else f"{value:.2f}"
