"""Probes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from paceline.surfaces.web.schemas.bases import Document, Instant, Schema


class ProbeWanted(Schema):
    """A probe that is asked for."""

    seconds: Annotated[float, Field(description="that it may take", ge=30, le=3600)] = 120.0
    cost_percent: Annotated[
        float, Field(description="of what the job does in that time, that it may cost", ge=0.1, le=50)
    ] = 5.0


class ProbeBegun(Document):
    """A probe that goes on now."""

    kind: Literal["ProbeBegun"] = "ProbeBegun"
    name: str
    seconds: float


class ProbeCut(Schema):
    """A part that had another share for a while.

    Attributes:
        factor: of what it had.
        rate: what the job did in that time, a second.
        before, after: what it did before and after it.
        felt: the targets that were held back by it; null: that cannot be seen.
        at_limit: the targets that used all that they have before it and after it; null: that cannot be seen.
    """

    name: str
    knob: str
    targets: list[str]
    factor: float
    since: Instant
    until: Instant
    rate: float
    before: float
    after: float
    felt: list[str] | None
    at_limit: list[str] | None
    elasticity: float


class ProbePart(Schema):
    """A part that was cut, and what that says of it.

    Attributes:
        elasticity: of the rate to what the part has: 1 where it alone decides, 0 where it decides nothing.
        low, high: between which it lies, with 95 %.
        at_limit: whether it uses all that it has; else more brings nothing, whatever less of it costs.
    """

    name: str
    knob: str
    targets: list[str]
    elasticity: float
    low: float
    high: float
    cuts: int
    at_limit: bool
    verdict: Literal["binds", "rests", "unclear"]


class Probe(Document):
    """What ``paceline probe -o json`` prints.

    Attributes:
        ended: why; null: it goes on, or was killed.
        lost: of the unit, that the job would have done without it.
    """

    kind: Literal["Probe"] = "Probe"
    name: str
    began_at: Instant
    ended_at: Instant | None
    ended: str | None
    unit: Literal["examples", "steps", "bytes"]
    lost: float | None
    lost_share: float | None
    conclusion: str
    parts: list[ProbePart]
    cuts: list[ProbeCut]


class ProbeList(Document):
    """The probes of a job, the oldest first."""

    kind: Literal["ProbeList"] = "ProbeList"
    items: list[Probe]
