"""Changes of a job, one thing each: what faults are made of."""

from __future__ import annotations

import dataclasses
from typing import Any

from benchmarks.diagnosis.bases import PS_HOST, WORKER_HOST
from paceline.model.jobs.job_specs import Host, JobSpec, RoleSpec
from paceline.model.jobs.placements import PlacementStrategy, PodPlacement
from paceline.model.roles import Role

_HOSTS = {Role.PS: PS_HOST, Role.WORKER: WORKER_HOST}


def role(spec: JobSpec, of: Role, **fields: Any) -> JobSpec:
    """Change fields of a role."""
    roles = tuple(dataclasses.replace(each, **fields) if each.role is of else each for each in spec.roles)
    return dataclasses.replace(spec, roles=roles)


def with_role(spec: JobSpec, added: RoleSpec) -> JobSpec:
    """Add a role."""
    return dataclasses.replace(spec, roles=(*spec.roles, added))


def training(spec: JobSpec, **values: Any) -> JobSpec:
    """Change values of the training block."""
    return dataclasses.replace(spec, training={**(spec.training or {}), **values})


def arguments(spec: JobSpec, *more: str) -> JobSpec:
    """Add arguments to the script's."""
    return dataclasses.replace(spec, command=(*spec.command, *more))


def resized(spec: JobSpec, of: Role, replicas: int) -> JobSpec:
    """Give a role so many replicas, each on a host of its own like the others."""
    spec = role(spec, of, replicas=replicas)
    kept: list[Host] = []
    for each in (Role.PS, Role.WORKER):
        own = [host for host in spec.hosts if host.name.startswith(_HOSTS[each])]
        if each is of:
            own = [dataclasses.replace(own[0], name=f"{_HOSTS[each]}-{i}") for i in range(replicas)]
        kept += own
    return dataclasses.replace(spec, hosts=tuple(kept))


def hosts(spec: JobSpec, names: str, **fields: Any) -> JobSpec:
    """Change fields of the hosts whose names begin so."""
    changed = (
        dataclasses.replace(host, **fields) if host.name.startswith(names) else host for host in spec.hosts
    )
    return dataclasses.replace(spec, hosts=tuple(changed))


def isolated(spec: JobSpec, on: tuple[Host, ...]) -> JobSpec:
    """Put parameter servers and workers on separate hosts, these."""
    return dataclasses.replace(spec, hosts=on, placement=PodPlacement(strategy=PlacementStrategy.ISOLATE))


def cores(spec: JobSpec, of: Role) -> float | None:
    """Return the cores of each replica of a role, or of its first host."""
    found = spec.role(of)
    if found is not None and found.cpu_cores is not None:
        return found.cpu_cores
    return next((host.cpu_cores for host in spec.hosts if host.name.startswith(_HOSTS[of])), None)


def narrowed(spec: JobSpec, names: str, bits_per_second: float) -> JobSpec:
    """Give hosts whose names begin so links of so many bits a second, and steps that can fill them.

    A worker that does one step after the other uses its link in one direction at a time.
    """
    spec = hosts(spec, names, bandwidth_bits_per_second=round(bits_per_second))
    return training(spec, steps_in_flight=2)
