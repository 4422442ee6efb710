"""What a simulated job would have been measured to do."""

from __future__ import annotations

import dataclasses

import pytest
from support.layouts import COSTS, workers

from paceline.model.measures import rates
from paceline.model.roles import ReplicaId, Role
from paceline.modelling import costs, predictions, simulations
from paceline.modelling.layouts import ModelLayout, ParameterServer, Trainers
from paceline.modelling.measurements import measurements

LAYOUT = ModelLayout(
    servers=(
        ParameterServer(cores=0.2, host=None, step_bytes=8e5),
        ParameterServer(cores=0.2, host=None, step_bytes=2e5),
    ),
    trainers=(Trainers(replicas=workers(3), cores=1.0, host=None),),
    hosts=(),
    machine_cores=None,
    batch_size=100,
)


def test_samples_say_what_the_model_says() -> None:
    done = simulations.simulate(*costs.network(LAYOUT, COSTS), seed=0, seconds=30.5, variation=0.1)
    samples, reports = measurements(LAYOUT, COSTS, done, start_at=1000.0)
    told = predictions.speed(LAYOUT, COSTS)
    assert len(samples) == 30 * 5
    assert len(reports) == 30 * 3
    assert (samples[0].at, samples[-1].at) == (1001.0, 1030.0)
    assert sum(each.steps or 0 for each in reports) / 30 == pytest.approx(told.steps_per_second, rel=0.05)
    for index, cores in enumerate(told.server_cores):
        own = [each.cpu_cores for each in samples if each.replica == ReplicaId(Role.PS, index)]
        assert (rates.total(own) or 0.0) / 30 == pytest.approx(cores, rel=0.05)
    assert max(each.cpu_cores or 0.0 for each in samples if each.replica.role is Role.PS) <= 0.2
    received = [each.network_received_bytes or 0 for each in samples if each.replica.role is Role.WORKER]
    served = [each.network_sent_bytes or 0 for each in samples if each.replica.role is Role.PS]
    assert sum(received) == pytest.approx(sum(served), rel=1e-6)
    assert all(each.memory_bytes is None for each in samples)


def test_steps_are_counted_up() -> None:
    done = simulations.simulate(*costs.network(LAYOUT, COSTS), seed=0, seconds=5)
    _, reports = measurements(LAYOUT, COSTS, done, start_at=0.0)
    assert reports[-1].step == sum(each.steps or 0 for each in reports)


def test_waits_for_input_are_told_of_the_seconds_in_which_they_were() -> None:
    slow = dataclasses.replace(LAYOUT, input_steps_per_second=1.0)
    done = simulations.simulate(*costs.network(slow, COSTS), seed=0, seconds=20)
    _, reports = measurements(slow, COSTS, done, start_at=0.0)
    waits = [each.input_wait_seconds or 0.0 for each in reports]
    assert max(waits) <= 1.0
    busy = sum(last - first for own in done.first_phases[0] for first, last in own)
    assert sum(waits) == pytest.approx(min(busy, 60.0), abs=3.0)
    assert sum(waits) > 45


def test_a_part_of_a_second_is_not_measured() -> None:
    done = simulations.simulate(*costs.network(LAYOUT, COSTS), seed=0, seconds=0.5)
    assert measurements(LAYOUT, COSTS, done, start_at=0.0) == ([], [])
