"""The throughput of groups in the long run."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.modelling import flows
from paceline.modelling.resources import Resource, TrainerGroup

QUOTA = Resource(name="ps-0", rate=0.5, peak=1.0, burst=0.05)
LINK = Resource(name="link", rate=1e6)


def group(trainers: int = 1, own: float = 0.0, **draws: float) -> TrainerGroup:
    visits = ({name.replace("_", "-"): units for name, units in draws.items()},)
    return TrainerGroup(name="workers", trainers=trainers, own_seconds=own, phases=(visits,))


def speed(resources: list[Resource], *groups: TrainerGroup) -> float:
    return sum(flows.flow(resources, groups).steps_per_second.values())


def test_a_trainer_alone_does_not_wait() -> None:
    assert speed([LINK], group(own=0.02, link=10_000)) == pytest.approx(1 / 0.03)


def test_who_draws_on_nothing_goes_at_its_own_speed() -> None:
    assert speed([], group(trainers=3, own=0.1)) == pytest.approx(30)


def test_a_link_passes_at_most_its_rate() -> None:
    found = flows.flow([LINK], [group(trainers=50, own=0.02, link=10_000)])
    assert found.steps_per_second["workers"] == pytest.approx(100, rel=0.01)
    assert found.binds == "link"
    assert found.uses["link"] == pytest.approx(1.0, abs=0.01)


def test_two_that_take_turns_at_one_link_wait_a_little() -> None:
    # Each 0.01 s there and 0.01 s elsewhere: 100 a second if they never met, 80 if times were exponential.
    assert 80 < speed([LINK], group(trainers=2, own=0.01, link=10_000)) < 100


def test_a_quota_slows_no_trainer_down_until_it_is_used_up() -> None:
    # A step of 10 ms on the server and 90 ms elsewhere: 10 a second each; the quota is enough for 50.
    assert speed([QUOTA], group(trainers=4, own=0.09, ps_0=0.01)) == pytest.approx(40.0, rel=0.05)
    found = flows.flow([QUOTA], [group(trainers=40, own=0.09, ps_0=0.01)])
    assert found.steps_per_second["workers"] == pytest.approx(50 * flows.FULL, rel=0.01)
    assert found.uses["ps-0"] == pytest.approx(flows.FULL, rel=0.01)


def test_a_visit_larger_than_the_burst_waits_for_the_rate() -> None:
    assert speed([QUOTA], group(ps_0=0.55)) == pytest.approx(0.9, rel=0.02)


def test_visits_side_by_side_take_as_long_as_the_longest() -> None:
    both = TrainerGroup(name="workers", trainers=1, phases=(({"one": 1.0}, {"other": 3.0}),))
    resources = [Resource(name="one", rate=1.0), Resource(name="other", rate=1.0)]
    assert speed(resources, both) == pytest.approx(1 / 3)
    in_turn = TrainerGroup(name="workers", trainers=1, phases=(({"one": 1.0},), ({"other": 3.0},)))
    assert speed(resources, in_turn) == pytest.approx(1 / 4)


def test_two_visits_to_one_host_share_its_link_and_its_cores() -> None:
    cores = Resource(name="cores", rate=2.0, peak=1.0)
    two = TrainerGroup(name="workers", trainers=1, phases=(({"cores": 0.1}, {"cores": 0.1}),))
    three = TrainerGroup(name="workers", trainers=1, phases=(({"cores": 0.1},) * 3,))
    assert speed([cores], two) == pytest.approx(10.0)
    assert speed([cores], three) == pytest.approx(1 / 0.15)


def test_steps_in_flight_overlap() -> None:
    two = TrainerGroup(
        name="workers", trainers=1, steps_in_flight=2, phases=(({"link": 5000.0},),), own_seconds=0.1
    )
    assert speed([LINK], two) == pytest.approx(2 * speed([LINK], group(own=0.1, link=5000)), rel=0.06)


def test_trainers_with_a_resource_each_do_not_wait_for_each_other() -> None:
    alone = TrainerGroup(name="workers", trainers=1, own_seconds=0.01, phases=(({"cpu": 0.02},),))
    many = TrainerGroup(name="workers", trainers=8, own_seconds=0.01, phases=(({"cpu": 0.02},),))
    own = [Resource(name="cpu", rate=1.0, copies=8)]
    assert speed(own, many) == pytest.approx(8 * speed([Resource(name="cpu", rate=1.0)], alone))
    assert flows.flow(own, [many]).uses["cpu"] == pytest.approx(2 / 3)
    shared = [Resource(name="cpu", rate=1.0, copies=2)]
    four = TrainerGroup(name="workers", trainers=4, own_seconds=0.01, phases=(({"cpu": 0.02},),))
    assert speed(shared, many) == pytest.approx(2 * speed([Resource(name="cpu", rate=1.0)], four))


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="workers draws on link, which is not there"):
        flows.flow([], [group(link=1)])


def test_a_step_that_takes_no_time_is_refused() -> None:
    with pytest.raises(ValueError, match="takes no time"):
        group()


shares = st.floats(0.001, 1.0)


@given(
    rates=st.lists(st.floats(0.1, 10.0), min_size=1, max_size=6),
    bursts=st.lists(st.floats(0.0, 1.0), min_size=6, max_size=6),
    groups=st.lists(
        st.tuples(st.integers(1, 200), st.floats(0.0, 1.0), st.lists(shares, min_size=6, max_size=6)),
        min_size=1,
        max_size=4,
    ),
)
def test_no_resource_gives_more_than_it_has_and_no_group_is_faster_than_alone(
    rates: list[float], bursts: list[float], groups: list[tuple[int, float, list[float]]]
) -> None:
    resources = [
        Resource(name=str(place), rate=rate, peak=rate, burst=burst)
        for place, (rate, burst) in enumerate(zip(rates, bursts, strict=False))
    ]
    made = [
        TrainerGroup(
            name=f"group {number}",
            trainers=trainers,
            own_seconds=own,
            phases=(tuple({each.name: units} for each, units in zip(resources, draws, strict=False)),),
        )
        for number, (trainers, own, draws) in enumerate(groups)
    ]
    found = flows.flow(resources, made)
    assert all(math.isfinite(each) and each > 0 for each in found.steps_per_second.values())
    assert max(found.uses.values()) <= 1.02
    for each in made:
        alone = sum(max(units / rates[int(name)] for visit in phase for name, units in visit.items())
                    for phase in each.phases)  # fmt: skip
        fastest = each.trainers / (each.own_seconds + alone)
        assert found.steps_per_second[each.name] <= fastest * 1.001


def test_waits_that_take_turns_for_ever_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two servers that bind alike: whose turn it is to be waited for changes round by round."""
    rounds = 0
    waits = flows._Network.waits

    def counted(*arguments: object) -> object:
        nonlocal rounds
        rounds += 1
        return waits(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(flows._Network, "waits", counted)
    quotas = [Resource(name=f"ps-{n}", rate=0.06, peak=1.0, burst=0.006) for n in range(2)]
    machine = Resource(name="machine", rate=1.9, peak=1.0)
    visits = ({"ps-0": 1.606615e-3, "machine": 1.606615e-3}, {"ps-1": 1.606609e-3, "machine": 1.606609e-3})
    found = [
        TrainerGroup(name=f"workers-{n}", trainers=1, own_seconds=4e-3, phases=(visits,)) for n in range(2)
    ]
    together = sum(flows.flow([*quotas, machine], found).steps_per_second.values())
    assert together == pytest.approx(flows.FULL * 0.06 / 1.606615e-3, rel=0.01)
    assert rounds < 100


@given(
    st.lists(
        st.lists(st.tuples(st.integers(1, 20), st.floats(0.0, 0.1), st.floats(0.0, 1e5)), max_size=3),
        max_size=5,
    )
)
def test_networks_side_by_side_flow_as_each_does_alone(given: list[list[tuple[int, float, float]]]) -> None:
    networks = [
        (
            [LINK, QUOTA],
            [
                TrainerGroup(
                    name=f"group-{number}",
                    trainers=trainers,
                    own_seconds=own,
                    phases=(({"link": units, "ps-0": 0.01},),),
                )
                for number, (trainers, own, units) in enumerate(groups)
            ],
        )
        for groups in given
    ]
    assert flows.flows(networks) == [flows.flow(*network) for network in networks]
