"""Models, how they did from run to run, and what is kept of finished runs."""

from __future__ import annotations

from typing import Literal

from paceline.model.jobs.runs import Detail
from paceline.model.jobs.statuses import JobPhase
from paceline.surfaces.web.schemas.bases import Document, Instant, Schema
from paceline.surfaces.web.schemas.derived import schema
from paceline.tuning import memories


class Model(Schema):
    """A model, and how the newest run of it that was measured did.

    Attributes:
        runs: how many train it.
    """

    name: str
    runs: int
    last_at: Instant
    examples_per_second: float | None
    examples_per_core_hour: float | None
    auc: float | None


class ModelList(Document):
    """Models, the last trained first."""

    kind: Literal["ModelList"] = "ModelList"
    items: list[Model]


Regression = schema(memories.Regression, omit={"run"})


class TrainedRun(Schema):
    """A run of a model; null is what was not measured."""

    name: str
    submitted_at: Instant
    phase: JobPhase
    examples_per_second: float | None
    used_cores: float | None
    examples_per_core_hour: float | None
    auc: float | None
    log_loss: float | None
    code: str | None
    regressions: list[Regression]  # type: ignore[valid-type]


class Trend(Document):
    """How a model did from run to run, the oldest of its newest runs first."""

    kind: Literal["Trend"] = "Trend"
    model: str
    items: list[TrainedRun]


class History(Document):
    """What is kept of finished runs; seconds after their end, null: for ever.

    Attributes:
        full_seconds: for how long every sample and step report is kept.
        minutes_seconds: for how long those of a minute combined into one.
        runs_seconds: for how long runs are kept at all.
        store_bytes: what the database takes, of all jobs together.
        runs: how many are kept in which detail.
    """

    kind: Literal["History"] = "History"
    full_seconds: float | None
    minutes_seconds: float | None
    runs_seconds: float | None
    store_bytes: int
    runs: dict[Detail, int]
