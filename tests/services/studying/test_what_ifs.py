"""Other shapes of a job that was measured."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from paceline.errors import EngineError
from paceline.modelling import forecasts
from paceline.services.studying import predictions, what_ifs
from paceline.services.studying.predictions import SpeedModel
from paceline.stores import recordings

RECORDINGS = Path(__file__).parents[3] / "benchmarks" / "diagnosis" / "recordings"


@pytest.fixture(scope="module")
def model() -> SpeedModel:
    """Of a job whose PS want more of a core."""
    return predictions.model(recordings.read(RECORDINGS / "ps-cpu-bound.gross.deepfm-large-plain-4.parquet"))


def test_what_helps_and_what_does_not(model: SpeedModel) -> None:
    now = what_ifs.shape(model)
    more = what_ifs.what_if(model, dataclasses.replace(now, server_cores=0.296), "server_cores")
    assert more.told.low > 2
    speeds = [each.forecast.times for each in more.points]
    assert speeds == sorted(speeds)
    assert more.knee == more.points[-1].value
    assert [(each.path[-2:], each.value) for each in more.changes] == [(("ps", "cpu"), "296m")]
    workers = what_ifs.what_if(model, dataclasses.replace(now, workers=5), "workers")
    assert workers.knee == 1
    assert workers.told.times == pytest.approx(1.0, rel=0.1)
    assert [each.value for each in workers.points] == [1, 2, 3, 4, 5, 6, 8]


def test_a_shape_that_has_no_place(model: SpeedModel) -> None:
    now = what_ifs.shape(model)
    with pytest.raises(EngineError, match="asks for 900 CPU"):
        what_ifs.what_if(model, dataclasses.replace(now, worker_cores=900.0), "workers")


def test_points_of_a_curve_are_near_what_is_foretold(model: SpeedModel) -> None:
    now = what_ifs.shape(model)
    for wanted in (now, dataclasses.replace(now, server_cores=0.148), dataclasses.replace(now, servers=3)):
        found = what_ifs.what_if(model, wanted, "server_cores")
        (point,) = [each for each in found.points if each.value == wanted.server_cores]
        assert point.forecast.times == found.told.times
        assert point.forecast.low == pytest.approx(found.told.low, rel=0.2)
        assert point.forecast.high == pytest.approx(found.told.high, rel=0.2)
    assert forecasts.CONFIDENCE == 0.9
