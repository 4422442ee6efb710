"""Probes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from paceline.model.jobs.adjustments import Knob
from paceline.model.measures import probes
from paceline.model.measures.probes import PartVerdict
from paceline.surfaces.web.schemas.bases import Document, Schema
from paceline.surfaces.web.schemas.derived import document, listing, schema


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


#: The fields of a part stand beside those of what was found of it.
_PART: dict[str, Any] = {"name": str, "knob": Knob, "targets": list[str], "elasticity": float}


def part(word: str, **more: Any) -> type[Schema]:
    """Return the schema of a part that was probed, with what that says of it."""
    return schema(probes.Elasticity, word, omit={"part", "value"}, verdict=PartVerdict, **_PART, **more)


ProbePart = part("ProbePart")
#: What ``paceline probe -o json`` prints; ``lost`` is what the job would have done without it, in the unit.
Probe = document(
    probes.Probe,
    "Probe",
    omit={"run", "share", "elasticities"},
    name=str,
    lost_share=float | None,
    conclusion=str,
    parts=list[ProbePart],  # type: ignore[valid-type]
    cuts=list[schema(probes.Cut, "ProbeCut", omit={"part"}, **_PART)],  # type: ignore[misc]
)
ProbeList = listing("ProbeList", Probe, "The probes of a job, the oldest first.")
