"""Costs of steps from runs."""

from __future__ import annotations

import dataclasses
import statistics

import pytest
from support.layouts import measured, workers

from paceline.modelling import calibrations, predictions
from paceline.modelling.calibrations import MeasuredRun
from paceline.modelling.costs import Costs
from paceline.modelling.layouts import ModelLayout, ParameterServer, Trainers

TRUE = Costs(
    trainer_seconds=0.006,
    trainer_visit_seconds=7e-4,
    server_visit_seconds=1e-3,
    server_byte_seconds=3e-9,
    server_row_seconds=3e-7,
    own_seconds=0.001,
    trainer_background_cores=0.02,
    server_background_cores=0.02,
)


def layout(trainers: int, step_bytes: list[float], cores: float = 0.5) -> ModelLayout:
    return ModelLayout(
        servers=tuple(ParameterServer(cores=cores, host=None, step_bytes=each) for each in step_bytes),
        trainers=(Trainers(replicas=workers(trainers), cores=1.0, host=None),),
        hosts=(),
        machine_cores=16.0,
        batch_size=512,
    )


def run(given: ModelLayout) -> MeasuredRun:
    return measured(given, TRUE)


def test_runs_of_different_layouts_give_the_costs_back() -> None:
    runs = [run(layout(1, [1e6])), run(layout(4, [8e5, 2e5, 1e5])), run(layout(8, [5e5, 5e5], cores=0.2))]
    found = calibrations.calibrated(runs)
    for name in ("trainer_seconds", "server_visit_seconds", "server_byte_seconds"):
        assert getattr(found.costs, name) == pytest.approx(getattr(TRUE, name), rel=0.15)
    other = layout(6, [3e5] * 4, cores=0.3)
    told = predictions.speed(other, found.costs).steps_per_second
    assert told == pytest.approx(predictions.speed(other, TRUE).steps_per_second, rel=0.03)


def test_what_one_run_cannot_tell_is_named_and_stays_uncertain() -> None:
    even = calibrations.calibrated([run(layout(2, [5e5, 5e5]))])
    assert "trainer_visit_seconds" in even.untold
    assert "trainer_seconds" not in even.untold
    uneven = calibrations.calibrated([run(layout(2, [9e5, 1e4])), run(layout(2, [2e6]))])
    assert "server_visit_seconds" in even.untold
    assert "server_visit_seconds" not in uneven.untold
    drawn = [each.trainer_visit_seconds for each in even.draws(200, seed=1)]
    assert statistics.quantiles(drawn, n=10)[-1] > 2 * statistics.quantiles(drawn, n=10)[0]
    assert even.draws(3, seed=1) == even.draws(3, seed=1)


@pytest.mark.parametrize("steps", [0.0, None])
def test_nothing_is_learnt_from_nothing(steps: float | None) -> None:
    runs = [] if steps is None else [dataclasses.replace(run(layout(1, [1.0])), steps_per_second=steps)]
    with pytest.raises(ValueError, match="a run that trains"):
        calibrations.calibrated(runs)
