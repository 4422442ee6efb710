"""The figures of reports, and the colours and dashes of replicas that they share."""

from __future__ import annotations

import dataclasses

from paceline.model.roles import ReplicaId, Role
from paceline.surfaces.charts.bars import Bars
from paceline.surfaces.charts.drawings import Chart
from paceline.surfaces.charts.steps import Splits, StepTraffic

_TINTS = {
    Role.PS: ("vermilion", "orange", "purple", "yellow"),
    Role.WORKER: ("blue", "sky", "green", "muted"),
    Role.CHIEF: ("green", "blue", "sky", "muted"),
    Role.EVALUATOR: ("purple", "orange", "yellow", "muted"),
}
_DASHES = {Role.PS: "", Role.WORKER: " dash-long", Role.CHIEF: " dash-both", Role.EVALUATOR: " dash-short"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReportFigure:
    """Charts side by side, or bars below each other, with a caption.

    Attributes:
        name: a lower-case name, unique on the page.
        wide: whether the figure fills the whole width of the page.
    """

    name: str
    title: str
    caption: str
    charts: tuple[Chart, ...] = ()
    bars: tuple[Bars, ...] = ()
    traffic: StepTraffic | None = None
    splits: Splits | None = None
    wide: bool = False


def tint(replica: ReplicaId) -> str:
    """Return the class of the colour of a replica."""
    tints = _TINTS[replica.role]
    return f"tint-{tints[replica.index % len(tints)]}"


def tint_of(role: Role) -> str:
    """Return the class of the colour of a role as a whole."""
    return f"tint-{_TINTS[role][0]}"


def dashes(role: Role) -> str:
    """Return the class of a role's lines with a blank before it; empty for solid lines."""
    return _DASHES[role]


def plural(role: Role) -> str:
    """Return the plural name of a role's replicas."""
    return "PS" if role is Role.PS else f"{role}s"
