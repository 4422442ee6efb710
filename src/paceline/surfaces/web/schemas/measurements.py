"""What was measured, and how a job does."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from pydantic import Field

from paceline.diagnosing import situations
from paceline.model.explanations import causes
from paceline.model.measures import snapshots
from paceline.model.measures.samples import EvaluationReport, Sample, StepReport
from paceline.model.roles import Role
from paceline.model.traces import trace_summaries
from paceline.services.observing.time_series import Gauge
from paceline.surfaces.web.schemas.bases import NAMESPACE, Document, Schema
from paceline.surfaces.web.schemas.derived import document, schema
from paceline.surfaces.web.schemas.runs import Phase, Replica

_KEYS = ("replica", "attempt", "at", "interval_seconds")


def fields(kind: type) -> tuple[str, ...]:
    """Return what is measured in values of a kind."""
    return tuple(field.name for field in dataclasses.fields(kind) if field.name not in _KEYS)


SAMPLE_FIELDS, STEP_FIELDS, EVALUATION_FIELDS = map(fields, (Sample, StepReport, EvaluationReport))


class SeriesQuery(Schema):
    """Which measurements, and how many of them."""

    replica: list[str] = Field(default=[], description="only of these, such as ps-0", max_length=1000)
    role: Role | None = Field(default=None, description="only of this role")
    field: list[str] = Field(default=[], description="only these; else all", max_length=50)
    since: float | None = Field(default=None, description="the first moment that counts (Unix seconds)")
    until: float | None = Field(default=None, description="the first that no longer does (Unix seconds)")
    points: int = Field(
        default=240, description="about so many of each replica: longer intervals else", ge=2, le=5000
    )
    namespace: str | None = NAMESPACE


class RecordingQuery(Schema):
    """Which part of what is known."""

    since: float | None = Field(
        default=None, description="only what was measured from that moment on (Unix seconds)"
    )
    thinned: bool = Field(default=False, description="in longer intervals if it is much")
    namespace: str | None = NAMESPACE


class Series(Schema):
    """What was measured of one attempt of a replica: columns of equal length, in the order of time."""

    replica: str
    attempt: int
    at_unix_seconds: list[float] = Field(description="the ends of the intervals")
    interval_seconds: list[float | None]
    values: dict[str, list[float | None]] = Field(description="by field; null is what was not measured")


class SeriesList(Document):
    """Measurements of a job.

    Attributes:
        every_seconds: how long the intervals are that measurements were combined to; null: as measured.
    """

    kind: Literal["SeriesList"] = "SeriesList"
    every_seconds: float | None
    items: list[Series]


class CourseQuery(Schema):
    """Which load, and from when on."""

    gauge: Gauge = Field(default=Gauge.CPU, description="the load that is wanted")
    since: float | None = Field(
        default=None, description="only cells that end after this moment (Unix seconds)"
    )
    namespace: str | None = NAMESPACE


class CoursePoint(Schema):
    """How good the model was at a moment."""

    at_unix_seconds: float
    step: int | None
    auc: float | None
    log_loss: float | None
    accuracy: float | None


class Course(Document):
    """A job over its whole life, on one grid of time; null is what was not measured.

    Attributes:
        since_unix_seconds: the beginning of the first cell in this answer.
        cell_seconds: how long a cell is; it doubles as the job goes on, and then all cells are other ones.
        measured: the loads of which there is anything.
        gauge: the load that follows.
        unit: of ``values``.
        replicas: of each row; of very many only the busiest are there.
        left_out: how many replicas are not.
        values: a row for each replica, a column for each cell; means over time.
        shares: the same as parts of what each replica may use, where that is known; null: of none it is.
        examples_per_second: of all trainers together, by cell.
        loss: the mean of all trainers', by cell.
        evaluations: those since then.
    """

    kind: Literal["Course"] = "Course"
    since_unix_seconds: float
    cell_seconds: float
    cells: int
    measured: list[Gauge]
    gauge: Gauge
    unit: str
    replicas: list[str]
    left_out: int
    values: list[list[float | None]]
    shares: list[list[float | None]] | None
    examples_per_second: list[float | None]
    loss: list[float | None]
    evaluations: list[CoursePoint]


#: A replica in a snapshot: its state, and its means; ``memory_limit_bytes`` is the limit that it has.
ReplicaSnapshot = schema(
    snapshots.ReplicaSnapshot,
    omit={"row"},
    **{
        name: (field.annotation, field)
        for name, field in Replica.model_fields.items()
        if name != "memory_limit_bytes"
    },
)
RoleSnapshot = schema(snapshots.RoleSnapshot, replicas=list[ReplicaSnapshot])  # type: ignore[valid-type]
#: What ``paceline top -o json`` prints: ``split`` says what the time of a traced step goes into.
Snapshot = document(
    snapshots.Snapshot,
    "Snapshot",
    omit={"run", "lost"},
    name=str,
    phase=Phase,
    elapsed_seconds=float | None,
    progress=float | None,
    eta_seconds=float | None,
    roles=list[RoleSnapshot],  # type: ignore[valid-type]
    finding=dict[str, Any] | None,
    unknown=list[str] | None,
    split=schema(trace_summaries.Shares, "StepShares") | None,
)


#: Where a job stands; null is what cannot be looked at.
Situation = document(situations.Situation, "Situation", spec=dict[str, Any] | None)
FieldChange = schema(causes.FieldChange)
Gain = schema(causes.Gain)
Cause = schema(causes.Cause, code=str, diff=str | None)
#: What ``paceline why -o json`` prints; the diff of each cause is of the job file.
Explanation = document(causes.Explanation, "Explanation", causes=list[Cause])  # type: ignore[valid-type]
