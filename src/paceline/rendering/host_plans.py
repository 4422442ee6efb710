"""Host plans: the host and the cores of each replica, if Paceline itself places the replicas.

The local engine uses this module; on Kubernetes, the scheduler places replicas. All functions are pure. Cores
have the numbers that the kernel gives them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from paceline.errors import EngineError
from paceline.model import quantities, roles
from paceline.model.jobs import job_specs
from paceline.model.jobs.placements import PlacementStrategy
from paceline.model.roles import ReplicaId, Role

#: The host of a job that names no hosts.
LOCAL = job_specs.Host(name="local")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """The place of one replica; ``cores`` is empty if the replica may use any core."""

    replica: ReplicaId
    host: job_specs.Host
    cores: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class HostPlan:
    """A seat for every replica of a job."""

    seats: tuple[Seat, ...]

    def seat(self, replica: ReplicaId) -> Seat:
        """Return the seat of one replica.

        Raises:
            EngineError: the job has no such replica.
        """
        found = next((seat for seat in self.seats if seat.replica == replica), None)
        if found is None:
            raise EngineError(f"the job has no replica {replica}")
        return found


def plan(spec: job_specs.JobSpec, *, free_cores: Sequence[int], machine_memory_bytes: int | None) -> HostPlan:
    """Return a seat for every replica.

    Args:
        spec: the job.
        free_cores: cores of this machine that are not exclusive to another job.
        machine_memory_bytes: the machine's memory; None if it is unknown.

    Raises:
        EngineError: a replica needs more than its host or the machine has, or too few cores are free.
    """
    found = seats(spec)
    _check_sizes(spec, found, len(free_cores), machine_memory_bytes)
    return HostPlan(_with_cores(spec, found, tuple(free_cores)))


def seats(spec: job_specs.JobSpec) -> tuple[Seat, ...]:
    """Return a seat without cores for every replica; sizes are not checked."""
    hosts = spec.hosts or (LOCAL,)
    return tuple(
        Seat(replica=replica, host=hosts[index])
        for replica, index in zip(spec.replicas(), _host_indices(spec, len(hosts)), strict=True)
    )


def extended(plan: HostPlan, spec: job_specs.JobSpec, *, free_cores: Sequence[int]) -> HostPlan:
    """Return the plan of a running job, extended by seats for its new workers.

    Args:
        plan: the present plan.
        spec: the job with its new workers.
        free_cores: cores of this machine that are not exclusive to any job.

    Raises:
        EngineError: too few cores are free, or the hosts are emulated; their networks are made only when a
            job starts.
    """
    seated = {seat.replica for seat in plan.seats}
    missing = [replica for replica in spec.replicas() if replica not in seated]
    if missing and spec.hosts:
        raise EngineError(
            f"{missing[0]} has no place: emulated hosts take no replicas while a job runs",
            "submit the job again with more workers, or without hosts",
        )
    core_counts = {replica: _exclusive_cores(spec, replica) for replica in missing}
    if sum(core_counts.values()) > len(free_cores):
        raise EngineError(
            f"the new workers ask for {sum(core_counts.values())} exclusive cores, "
            f"but {len(free_cores)} are free on this machine",
            "ask for fewer workers, or wait for other jobs",
        )
    left, seats = list(free_cores), list(plan.seats)
    # Shared workers may use the cores that were left when the job started.
    like = next((seat.cores for seat in plan.seats if seat.replica.role is Role.WORKER), ())
    for replica in missing:
        cores, left = (tuple(left[: core_counts[replica]]) or like), left[core_counts[replica] :]
        seats.append(Seat(replica=replica, host=LOCAL, cores=cores))
    return HostPlan(tuple(seats))


def _host_indices(spec: job_specs.JobSpec, hosts: int) -> list[int]:
    ps = spec.role(Role.PS)
    ps_replicas = ps.replicas if ps else 0
    # PS get at most half of the hosts, so that some are left for workers: the layout of the seeds' second
    # scene.
    ps_hosts = min(max(1, ps_replicas), max(1, hosts // 2))
    loads = [0.0] * hosts
    indices = []
    for replica in spec.replicas():
        match spec.placement.strategy:
            case PlacementStrategy.SPREAD_PS if replica.role is Role.PS:
                index = replica.index % hosts
            case PlacementStrategy.COLOCATE:
                index = replica.index % min(hosts, max(1, ps_replicas))
            case PlacementStrategy.ISOLATE if hosts > 1 and replica.role is Role.PS:
                index = replica.index % ps_hosts
            case PlacementStrategy.ISOLATE if hosts > 1:
                index = ps_hosts + replica.index % (hosts - ps_hosts)
            case _:
                index = min(range(hosts), key=loads.__getitem__)
        loads[index] += spec.role_of(replica).cpu_cores or 1.0
        indices.append(index)
    return indices


def _check_sizes(
    spec: job_specs.JobSpec, seats: Sequence[Seat], cores: int, machine_memory_bytes: int | None
) -> None:
    for seat in seats:
        role = spec.role_of(seat.replica)
        where, most = f"host {seat.host.name}", seat.host.cpu_cores
        if most is None:
            where, most = "this machine", float(cores)
        if role.cpu_cores and role.cpu_cores > most:
            raise EngineError(
                f"{seat.replica} asks for {quantities.quantity_cores(role.cpu_cores)} CPU, "
                f"but {where} has {quantities.quantity_cores(most)}",
                f"lower spec.roles.{seat.replica.role}.cpu",
            )
        memory = seat.host.memory_bytes or machine_memory_bytes
        where = f"host {seat.host.name}" if seat.host.memory_bytes else "this machine"
        if role.memory_bytes and memory and role.memory_bytes > memory:
            raise EngineError(
                f"{seat.replica} asks for {quantities.format_bytes(role.memory_bytes)} of memory, "
                f"but {where} has {quantities.format_bytes(memory)}",
                f"lower spec.roles.{seat.replica.role}.memory",
            )


def _with_cores(
    spec: job_specs.JobSpec, seats: tuple[Seat, ...], free_cores: tuple[int, ...]
) -> tuple[Seat, ...]:
    """Return the seats with whole cores for exclusive replicas and all remaining cores for the others."""
    core_counts = {seat.replica: _exclusive_cores(spec, seat.replica) for seat in seats}
    total = sum(core_counts.values())
    if total == 0:
        return seats
    if total > len(free_cores):
        raise EngineError(
            f"the job asks for {total} exclusive cores, but {len(free_cores)} are free on this machine",
            "ask for fewer replicas or cores, or say cpu_policy: shared",
        )
    given: list[Seat] = []
    left = list(free_cores)
    for seat in seats:
        seat_cores, left = left[: core_counts[seat.replica]], left[core_counts[seat.replica] :]
        given.append(dataclasses.replace(seat, cores=tuple(seat_cores)))
    if any(count == 0 for count in core_counts.values()) and not left:
        raise EngineError(
            f"all {len(free_cores)} free cores would be exclusive and none is left for the shared replicas",
            "leave one core, or make all roles exclusive",
        )
    return tuple(seat if seat.cores else dataclasses.replace(seat, cores=tuple(left)) for seat in given)


def _exclusive_cores(spec: job_specs.JobSpec, replica: ReplicaId) -> int:
    role = spec.role_of(replica)
    if role.cpu_policy is not job_specs.CpuPolicy.EXCLUSIVE or role.cpu_cores is None:
        return 0
    if not quantities.is_whole(role.cpu_cores):
        raise EngineError(
            f"{replica} asks for {role.cpu_cores:g} exclusive cores, but only whole cores can be exclusive",
            f"make spec.roles.{replica.role}.cpu a whole number, or say cpu_policy: shared",
        )
    return int(role.cpu_cores)


def cluster(addresses: Sequence[tuple[roles.ReplicaId, str]]) -> dict[str, list[str]]:
    """Return addresses by role, each in index order: the cluster of ``TF_CONFIG``."""
    by_role: dict[str, list[str]] = {}
    for replica, address in sorted(addresses):
        by_role.setdefault(str(replica.role), []).append(address)
    return by_role
