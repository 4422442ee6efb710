"""What another layout brings, over what was measured."""

from __future__ import annotations

import dataclasses

import pytest
from support.layouts import COSTS, workers

from paceline.modelling import calibrations, forecasts, predictions
from paceline.modelling.calibrations import MeasuredRun
from paceline.modelling.layouts import ModelLayout, ParameterServer, Trainers

SERVER = ParameterServer(cores=0.2, host=None, step_bytes=5e5)
LAYOUT = ModelLayout(
    servers=(SERVER,),
    trainers=(Trainers(replicas=workers(4), cores=1.0, host=None),),
    hosts=(),
    machine_cores=None,
    batch_size=100,
)


def measured(times: float = 1.0) -> MeasuredRun:
    found = predictions.speed(LAYOUT, COSTS)
    return MeasuredRun(
        layout=LAYOUT,
        steps_per_second=found.steps_per_second * times,
        trainer_cores=found.trainer_cores * times,
        server_cores=tuple(each * times for each in found.server_cores),
    )


def forecast(then: ModelLayout, given: MeasuredRun) -> forecasts.Forecast:
    return forecasts.forecast(given, calibrations.calibrated([given]), then)


def test_twice_the_cores_of_what_binds_bring_about_twice_the_speed() -> None:
    twice = dataclasses.replace(LAYOUT, servers=(dataclasses.replace(SERVER, cores=0.4),))
    found = forecast(twice, measured())
    assert found.times == pytest.approx(2.0, rel=0.1)
    assert found.low < found.times < found.high
    assert found.now.uses["cores of ps-0"] > 0.95
    assert (found.cores_now, found.cores_then) == (pytest.approx(4.2), pytest.approx(4.4))
    assert found.examples_per_second == pytest.approx(measured().steps_per_second * 100)


def test_the_same_layout_is_as_fast_whatever_the_model_misses_of_it() -> None:
    found = forecast(LAYOUT, measured(0.8))
    assert (found.times, found.low, found.high) == (1.0, 1.0, 1.0)


def test_more_servers_are_less_certain_than_more_cores_as_the_cost_of_a_visit_is_unknown() -> None:
    cores = dataclasses.replace(LAYOUT, servers=(dataclasses.replace(SERVER, cores=0.4),))
    half = dataclasses.replace(SERVER, step_bytes=2.5e5)
    servers = forecast(dataclasses.replace(LAYOUT, servers=(half, half)), measured())
    assert "server_visit_seconds" in servers.untold
    assert servers.times < forecast(cores, measured()).times


def test_the_cost_of_cores_that_are_not_limited_is_unknown() -> None:
    free = dataclasses.replace(LAYOUT, servers=(dataclasses.replace(SERVER, cores=None),))
    assert forecast(free, measured()).cores_then is None


def test_the_knee_is_where_no_more_brings_a_tenth() -> None:
    grown = [
        forecast(dataclasses.replace(LAYOUT, servers=(dataclasses.replace(SERVER, cores=cores),)), measured())
        for cores in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
    ]
    place = forecasts.knee(grown)
    assert 1 < place < 5
    assert max(each.times for each in grown) < 1.1 * grown[place].times
    assert forecasts.knee(grown[:1]) == 0


def test_whether_storage_gives_more_to_more_trainers_is_not_known() -> None:
    slow = dataclasses.replace(LAYOUT, storage_steps_per_second=1.0)
    trainers = (Trainers(replicas=workers(8), cores=1.0, host=None),)
    given = dataclasses.replace(measured(), layout=slow, steps_per_second=1.0)
    for tell in (forecasts.forecast, forecasts.sketch):
        found = tell(given, calibrations.calibrated([given]), dataclasses.replace(slow, trainers=trainers))
        assert found.times == pytest.approx(1.0, rel=0.05)
        assert found.low < 1.0
        assert found.high > 1.8
        assert found.then.binds == "storage"
        assert "storage_steps_per_second" in found.untold
        shared = dataclasses.replace(given, is_storage_shared=True)
        told = tell(shared, calibrations.calibrated([shared]), dataclasses.replace(slow, trainers=trainers))
        assert told.high < 1.5
        assert "storage_steps_per_second" not in told.untold
        same = tell(given, calibrations.calibrated([given]), dataclasses.replace(slow, batch_size=10))
        assert same.high < 1.5
        assert "storage_steps_per_second" not in same.untold
