"""The model in closed form: throughput of like trainers at stations."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.modelling import flows, queues
from paceline.modelling.queues import Queues
from paceline.modelling.resources import Resource, TrainerGroup

SECONDS = st.floats(1e-4, 10.0)
STATIONS = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), SECONDS, min_size=1)


def test_one_trainer_does_not_wait() -> None:
    network = Queues(trainers=1, own_seconds=0.5, stations={"ps-0": 0.3, "ps-1": 0.2})
    assert network.steps_per_second() == pytest.approx(1 / (0.5 + 0.3))


def test_without_stations_trainers_go_at_their_own_speed() -> None:
    assert Queues(trainers=3, own_seconds=0.1, stations={}).steps_per_second() == pytest.approx(30)


def test_two_trainers_at_one_server() -> None:
    # By hand: T = 1 + 1 + w and w = X * (w + 1 / 2) / 2 with X = 2 / T, so w = sqrt(3) / 2 - 1 / 2.
    found = Queues(trainers=2, own_seconds=1.0, stations={"ps-0": 1.0}).steps_per_second()
    assert found == pytest.approx(2 / (2 + (math.sqrt(3) - 1) / 2))


@given(st.integers(1, 40), SECONDS, STATIONS)
def test_more_trainers_never_slow_it_down_and_bounds_hold(
    trainers: int, own: float, stations: dict[str, float]
) -> None:
    network = Queues(trainers=trainers, own_seconds=own, stations=stations)
    more = Queues(trainers=trainers + 1, own_seconds=own, stations=stations)
    assert network.steps_per_second() <= more.steps_per_second() * (1 + 1e-9)
    assert network.steps_per_second() <= network.most_steps_per_second() * (1 + 1e-9)


@given(st.integers(1, 200), SECONDS, STATIONS)
def test_it_is_the_model_of_predictions(trainers: int, own: float, stations: dict[str, float]) -> None:
    group = TrainerGroup(name="workers", trainers=trainers, own_seconds=own, phases=((stations,),))
    solved = flows.flow([Resource(name=name, rate=1.0) for name in stations], [group])
    closed = Queues(trainers=trainers, own_seconds=own, stations=stations).steps_per_second()
    assert solved.steps_per_second["workers"] == pytest.approx(closed, rel=1e-3)


@given(st.integers(1, 20), SECONDS, STATIONS)
def test_a_fitted_network_has_the_throughput_that_was_measured(
    trainers: int, own: float, stations: dict[str, float]
) -> None:
    measured = Queues(trainers=trainers, own_seconds=own, stations=stations).steps_per_second()
    fitted = queues.fitted(trainers, stations, measured)
    assert fitted.steps_per_second() == pytest.approx(measured, rel=1e-6)


def test_a_throughput_beyond_what_stations_allow_leaves_trainers_no_time_of_their_own() -> None:
    assert queues.fitted(4, {"ps-0": 1.0}, 2.0).own_seconds == 0.0
