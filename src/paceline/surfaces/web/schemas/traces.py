"""Traces."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from paceline.surfaces.web.schemas.bases import Document, Instant, Schema

#: The form of names that `model.traces.traced_steps.name_at` makes.
TRACE_NAME = r"^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z$"


class TraceWanted(Schema):
    """A trace that is asked for."""

    name: Annotated[
        str | None,
        Field(description="the moment, such as 2026-11-24T08-00-00.000Z; else now", pattern=TRACE_NAME),
    ] = None
    profile_milliseconds: Annotated[
        int | None,
        Field(
            description="for so long TensorFlow's profiler looks at every replica, where sessions cannot be "
            "traced; none without it",
            ge=100,
            le=60_000,
        ),
    ] = None


class TraceAsked(Document):
    """A trace that will come, by its name."""

    kind: Literal["TraceAsked"] = "TraceAsked"
    name: str


class TraceFile(Schema):
    """The trace of one trainer."""

    name: str
    bytes: int


class TraceItem(Schema):
    """The traces of a moment."""

    name: str
    files: list[TraceFile]


class TraceList(Document):
    """The traces of a job, the oldest first."""

    kind: Literal["TraceList"] = "TraceList"
    items: list[TraceItem]


class Trainer(Schema):
    """Where the time of the traced steps of a trainer went."""

    trainer: str
    attempt: int
    at: Instant
    untraced_step_microseconds: float | None
    steps: list[dict[str, Any]]
    clocks: list[dict[str, Any]]


class Trace(Document):
    """What the traces of a moment say; what ``paceline trace -o json`` prints.

    Attributes:
        broken: files that cannot be read.
        refused: why a replica has left no trace, by its name.
        traffic: what a step of every trainer together moves, by shard of a variable.
        server_time: what it computes on the PS.
    """

    kind: Literal["Trace"] = "Trace"
    name: str
    trace: str
    broken: list[str]
    refused: dict[str, str]
    trainers: list[Trainer]
    traffic: list[dict[str, Any]]
    server_time: list[dict[str, Any]]
