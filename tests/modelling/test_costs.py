"""What a layout is as a network of resources."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from support.layouts import workers

from paceline.model.jobs.job_specs import Host
from paceline.modelling import costs, predictions, simulations
from paceline.modelling.costs import Costs
from paceline.modelling.layouts import ModelLayout, ParameterServer, Trainers

COSTS = Costs(
    trainer_seconds=0.01,
    trainer_visit_seconds=0.001,
    server_visit_seconds=0.001,
    server_byte_seconds=1e-9,
    server_row_seconds=3e-7,
    own_seconds=0.002,
    trainer_background_cores=0.01,
    server_background_cores=0.01,
)


def layout(**fields: Any) -> ModelLayout:
    server = ParameterServer(cores=1.0, host=None, step_bytes=1e6)
    plain = ModelLayout(
        servers=(server, server),
        trainers=(Trainers(replicas=workers(2), cores=1.0, host=None),),
        hosts=(),
        machine_cores=None,
        batch_size=100,
    )
    return dataclasses.replace(plain, **fields)


def test_a_step_computes_and_then_visits_all_servers() -> None:
    resources, (group,) = costs.network(layout(), COSTS)
    assert {each.name: each.rate for each in resources} == pytest.approx(
        {"cores of ps-0": 0.99, "cores of ps-1": 0.99, "cores of trainers": 0.99}
    )
    assert group.phases == (
        ({"cores of trainers": 0.012},),
        ({"cores of ps-0": pytest.approx(0.002)}, {"cores of ps-1": pytest.approx(0.002)}),
    )
    assert group.own_seconds == 0.002


def test_bytes_flow_over_the_links_of_both_hosts_and_not_within_one() -> None:
    hosts = tuple(Host(name=name, cpu_cores=2.0, bandwidth_bits_per_second=80_000_000) for name in "ab")
    servers = tuple(ParameterServer(cores=None, host=name, step_bytes=1e6) for name in "ab")
    trainers = (Trainers(replicas=workers(3), cores=None, host="b"),)
    given = layout(hosts=hosts, servers=servers, trainers=trainers, machine_cores=2.0)
    resources, (group,) = costs.network(given, COSTS)
    rates = {each.name: each.rate for each in resources}
    assert rates["link from a"] == rates["link to b"] == pytest.approx(1e7 * costs.LINK_PAYLOAD)
    assert rates["cores of a"] == pytest.approx(2.0 - 0.01)
    assert rates["cores of b"] == pytest.approx(2.0 - 0.04)
    assert rates["this machine"] == pytest.approx(2.0 - 0.05)
    first, second = group.phases[1]
    assert first == {
        "this machine": pytest.approx(0.002),
        "cores of a": pytest.approx(0.002),
        "link from a": 5e5,
        "link to b": 5e5,
        "link from b": 5e5,
        "link to a": 5e5,
    }
    assert set(second) == {"this machine", "cores of b"}


@pytest.mark.parametrize("server_cores", [None, 1.0])
@pytest.mark.parametrize("trainer_cores", [None, 1.0])
def test_computing_takes_its_time_without_limits(
    server_cores: float | None, trainer_cores: float | None
) -> None:
    """The replicas of a cluster need not have limits."""
    given = layout(
        servers=(ParameterServer(cores=server_cores, host=None, step_bytes=1e6),),
        trainers=(Trainers(replicas=workers(2), cores=trainer_cores, host=None),),
    )
    step_seconds = COSTS.own_seconds + COSTS.trainer_step_seconds(1) + COSTS.server_seconds(given.servers[0])
    speed = predictions.speed(given, COSTS)
    assert speed.steps_per_second == pytest.approx(2 / step_seconds, rel=0.15)
    resources, groups = costs.network(given, COSTS)
    slow = simulations.Incident(at=20.0, of="trainers", times=0.0, member=0)
    simulated = simulations.simulate(resources, groups, seed=1, seconds=40.0, changes=(slow,))
    first, second = (len(ends) for ends in simulated.step_ends[0])
    assert second == pytest.approx(2 * first, rel=0.15)
    assert second == pytest.approx(40 / step_seconds, rel=0.15)


def test_without_limits_no_cores_are_changed() -> None:
    given = layout(trainers=(Trainers(replicas=workers(2), cores=None, host=None),))
    change = simulations.Incident(at=1.0, of="cores of trainers", times=0.5)
    with pytest.raises(ValueError, match="no limit"):
        simulations.simulate(*costs.network(given, COSTS), seed=1, seconds=2.0, changes=(change,))


def test_inputs_bind_when_they_bring_less_than_is_asked_for() -> None:
    resources, (group,) = costs.network(layout(input_steps_per_second=5.0), COSTS)
    assert ("input of trainers", 5.0, 2) in [(each.name, each.rate, each.copies) for each in resources]
    assert (group.phases[0], group.computes_in) == (({"input of trainers": 1.0},), 1)
    speed = predictions.speed(layout(input_steps_per_second=5.0), COSTS)
    assert speed.steps_per_second == pytest.approx(10.0, rel=0.02)
    assert max(speed.uses, key=speed.uses.__getitem__) == "input of trainers"
    fast = predictions.speed(layout(input_steps_per_second=1e6), COSTS)
    assert fast.steps_per_second == pytest.approx(
        predictions.speed(layout(), COSTS).steps_per_second, rel=0.01
    )


def test_all_trainers_read_from_one_storage() -> None:
    four, eight = (
        layout(
            trainers=(Trainers(replicas=workers(count), cores=1.0, host=None),), storage_steps_per_second=5.0
        )
        for count in (4, 8)
    )
    resources, (group,) = costs.network(four, COSTS)
    assert ("storage", 5.0, 1) in [(each.name, each.rate, each.copies) for each in resources]
    assert (group.phases[0], group.computes_in) == (({"storage": 1.0},), 1)
    for each in (four, eight):
        speed = predictions.speed(each, COSTS)
        assert speed.steps_per_second == pytest.approx(5.0, rel=0.02)
        assert max(speed.uses, key=speed.uses.__getitem__) == "storage"


def test_more_background_than_cores_leaves_a_little() -> None:
    small = layout(servers=(ParameterServer(cores=0.005, host=None, step_bytes=0.0),))
    rates = {each.name: each.rate for each in costs.network(small, COSTS)[0]}
    assert rates["cores of ps-0"] == pytest.approx(0.0005)


def test_what_binds_decides_what_more_of_it_brings() -> None:
    small = layout(servers=(ParameterServer(cores=0.1, host=None, step_bytes=1e6),))
    twice = layout(servers=(ParameterServer(cores=0.19, host=None, step_bytes=1e6),))
    now, then = predictions.speed(small, COSTS), predictions.speed(twice, COSTS)
    assert max(now.uses, key=now.uses.__getitem__) == "cores of ps-0"
    assert then.steps_per_second == pytest.approx(2 * now.steps_per_second, rel=0.02)
    assert now.examples_per_second == 100 * now.steps_per_second
    more = dataclasses.replace(small, trainers=(Trainers(replicas=workers(8), cores=1.0, host=None),))
    assert predictions.speed(more, COSTS).steps_per_second == pytest.approx(now.steps_per_second, rel=0.02)
    assert now.server_cores[0] == pytest.approx(0.1, rel=0.02)
