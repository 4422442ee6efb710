"""Throughput of closed networks of queues."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.diagnosing import queues
from paceline.diagnosing.queues import Queues

SECONDS = st.floats(1e-4, 10.0)
STATIONS = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), SECONDS, min_size=1)


def test_one_trainer_does_not_wait() -> None:
    network = Queues(trainers=1, think_seconds=0.5, stations={"ps-0": 0.3, "ps-1": 0.2})
    assert network.steps_per_second() == pytest.approx(1 / (0.5 + 0.3))


def test_two_trainers_at_one_server() -> None:
    # By hand: X(1) = 1/2, Q(1) = 1/2; R(2) = 1 * (1 + 1/2); X(2) = 2 / (1 + 1.5).
    assert Queues(trainers=2, think_seconds=1.0, stations={"ps-0": 1.0}).steps_per_second() == pytest.approx(
        0.8
    )


@given(st.integers(1, 40), SECONDS, STATIONS)
def test_more_trainers_never_slow_it_down_and_bounds_hold(
    trainers: int, think: float, stations: dict[str, float]
) -> None:
    network = Queues(trainers=trainers, think_seconds=think, stations=stations)
    more = Queues(trainers=trainers + 1, think_seconds=think, stations=stations)
    assert network.steps_per_second() <= more.steps_per_second() * (1 + 1e-9)
    assert network.steps_per_second() <= network.most_steps_per_second() * (1 + 1e-9)


@given(st.integers(1, 40), SECONDS, STATIONS)
def test_the_station_that_is_needed_longest_decides(
    trainers: int, think: float, stations: dict[str, float]
) -> None:
    # Mean value analysis of all stations, each with those who wait there.
    waiting = dict.fromkeys(stations, 0.0)
    throughput = 0.0
    for count in range(1, trainers + 1):
        seconds = {name: needed * (1 + waiting[name]) for name, needed in stations.items()}
        throughput = count / (think + max(seconds.values()))
        waiting = {name: throughput * each for name, each in seconds.items()}
    network = Queues(trainers=trainers, think_seconds=think, stations=stations)
    assert network.steps_per_second() == pytest.approx(throughput)


@given(st.integers(1, 20), SECONDS, STATIONS)
def test_a_fitted_network_has_the_throughput_that_was_measured(
    trainers: int, think: float, stations: dict[str, float]
) -> None:
    measured = Queues(trainers=trainers, think_seconds=think, stations=stations).steps_per_second()
    fitted = queues.fitted(trainers, stations, measured)
    assert fitted.steps_per_second() == pytest.approx(measured, rel=1e-6)


def test_a_throughput_beyond_what_stations_allow_leaves_no_time_to_think() -> None:
    assert queues.fitted(4, {"ps-0": 1.0}, 2.0).think_seconds == 0.0
