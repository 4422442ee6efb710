"""More workers beside a job that runs: on the nodes that its placement leaves, all or none."""

from __future__ import annotations

import dataclasses
import itertools

import hypothesis.strategies as st
import pytest
from hypothesis import given

from paceline.model.jobs.job_specs import JobSpec, Override, RoleSpec
from paceline.model.jobs.nodes import Node, Quota, Resources
from paceline.model.jobs.placements import PlacementStrategy, PodPlacement
from paceline.model.roles import ReplicaId, Role
from paceline.scheduling import growths
from paceline.scheduling.node_groups import NodeGroups

PS = [ReplicaId(Role.PS, index) for index in range(2)]
NEW = [ReplicaId(Role.WORKER, index) for index in (2, 3)]


def job(strategy: PlacementStrategy = PlacementStrategy.ANY) -> JobSpec:
    roles = (RoleSpec(role=Role.PS, replicas=2), RoleSpec(role=Role.WORKER, replicas=2, cpu_cores=1.5))
    return JobSpec(name="job", roles=roles, placement=PodPlacement(strategy=strategy))


def nodes(**millicores: int) -> NodeGroups:
    return NodeGroups(
        Node(name=name, allocatable=Resources(millicores=free, pods=10)) for name, free in millicores.items()
    )


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (PlacementStrategy.ANY, {"a"}),
        (PlacementStrategy.ISOLATE, {"c"}),
        (PlacementStrategy.COLOCATE, {"a", "b"}),
    ],
)
def test_placement_is_kept(strategy: PlacementStrategy, expected: set[str]) -> None:
    ps_nodes = dict(zip(PS, "ab", strict=True))
    found = growths.places(job(strategy), NEW, nodes(a=4000, b=4000, c=4000), (), ps_nodes)
    assert found is not None
    assert set(found.values()) == expected


def test_a_quota_counts() -> None:
    quota = Quota(name="q", left={"millicores": 2000})
    assert growths.places(job(), NEW, nodes(a=9000), (quota,), {}) is None
    assert growths.places(job(), NEW[:1], nodes(a=9000), (quota,), {}) is not None


def test_a_worker_that_comes_back_has_its_own_size() -> None:
    spec = dataclasses.replace(job(), overrides={NEW[0]: Override(cpu_cores=4.0)})
    assert growths.places(spec, NEW, nodes(a=4000), (), {}) is None
    quota = Quota(name="q", left={"millicores": 5000})
    assert growths.places(spec, NEW, nodes(a=9000), (quota,), {}) is None
    assert growths.places(spec, NEW, nodes(a=1500, b=4000), (), {}) == {NEW[0]: "b", NEW[1]: "a"}


@given(
    st.lists(st.integers(0, 5000), max_size=3),
    st.lists(st.sampled_from([0.5, 1.5, 3.0]), min_size=1, max_size=4),
    st.sampled_from([PlacementStrategy.ANY, PlacementStrategy.ISOLATE, PlacementStrategy.COLOCATE]),
)
def test_all_fit_exactly_when_some_way_to_place_them_does(
    free: list[int], cores: list[float], strategy: PlacementStrategy
) -> None:
    new = [ReplicaId(Role.WORKER, 2 + index) for index in range(len(cores))]
    overrides = {replica: Override(cpu_cores=own) for replica, own in zip(new, cores, strict=True)}
    spec = dataclasses.replace(job(strategy), overrides=overrides)
    names = [f"n{index}" for index in range(len(free))]
    ps_nodes = dict(zip(PS, names, strict=False))

    def is_open(replica: ReplicaId, name: str) -> bool:
        if strategy is PlacementStrategy.COLOCATE:
            return ps_nodes.get(PS[replica.index % 2]) == name
        return strategy is PlacementStrategy.ANY or name not in ps_nodes.values()

    possible = any(
        all(is_open(replica, name) for replica, name in zip(new, way, strict=True))
        and all(
            sum(1000 * own for own, chosen in zip(cores, way, strict=True) if chosen == name) <= left
            for name, left in zip(names, free, strict=True)
        )
        for way in itertools.product(names, repeat=len(new))
    )
    room = nodes(**dict(zip(names, free, strict=True)))
    found = growths.places(spec, new, room, (), ps_nodes)
    assert (found is not None) == possible
