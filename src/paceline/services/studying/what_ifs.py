"""Predicts the effect of another shape on a measured job, and of the shapes beside it."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

from paceline.errors import EngineError, InvalidInput
from paceline.model import quantities
from paceline.model.explanations.causes import FieldChange
from paceline.model.variables.variable_plans import Plan
from paceline.modelling import forecasts
from paceline.modelling.forecasts import Forecast
from paceline.services.studying import predictions
from paceline.services.studying.predictions import SpeedModel
from paceline.tuning import shapes
from paceline.tuning.shapes import JobShape

#: Numbers of replicas on a curve. It reaches to this multiple of the present number, at least to this count.
_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
MOST_TIMES, LEAST_COUNT = 4, 8
#: The approximate number of points on a curve: each takes some hundredths of a second.
_POINTS = 8
#: Multiples of the present cores of a replica, on a curve.
_TIMES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
#: The fields of a shape that can be swept.
FIELDS = ("workers", "servers", "worker_cores", "server_cores")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A value of the swept field, and its forecast."""

    value: float
    forecast: Forecast


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """The predicted effect of a shape.

    Attributes:
        now: the measured shape.
        wanted: the shape to predict.
        told: the forecast of the wanted shape.
        changes: the changes of the job file that make the wanted shape.
        field: the field of the shape that the curve varies; the other fields are as in ``wanted``.
        points: the points of the curve, sorted by value; impossible values are left out.
        knee: the value above which more brings little.
    """

    now: JobShape
    wanted: JobShape
    told: Forecast
    changes: tuple[FieldChange, ...]
    field: str
    points: tuple[Point, ...]
    knee: float


def shape(model: SpeedModel) -> JobShape:
    """Return the shape of a measured job.

    Raises:
        InvalidInput: the job has no parameter servers and workers.
    """
    found = shapes.shape(model.job.spec)
    if found is None:
        raise InvalidInput(
            "only jobs with parameter servers and workers have a shape that can be changed here",
            "paceline predict knows more fields",
        )
    return found


def what_if(model: SpeedModel, wanted: JobShape, field: str) -> WhatIf:
    """Return the forecast of a shape, and a curve through it.

    Raises:
        InvalidInput: the model does not know the effect of the shape.
        EngineError: there is no place for replicas of this shape.
    """
    now = shape(model)
    spec = model.job.spec
    told = predictions.forecast_of(model, predictions.layout(model, shapes.reshaped(spec, wanted)))
    points = tuple(_points(model, now, wanted, field))
    return WhatIf(
        now=now,
        wanted=wanted,
        told=told,
        changes=shapes.changes(spec, wanted),
        field=field,
        points=points,
        knee=points[forecasts.knee([each.forecast for each in points])].value,
    )


def _points(model: SpeedModel, now: JobShape, wanted: JobShape, field: str) -> Iterator[Point]:
    plans: dict[tuple[int, bool], Plan | None] = {}
    for value in _values(getattr(now, field), getattr(wanted, field)):
        one: dict[str, Any] = {field: value}
        beside = dataclasses.replace(wanted, **one)
        spec = shapes.reshaped(model.job.spec, beside)
        with contextlib.suppress(InvalidInput, EngineError):  # Impossible values are no points of the curve.
            key = beside.servers, beside.even
            if key not in plans:
                plans[key] = predictions.plan(model, spec)
            layout = predictions.layout(model, spec, lying=plans[key])
            yield Point(value=value, forecast=forecasts.sketch(model.measured, model.calibration, layout))


def _values(now: float, wanted: float) -> Sequence[float]:
    if isinstance(now, int):
        most = max(LEAST_COUNT, MOST_TIMES * now, wanted)
        counts = [each for each in _COUNTS if each <= most]
        # Of many counts, take the largest and every second, third or further one below it.
        return sorted({now, wanted, *counts[:: -math.ceil(len(counts) / _POINTS)]})
    found = {round(now * times, 3) for times in _TIMES} | {wanted}
    return sorted(each for each in found if quantities.LEAST_CORES <= each <= quantities.MOST_CORES)
