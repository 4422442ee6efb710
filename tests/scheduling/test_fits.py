"""Whether a job fits: against brute force, and what is said when it does not."""

from __future__ import annotations

import itertools
from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from support.examples import examples

from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.nodes import Node, Quota, Resources, Taint
from paceline.model.jobs.placements import PlacementStrategy, PodPlacement, Toleration
from paceline.model.roles import ReplicaId, Role
from paceline.scheduling import fits, items, packings
from paceline.scheduling.fits import Fit
from paceline.scheduling.node_groups import NodeGroups

GIB = 1 << 30


def job(
    strategy: PlacementStrategy = PlacementStrategy.ANY, placement: PodPlacement | None = None, **roles: tuple
) -> JobSpec:
    """A job with roles as (replicas, cores, GiB)."""
    return JobSpec(
        name="job",
        placement=placement or PodPlacement(strategy=strategy),
        roles=tuple(
            RoleSpec(role=Role(name), replicas=count, cpu_cores=cores, memory_bytes=memory * GIB or None)
            for name, (count, cores, memory) in roles.items()
        ),
    )


def node(name: str, cores: float, memory: int = 64, pods: int = 110, **more: object) -> Node:
    has = Resources(millicores=round(cores * 1000), memory_bytes=memory * GIB, pods=pods)
    return Node(name=name, allocatable=has, **more)


def fit(spec: JobSpec, nodes: list[Node], quotas: tuple[Quota, ...] = ()) -> Fit:
    return fits.fit(spec, NodeGroups(nodes), quotas)


def is_sound(spec: JobSpec, nodes: list[Node], places: dict[ReplicaId, str]) -> bool:
    """Whether replicas that lie so respect resources and placement; written without the code under test."""
    ps = Counter(where for replica, where in places.items() if replica.role is Role.PS)
    rest = Counter(where for replica, where in places.items() if replica.role is not Role.PS)
    match spec.placement.strategy:
        case PlacementStrategy.SPREAD_PS if max(ps.values(), default=0) > 1:
            return False
        case PlacementStrategy.ISOLATE if ps.keys() & rest.keys():
            return False
        case PlacementStrategy.COLOCATE if spec.role(Role.PS) and spec.role(Role.WORKER):
            count = spec.role(Role.PS).replicas
            homes = {r.index: where for r, where in places.items() if r.role is Role.PS}
            if max(ps.values(), default=0) > 1:
                return False
            if any(homes[r.index % count] != where for r, where in places.items() if r.role is Role.WORKER):
                return False
    for each in nodes:
        there = [items.requests(spec.role(r.role)) for r, where in places.items() if where == each.name]
        if each.free.lacking(sum(there, Resources())):
            return False
    return True


def by_brute_force(spec: JobSpec, nodes: list[Node]) -> bool:
    replicas = spec.replicas()
    tried = itertools.product([each.name for each in nodes], repeat=len(replicas))
    return any(is_sound(spec, nodes, dict(zip(replicas, names, strict=True))) for names in tried)


role_sizes = st.tuples(st.integers(1, 2), st.sampled_from([0.5, 1.0, 1.5, 2.0]), st.integers(0, 3))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[JobSpec, list[Node]]:
    roles = {"worker": draw(st.tuples(st.integers(1, 3), st.sampled_from([0.5, 1, 1.5]), st.integers(0, 2)))}
    if draw(st.booleans()):
        roles["ps"] = draw(role_sizes)
    if draw(st.booleans()):
        roles["chief"] = (1, *draw(role_sizes)[1:])
    nodes = [
        node(
            f"n{index}",
            draw(st.sampled_from([0, 1, 2, 3, 4])),
            draw(st.integers(0, 5)),
            draw(st.integers(1, 4)),
        )
        for index in range(draw(st.integers(0, 3)))
    ]
    return job(draw(st.sampled_from(PlacementStrategy)), **roles), nodes


@settings(max_examples=examples(2000))
@given(worlds())
def test_agrees_with_brute_force(world: tuple[JobSpec, list[Node]]) -> None:
    spec, nodes = world
    found = fit(spec, nodes)
    assert found.fits == by_brute_force(spec, nodes)
    if found.fits:
        assert found.places.keys() == set(spec.replicas())
        assert is_sound(spec, nodes, dict(found.places))
    else:
        assert found.places == {}
        assert found.blockers


@settings(max_examples=examples(200))
@given(worlds())
def test_the_most_workers_that_fit(world: tuple[JobSpec, list[Node]]) -> None:
    spec, nodes = world
    counts = {role.role: role.replicas for role in spec.roles}
    sizes = {str(r.role): (r.replicas, r.cpu_cores, (r.memory_bytes or 0) // GIB) for r in spec.roles}

    def with_workers(count: int) -> bool:
        roles = {**sizes, "worker": (count, *sizes["worker"][1:])}
        return by_brute_force(job(spec.placement.strategy, **roles), nodes)

    fitting = [count for count in range(counts[Role.WORKER] + 1) if with_workers(count)]
    assert fit(spec, nodes).most_workers == (max(fitting) if fitting else None)


def test_spread_wants_a_node_for_each_ps() -> None:
    nodes = [node("a", 16), node("b", 16)]
    spec = job(PlacementStrategy.SPREAD_PS, ps=(3, 1, 1), worker=(4, 1, 1))
    found = fit(spec, nodes)
    assert [(b.what, b.missing, b.reason, b.nodes) for b in found.blockers] == [
        ("ps", 1, "the placement wants no more than 1 on a node", ("a", "b"))
    ]
    assert found.most_workers is None
    assert fit(spec, [*nodes, node("c", 1)]).fits


def test_says_how_many_workers_fit_and_what_each_node_lacks() -> None:
    nodes = [node("a", 8), node("b", 8, used=Resources(millicores=4500)), node("c", 8, memory=2)]
    found = fit(job(ps=(1, 1, 1), worker=(9, 2, 4)), nodes)
    assert found.most_workers == 5
    assert [(b.what, b.missing, b.reason, b.nodes) for b in found.blockers] == [
        ("worker", 4, "too little CPU for 2 cores", ("a", "b")),
        ("worker", 4, "too little memory for 4.0 GiB", ("c",)),
    ]


@pytest.mark.parametrize(
    ("closed", "placement", "reason"),
    [
        ({"is_ready": False}, PodPlacement(), "not ready"),
        ({"is_cordoned": True}, PodPlacement(), "cordoned"),
        ({"labels": {"disk": "hdd"}}, PodPlacement(node_selector={"disk": "ssd"}), "no label disk=ssd"),
        (
            {"taints": (Taint(key="gpu", value="yes", effect="NoSchedule"),)},
            PodPlacement(tolerations=(Toleration(key="gpu", value="no"),)),
            "taint gpu=yes:NoSchedule is not tolerated",
        ),
    ],
)
def test_nodes_that_take_no_pods(closed: dict, placement: PodPlacement, reason: str) -> None:
    spec = job(placement=placement, worker=(1, 1, 1))
    found = fit(spec, [node("a", 8, **closed)])
    assert found.blockers[0] == fits.Blocker(reason=reason, nodes=("a",))
    assert not found.fits


@pytest.mark.parametrize(
    "toleration",
    [
        Toleration(operator="Exists"),
        Toleration(key="gpu", operator="Exists"),
        Toleration(key="gpu", value="yes", effect="NoSchedule"),
    ],
)
def test_tolerated_taints(toleration: Toleration) -> None:
    taints = (Taint(key="gpu", value="yes", effect="NoSchedule"), Taint(key="x", effect="PreferNoSchedule"))
    spec = job(placement=PodPlacement(tolerations=(toleration,)), worker=(1, 1, 1))
    assert fit(spec, [node("a", 8, taints=taints)]).fits


def test_a_quota_bounds_the_whole_job() -> None:
    quota = Quota(name="team", left={"millicores": 5000, "pods": 10})
    found = fit(job(ps=(1, 1, 1), worker=(3, 2, 1)), [node("a", 64)], (quota,))
    assert [b.reason for b in found.blockers] == ["quota team: 7 cores are asked for and 5 cores are left"]
    assert found.most_workers == 2


def test_a_group_of_a_ps_and_its_workers_has_one_node() -> None:
    """The first scene of the seeds, with 10 workers beside each PS."""
    nodes = [node(f"n{index}", 80, 256) for index in range(20)]
    spec = job(PlacementStrategy.COLOCATE, ps=(20, 4, 8), worker=(200, 4, 8))
    found = fit(spec, nodes)
    assert Counter(found.places.values()) == dict.fromkeys((each.name for each in nodes), 11)
    assert is_sound(spec, nodes, dict(found.places))
    less = fit(spec, [node(f"n{index}", 40, 256) for index in range(20)])
    assert less.most_workers == 180


def test_nothing_to_place_fits_on_nothing() -> None:
    assert fit(job(worker=(0, 1, 1)), []).fits


def test_replicas_are_spread_where_they_may_be() -> None:
    """All on one node would share its network, and its kubelet would start them one after the other."""
    nodes = [node(f"n{index}", 80, 256) for index in range(4)]
    found = fit(job(ps=(4, 2, 4), worker=(40, 1, 4)), nodes)
    assert Counter(found.places.values()) == dict.fromkeys((each.name for each in nodes), 11)
    assert len({where for replica, where in found.places.items() if replica.role is Role.PS}) == 4


def test_isolated_replicas_are_spread_over_nodes_of_their_own() -> None:
    nodes = [node(f"n{index}", 80, 256) for index in range(10)]
    spec = job(PlacementStrategy.ISOLATE, ps=(4, 1, 1), worker=(16, 1, 1))
    places = fit(spec, nodes).places
    assert is_sound(spec, nodes, dict(places))
    of_ps = Counter(where for replica, where in places.items() if replica.role is Role.PS)
    of_workers = Counter(where for replica, where in places.items() if replica.role is Role.WORKER)
    assert len(of_ps) + len(of_workers) == 10
    assert max(of_ps.values()) <= 2
    assert max(of_workers.values()) <= 3


@pytest.mark.parametrize("cores", [0.5, 3])
def test_a_job_of_several_large_kinds_is_judged_with_bounded_work(cores: float) -> None:
    """Exactly judged, it would take some 10^13 steps for what does not fit."""
    nodes = [node(f"n{number}", 64 + number / 100) for number in range(100)]
    large = job(ps=(2000, cores, 0), evaluator=(2001, 0.7, 0), chief=(2002, 0.9, 0), worker=(2003, 1.1, 0))
    found = fit(large, nodes)
    assert not found.fits
    assert found.blockers
    assert fits.places(large, NodeGroups(nodes)) is None


def test_a_node_that_has_less_than_nothing_takes_nothing_from_others() -> None:
    full = node("full", 4, used=Resources(millicores=9000))
    spread = PlacementStrategy.SPREAD_PS
    assert fit(job(spread, ps=(1, 3, 0), worker=(2, 0.5, 0)), [full, node("a", 4)]).fits
    assert packings.pack(items.items(job(ps=(1, 3, 0), worker=(2, 0.5, 0))), {
        "full": Resources(millicores=-5000, memory_bytes=0, gpus=0, pods=9),
        "a": Resources(millicores=4000, memory_bytes=0, gpus=0, pods=9),
    }) is not None  # fmt: skip


def test_beyond_the_most_steps_the_even_packing_still_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packings, "MOST_STEPS", 0)
    small = job(ps=(2, 1, 0), worker=(4, 1, 0))
    assert fit(small, [node("a", 8)]).fits
    found = fit(small, [node("a", 4)])
    assert (found.fits, found.most_workers) == (False, None)
    assert found.blockers
