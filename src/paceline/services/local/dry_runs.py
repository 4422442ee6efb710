"""Computes what a submit would do, without doing it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from paceline.engines.local import engine, layouts, machines
from paceline.model.jobs import job_specs as job_values
from paceline.model.roles import ReplicaId
from paceline.rendering import environments, host_plans, previews
from paceline.services import packed_folders, variable_plans
from paceline.services.local import run_registry
from paceline.services.local.jobs import Jobs


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPlan:
    """What one replica would get; a limit of None means no limit."""

    replica: ReplicaId
    command: tuple[str, ...]
    environment: Mapping[str, str]
    host: str
    cores: tuple[int, ...]
    cpu_cores: float | None
    cpu_policy: job_values.CpuPolicy
    memory_bytes: int | None
    threads: int | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """What a submit would do.

    Attributes:
        name: the run's name, with a number if the job's own name is taken.
        cluster: addresses by role; the ports are placeholders.
        code: where the code would be fetched from; None: no code is fetched.
        missing: what this machine cannot limit or measure.
    """

    name: str
    directory: str
    working_dir: str
    code: str | None
    cluster: Mapping[str, tuple[str, ...]]
    replicas: tuple[ReplicaPlan, ...]
    missing: tuple[str, ...]


def plan(jobs: Jobs, spec: job_values.JobSpec, *, base: Path, name: str | None = None) -> JobPlan:
    """Return what ``Jobs.submit`` with the same arguments would do.

    Raises:
        InvalidInput: a variable plan that the job names is invalid, or not for this job.
        NotFound: a variable plan or a folder of code that the job names does not exist.
        EngineError: the job does not fit this machine.
        StoreError: the store cannot be read.
    """
    wanted = name or spec.name
    spec = variable_plans.settled(spec, base=base)
    spec = dataclasses.replace(spec, name=jobs.registry.free_name(wanted))
    packed_folders.of_job(spec, base)
    machine = machines.read()
    folder = jobs.home.folder(spec.name)
    layout = layouts.choose(spec, machine, folder, jobs.registry.active_folders())
    addresses = {replica: f"{replica}:PORT" for replica in spec.replicas()}
    cluster = host_plans.cluster(tuple(addresses.items()))
    replicas = []
    for seat in layout.plan.seats:
        config = environments.agent_config(
            spec,
            seat.replica,
            attempt=1,
            cluster=cluster,
            files=folder.files(seat.replica, 1),
            interface=None,
            own_cgroup=machine.cgroups is not None,
        )
        role = spec.role_of(seat.replica)
        replicas.append(
            ReplicaPlan(
                replica=seat.replica,
                command=previews.command(config),
                environment=previews.environment(config),
                host=seat.host.name,
                cores=seat.cores,
                cpu_cores=role.cpu_cores,
                cpu_policy=role.cpu_policy,
                memory_bytes=role.memory_bytes,
                threads=role.threads,
            )
        )
    return JobPlan(
        name=spec.name,
        directory=str(folder.path),
        working_dir=run_registry.working_dir(spec, base, folder),
        code=None if spec.code is None else str(spec.code),
        cluster={role: tuple(hosts) for role, hosts in cluster.items()},
        replicas=tuple(replicas),
        missing=tuple(engine.notes(spec, machine)),
    )
