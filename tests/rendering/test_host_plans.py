"""Who sits where: strategies, sizes and exclusive cores."""

from __future__ import annotations

import dataclasses

import hypothesis.strategies as st
import pytest
from hypothesis import given

from paceline.errors import EngineError
from paceline.model.jobs.job_specs import CpuPolicy, Host, JobSpec, RoleSpec
from paceline.model.jobs.placements import PlacementStrategy, PodPlacement
from paceline.model.roles import ReplicaId, Role
from paceline.rendering import host_plans


def job(
    strategy: PlacementStrategy = PlacementStrategy.ANY,
    *,
    ps: int = 2,
    workers: int = 4,
    hosts: int = 2,
    policy: CpuPolicy = CpuPolicy.SHARED,
    cpu_cores: float | None = 1.0,
) -> JobSpec:
    return JobSpec(
        name="job",
        placement=PodPlacement(strategy=strategy),
        hosts=tuple(Host(name=f"host-{index}") for index in range(hosts)),
        roles=tuple(
            RoleSpec(role=role, replicas=count, cpu_cores=cpu_cores, cpu_policy=policy)
            for role, count in ((Role.PS, ps), (Role.WORKER, workers))
        ),
    )


def hosts_of(spec: JobSpec, cores: int = 8) -> dict[str, list[str]]:
    plan = host_plans.plan(spec, free_cores=range(cores), machine_memory_bytes=None)
    found: dict[str, list[str]] = {}
    for seat in plan.seats:
        found.setdefault(seat.host.name, []).append(str(seat.replica))
    return found


def test_any_evens_out_the_hosts() -> None:
    assert hosts_of(job()) == {
        "host-0": ["ps-0", "worker-0", "worker-2"],
        "host-1": ["ps-1", "worker-1", "worker-3"],
    }


def test_spread_ps_puts_one_ps_on_each_host() -> None:
    placed = hosts_of(job(PlacementStrategy.SPREAD_PS, ps=3, workers=3, hosts=3))
    assert all(sum(name.startswith("ps") for name in names) == 1 for names in placed.values())


def test_colocate_is_the_first_scene_of_the_seeds() -> None:
    """One PS beside its ten workers on each host."""
    placed = hosts_of(job(PlacementStrategy.COLOCATE, ps=5, workers=50, hosts=5))
    assert [len(names) for names in placed.values()] == [11] * 5
    assert all(sum(name.startswith("ps") for name in names) == 1 for names in placed.values())


def test_isolate_is_the_second_scene_of_the_seeds() -> None:
    """PS and workers never share a host."""
    placed = hosts_of(job(PlacementStrategy.ISOLATE, ps=5, workers=20, hosts=10))
    assert sorted(len(names) for names in placed.values()) == [1] * 5 + [4] * 5
    assert all(len({name.split("-")[0] for name in names}) == 1 for names in placed.values())


@given(
    strategy=st.sampled_from(PlacementStrategy),
    ps=st.integers(0, 6),
    workers=st.integers(1, 12),
    hosts=st.integers(0, 5),
)
def test_every_replica_has_one_seat_on_a_host_of_the_job(
    strategy: PlacementStrategy, ps: int, workers: int, hosts: int
) -> None:
    spec = job(strategy, ps=ps, workers=workers, hosts=hosts)
    plan = host_plans.plan(spec, free_cores=range(2), machine_memory_bytes=None)
    assert tuple(seat.replica for seat in plan.seats) == spec.replicas()
    assert {seat.host for seat in plan.seats} <= set(spec.hosts or (host_plans.LOCAL,))


def test_exclusive_cores_belong_to_one_replica_alone() -> None:
    spec = job(ps=2, workers=2, hosts=0, policy=CpuPolicy.EXCLUSIVE)
    plan = host_plans.plan(spec, free_cores=(0, 2, 4, 6, 8), machine_memory_bytes=None)
    assert [seat.cores for seat in plan.seats] == [(0,), (2,), (4,), (6,)]


def test_shared_replicas_stay_off_exclusive_cores() -> None:
    spec = job(ps=1, workers=1, hosts=0)
    exclusive = dataclasses.replace(spec.roles[0], cpu_policy=CpuPolicy.EXCLUSIVE)
    spec = dataclasses.replace(spec, roles=(exclusive, spec.roles[1]))
    plan = host_plans.plan(spec, free_cores=(0, 1, 2), machine_memory_bytes=None)
    assert plan.seat(ReplicaId(Role.PS, 0)).cores == (0,)
    assert plan.seat(ReplicaId(Role.WORKER, 0)).cores == (1, 2)
    with pytest.raises(EngineError, match="none is left for the shared"):
        host_plans.plan(spec, free_cores=(0,), machine_memory_bytes=None)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (job(cpu_cores=16, hosts=0), "ps-0 asks for 16 CPU, but this machine has 2"),
        (job(cpu_cores=0.5, policy=CpuPolicy.EXCLUSIVE, hosts=0), "only whole cores can be exclusive"),
        (job(policy=CpuPolicy.EXCLUSIVE, hosts=0), "asks for 6 exclusive cores, but 2 are free"),
        (
            JobSpec(name="job", roles=(RoleSpec(role=Role.WORKER, memory_bytes=2**40),)),
            "asks for 1.0 TiB of memory, but this machine has 8.0 GiB",
        ),
        (
            JobSpec(
                name="job",
                hosts=(Host(name="small", cpu_cores=1, memory_bytes=2**20),),
                roles=(RoleSpec(role=Role.WORKER, memory_bytes=2**30),),
            ),
            "but host small has 1.0 MiB",
        ),
    ],
)
def test_impossible_sizes_say_what_is_wrong(spec: JobSpec, message: str) -> None:
    with pytest.raises(EngineError, match=message):
        host_plans.plan(spec, free_cores=(0, 1), machine_memory_bytes=8 * 2**30)


def test_the_cluster_lists_addresses_by_role_in_index_order() -> None:
    addresses = [
        (ReplicaId(Role.WORKER, 10), "d"),
        (ReplicaId(Role.WORKER, 9), "c"),
        (ReplicaId(Role.PS, 0), "a"),
    ]
    assert host_plans.cluster(addresses) == {"ps": ["a"], "worker": ["c", "d"]}
