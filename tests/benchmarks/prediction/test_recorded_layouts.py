"""Costs of steps from one recording of the corpus foretell others of it."""

from __future__ import annotations

import functools
import statistics

import pytest

from benchmarks.diagnosis import labels
from benchmarks.diagnosis.corpus import FOLDER
from paceline.modelling import calibrations, predictions
from paceline.modelling.calibrations import MeasuredRun
from paceline.modelling.costs import Costs
from paceline.services.studying import predictions as services
from paceline.stores import recordings


def _measured(name: str) -> MeasuredRun:
    return services.model(recordings.read(FOLDER / f"{name}.parquet")).measured


@functools.cache
def _costs(name: str) -> Costs:
    return calibrations.calibrated([_measured(name)]).costs


@pytest.mark.nightly
def test_a_real_run_tells_how_others_with_less_of_something_go() -> None:
    causes = ("ps-cpu-bound", "ps-network-bound", "worker-link", "uneven-placement", "shared-link")
    found = labels.read(FOLDER)
    missed = []
    for name, label in found.items():
        if label.cause in causes and label.twin in found and not label.accepted:
            other = _measured(name)
            costs = _costs(label.twin)
            told = predictions.speed(other.layout, costs).steps_per_second
            missed.append(abs(told / other.steps_per_second - 1))
    assert len(missed) >= 12
    assert statistics.median(missed) < 0.12
    assert max(missed) < 0.5
