"""Layouts of variables over parameter servers, side by side, and one shard by shard."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.model.variable_plans import Plan
from paceline.services.variable_plans import Alternative
from paceline.surfaces.views import cells, tables


def alternatives(found: Sequence[Alternative], *, width: int | None) -> RenderableType:
    """Return a row for each alternative: bytes and traffic of the fullest server, and how uneven they are."""
    plans = [one.plan for one in found]
    table = tables.fit(
        [
            tables.Column(header="PLAN", cells=[one.name for one in found]),
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
    notes = [Text(f"{one.name}: {cells.clean(one.missing)}", style="yellow") for one in found if one.missing]
    unmeasured = any(one.plan is not None and one.plan.step_bytes() is None for one in found)
    return Group(table, *notes, *([Text(cells.FOOTNOTE, style="dim")] if notes or unmeasured else []))


def _shards(plan: Plan | None) -> str:
    return cells.UNMEASURED if plan is None else str(len(plan.shards))


def _most_bytes(plan: Plan | None) -> str:
    return cells.compact_bytes(None if plan is None else max(plan.memory_bytes()))


def _most_traffic(plan: Plan | None) -> str:
    traffic = None if plan is None else plan.step_bytes()
    return cells.compact_bytes(None if traffic is None else max(traffic))


def _ratio(value: float | None) -> str:
    return cells.UNMEASURED if value is None else f"{value:.2f}"
