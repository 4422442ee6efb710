"""A job step by step."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from paceline.modelling import flows, simulations
from paceline.modelling.resources import Resource, TrainerGroup
from paceline.modelling.simulations import Incident

LINK = Resource(name="link", rate=1e6)
QUOTA = Resource(name="ps-0", rate=0.5, peak=1.0, burst=0.05)


def group(trainers: int = 1, own: float = 0.0, **draws: float) -> TrainerGroup:
    visits = ({name.replace("_", "-"): units for name, units in draws.items()},)
    return TrainerGroup(name="workers", trainers=trainers, own_seconds=own, phases=(visits,))


def test_a_trainer_alone_makes_its_steps_in_time() -> None:
    done = simulations.simulate([LINK], [group(own=0.02, link=10_000)], seed=0, steps=3)
    assert done.step_ends[0][0] == pytest.approx((0.03, 0.06, 0.09))
    assert done.seconds == pytest.approx(0.09)


def test_a_quota_is_used_up_and_then_binds() -> None:
    done = simulations.simulate([QUOTA], [group(trainers=40, own=0.09, ps_0=0.01)], seed=0, seconds=20)
    assert done.steps_per_second(after_seconds=5) == pytest.approx(50, rel=0.01)
    few = simulations.simulate([QUOTA], [group(trainers=3, own=0.09, ps_0=0.01)], seed=0, seconds=20)
    assert few.steps_per_second() == pytest.approx(30, rel=0.01)


def test_the_same_seed_gives_the_same_run_and_another_one_another() -> None:
    def run(seed: int) -> simulations.Simulated:
        workers = [group(trainers=4, own=0.02, link=9000)]
        return simulations.simulate([LINK], workers, seed=seed, steps=200, variation=0.3)

    assert run(1).step_ends == run(1).step_ends != run(2).step_ends


def test_own_time_varies_around_its_mean() -> None:
    done = simulations.simulate([], [group(own=0.01)], seed=3, steps=20_000, variation=0.5)
    assert done.steps_per_second() == pytest.approx(100, rel=0.02)


def test_a_resource_that_stands_still_holds_all_up_until_it_goes_on() -> None:
    changes = [Incident(at=1.0, of="link", times=0.0), Incident(at=3.0, of="link", times=1.0)]
    done = simulations.simulate([LINK], [group(own=0.01, link=10_000)], seed=0, seconds=4, changes=changes)
    ends = done.step_ends[0][0]
    assert not [end for end in ends if 1.011 < end < 3]
    assert len(ends) == pytest.approx(100, abs=3)


def test_trainers_are_spread_over_the_copies_of_a_resource() -> None:
    two = [Resource(name="link", rate=1e6, copies=2)]
    many = simulations.simulate(two, [group(trainers=8, own=0.01, link=10_000)], seed=0, seconds=20)
    four = simulations.simulate([LINK], [group(trainers=4, own=0.01, link=10_000)], seed=0, seconds=20)
    assert many.steps_per_second() == pytest.approx(2 * four.steps_per_second(), rel=0.01)


def test_a_slow_group_makes_fewer_steps() -> None:
    slow = TrainerGroup(name="slow", trainers=1, own_seconds=0.01, phases=())
    change = [Incident(at=0.0, of="slow", times=0.25)]
    done = simulations.simulate([], [slow, group(own=0.01)], seed=0, seconds=10, changes=change)
    first, second = (len(own) for group in done.step_ends for own in group)
    assert second / first == pytest.approx(4, rel=0.02)


def test_a_slow_trainer_computes_longer_and_the_others_do_not() -> None:
    cores = [Resource(name="cores", rate=1.0, peak=1.0, copies=3)]
    workers = TrainerGroup(name="workers", trainers=3, phases=(({"cores": 0.01},),), computes_in=0)
    change = [Incident(at=5.0, of="workers", times=0.25, member=1), Incident(at=8, of="workers", times=0)]
    done = simulations.simulate(cores, [workers], seed=0, seconds=10, changes=change)
    counted = [len(own) for own in done.step_ends[0]]
    assert counted == pytest.approx([800, 575, 800], abs=2)
    assert sum(done.efforts[0][1]) == pytest.approx(800, abs=2)


def test_an_input_that_gets_slow_is_waited_for_when_what_was_made_ahead_is_used_up() -> None:
    disk = [Resource(name="input", rate=200.0, burst=2.0)]
    reader = TrainerGroup(name="workers", trainers=1, own_seconds=0.01, phases=(({"input": 1.0},),))
    change = [Incident(at=5.0, of="input", times=0.1)]
    done = simulations.simulate(disk, [reader], seed=0, seconds=10, changes=change)
    waits = [(first, last - first) for first, last in done.first_phases[0][0]]
    assert max(seconds for at, seconds in waits if at < 5) == 0.0
    assert sum(seconds for at, seconds in waits if at > 5) == pytest.approx(4, abs=0.2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": None}, "ends after"),
        ({"steps": 1, "changes": [Incident(at=0, of="disk", times=1)]}, "nothing is called disk"),
        ({"steps": 1, "changes": [Incident(at=0, of="link", times=1, member=1)]}, "there is no number 1"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulations.simulate([LINK], [group(link=1)], seed=0, **arguments)


def _oracle(rates: list[float], groups: list[tuple[int, float, list[float]]], seconds: float) -> int:
    """Return the steps that simpy counts: every resource serves one at a time, in turn."""
    world = simpy.Environment()
    servers = [simpy.Resource(world) for _ in rates]
    steps = 0

    def visit(server: int, units: float) -> Generator[simpy.Event, None, None]:
        with servers[server].request() as turn:
            yield turn
            yield world.timeout(units / rates[server])

    def train(own: float, draws: list[float]) -> Generator[simpy.Event, None, None]:
        nonlocal steps
        while True:
            yield world.timeout(own)
            visits = [world.process(visit(place, units)) for place, units in enumerate(draws)]
            yield simpy.AllOf(world, visits)
            steps += 1

    for trainers, own, draws in groups:
        for _ in range(trainers):
            world.process(train(own, draws))
    world.run(until=seconds)
    return steps


@settings(max_examples=examples(25))
@given(
    rates=st.lists(st.floats(0.5, 5.0), min_size=3, max_size=3),
    groups=st.lists(
        st.tuples(
            st.integers(1, 5), st.floats(0.05, 1.0), st.lists(st.floats(0.01, 0.5), min_size=3, max_size=3)
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_simpy_counts_the_same_steps(
    rates: list[float], groups: list[tuple[int, float, list[float]]]
) -> None:
    resources = [Resource(name=str(place), rate=rate) for place, rate in enumerate(rates)]
    made = [
        TrainerGroup(
            name=f"group {number}",
            trainers=trainers,
            own_seconds=own,
            phases=(tuple({str(place): units} for place, units in enumerate(draws)),),
        )
        for number, (trainers, own, draws) in enumerate(groups)
    ]
    done = simulations.simulate(resources, made, seed=0, seconds=200)
    counted = sum(len(own) for group in done.step_ends for own in group)
    assert counted == pytest.approx(_oracle(rates, groups, 200), rel=0.01, abs=2)


@settings(max_examples=examples(25))
@given(
    trainers=st.integers(1, 12), own=st.floats(0.01, 0.2), units=st.floats(0.001, 0.02),
    rate=st.floats(0.2, 2.0),
)  # fmt: skip
def test_flows_agree_about_a_quota(trainers: int, own: float, units: float, rate: float) -> None:
    quota = Resource(name="ps-0", rate=rate, peak=1.0, burst=0.1 * rate)
    workers = group(trainers=trainers, own=own, ps_0=units)
    done = simulations.simulate([quota], [workers], seed=0, seconds=60, variation=0.3)
    (speed,) = flows.flow([quota], [workers]).steps_per_second.values()
    assert speed == pytest.approx(done.steps_per_second(after_seconds=10), rel=0.15)


@settings(max_examples=examples(25))
@given(
    trainers=st.integers(1, 12), own=st.floats(0.01, 0.2), size=st.floats(1e3, 1e5), copies=st.integers(1, 3)
)  # fmt: skip
def test_flows_agree_about_links(trainers: int, own: float, size: float, copies: int) -> None:
    links = [Resource(name="link", rate=1e6, copies=copies)]
    workers = group(trainers=copies * trainers, own=own, link=size)
    done = simulations.simulate(links, [workers], seed=0, seconds=40, variation=0.5)
    (speed,) = flows.flow(links, [workers]).steps_per_second.values()
    assert speed == pytest.approx(done.steps_per_second(after_seconds=5), rel=0.15)


@pytest.mark.parametrize("trainers", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("own", [0.0005, 0.005])
def test_flows_agree_about_cores_that_trainers_and_servers_share(trainers: int, own: float) -> None:
    machine = [Resource(name="machine", rate=2.0, peak=1.0)]
    phases = (({"machine": 0.005},), ({"machine": 0.001}, {"machine": 0.001}))
    workers = TrainerGroup(name="workers", trainers=trainers, own_seconds=own, phases=phases)
    done = simulations.simulate(machine, [workers], seed=0, seconds=30, variation=0.5)
    (speed,) = flows.flow(machine, [workers]).steps_per_second.values()
    assert speed == pytest.approx(done.steps_per_second(after_seconds=2), rel=0.05)
