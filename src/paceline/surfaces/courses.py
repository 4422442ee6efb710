"""The document with a job's time series: columns of numbers, rounded to the precision of a chart."""

from __future__ import annotations

import math
from typing import Any

import numpy

from paceline.model import grids
from paceline.model.grids import Array
from paceline.services.observing.time_series import Gauge, TimeSeries
from paceline.surfaces import documents

#: At most this many replicas are shown, those with the highest load: a reader could not tell more rows apart.
MOST_ROWS = 400
#: Digits after the decimal point.
_DIGITS = {Gauge.MEMORY: 0, Gauge.RECEIVED: 0, Gauge.SENT: 0}
_SHARE_DIGITS = 4


def course(series: TimeSeries, gauge: Gauge, *, since: float | None = None) -> dict[str, Any]:
    """Return the document of a job's time series.

    Args:
        series: the time series.
        gauge: the load to include.
        since: only cells that end after this time (Unix seconds); None means all.
    """
    first = _first(series.grid, since)
    values, shares = series.loads.get(gauge), series.shares.get(gauge)
    rows = range(0) if values is None or not len(values) else _busiest(values)
    return documents.document(
        "Course",
        {
            "since_unix_seconds": series.grid.since + first * series.grid.cell_seconds,
            "cell_seconds": series.grid.cell_seconds,
            "cells": series.grid.cells - first,
            "measured": [
                load_gauge.value for load_gauge, of in series.loads.items() if not numpy.isnan(of).all()
            ],
            "gauge": gauge.value,
            "unit": gauge.unit,
            "replicas": [str(series.replicas[row]) for row in rows],
            "left_out": len(series.replicas) - len(rows),
            "values": [_numbers(values[row, first:], _DIGITS.get(gauge, 4)) for row in rows]
            if values is not None
            else [],
            "shares": [_numbers(shares[row, first:], _SHARE_DIGITS) for row in rows]
            if shares is not None and not numpy.isnan(shares).all()
            else None,
            "examples_per_second": _numbers(series.examples_per_second[first:], 1),
            "loss": _numbers(series.loss[first:], 6),
            "evaluations": [
                {
                    "at_unix_seconds": evaluation.at,
                    "step": evaluation.step,
                    **{name: _finite(getattr(evaluation, name)) for name in ("auc", "log_loss", "accuracy")},
                }
                for evaluation in series.evaluations
                if since is None or evaluation.at > since
            ],
        },
    )


def _first(grid: grids.Grid, since: float | None) -> int:
    """Return the first cell that ends after a time."""
    if since is None or not math.isfinite(since):
        return 0
    return max(0, min(grid.cells, math.floor((since - grid.since) / grid.cell_seconds)))


def _busiest(values: Array) -> list[int]:
    """Return the numbers of the rows with the highest means, in ascending order."""
    if len(values) <= MOST_ROWS:
        return list(range(len(values)))
    known = ~numpy.isnan(values)
    means = numpy.where(known, values, 0.0).sum(axis=1) / numpy.maximum(1, known.sum(axis=1))
    return sorted(int(row) for row in numpy.argsort(-means, kind="stable")[:MOST_ROWS])


def _numbers(values: Array, digits: int) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in numpy.round(values, digits).tolist()]


def _finite(value: float | None) -> float | None:
    return value if value is None or math.isfinite(value) else None
