"""The properties of a job that decide its speed: its replicas, their cores and hosts, and their traffic."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from paceline.model.jobs.job_specs import Host, JobSpec
from paceline.model.roles import ReplicaId, Role
from paceline.model.variables.variable_plans import Plan


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ParameterServer:
    """A parameter server.

    Attributes:
        cores: the cores of its own quota; None: it has no quota.
        host: the name of its emulated host; None: it has none.
        step_bytes: bytes pulled and pushed in a step of one trainer, both ways together.
        step_rows: rows of tables that are looked up and updated in a step of one trainer.
        whole_bytes: bytes of the tables that each step of a trainer updates in all rows.
    """

    cores: float | None
    host: str | None
    step_bytes: float
    step_rows: float = 0.0
    whole_bytes: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trainers:
    """Trainers that are alike and on the same host.

    Attributes:
        replicas: the trainers, at least one.
        cores: the cores of the quota that each has for itself; None: they have no quota.
        host: the name of their emulated host; None: they have none.
    """

    replicas: tuple[ReplicaId, ...]
    cores: float | None
    host: str | None

    @property
    def count(self) -> int:
        """Return the number of trainers."""
        return len(self.replicas)

    @property
    def name(self) -> str:
        """Return the name shown to users."""
        return "trainers" if self.host is None else f"trainers on {self.host}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ModelLayout:
    """A job as the model needs it.

    Attributes:
        servers: the parameter servers, in the order of their index.
        trainers: all trainers, grouped by cores and host.
        hosts: the emulated hosts.
        machine_cores: the cores that all hosts share; None: each host is a machine of its own.
        batch_size: examples in a step.
        steps_in_flight: the steps that each trainer has under way at once.
        input_steps_per_second: the most batches a second that the input of each trainer delivers; None: the
            input delivers more than its trainer asks for.
        storage_steps_per_second: the most batches a second that the storage delivers to all trainers; None:
            it delivers more than they ask for.
    """

    servers: tuple[ParameterServer, ...]
    trainers: tuple[Trainers, ...]
    hosts: tuple[Host, ...]
    machine_cores: float | None
    batch_size: int
    steps_in_flight: int = 1
    input_steps_per_second: float | None = None
    storage_steps_per_second: float | None = None

    @property
    def waits_for_input(self) -> bool:
        """Whether a step begins with a wait for its batch."""
        return (self.input_steps_per_second, self.storage_steps_per_second) != (None, None)

    @property
    def trainer_count(self) -> int:
        """Return the number of trainers."""
        return sum(each.count for each in self.trainers)

    @property
    def asked_cores(self) -> float | None:
        """Return the sum of the limits of replicas, or else of their hosts; None: a replica has neither."""
        limits = {host.name: host.cpu_cores for host in self.hosts}
        replicas = [(1, each.cores, each.host) for each in self.servers]
        replicas += [(each.count, each.cores, each.host) for each in self.trainers]
        own = sum(count * (cores or 0.0) for count, cores, _ in replicas)
        shared = {host for _, cores, host in replicas if cores is None}
        if any(host is None or limits.get(host) is None for host in shared):
            return None
        return own + sum(limits[host] or 0.0 for host in shared if host is not None)


def layout(
    spec: JobSpec,
    plan: Plan,
    hosts: Mapping[ReplicaId, str],
    *,
    machine_cores: float | None,
    batch_size: int,
    steps_in_flight: int = 1,
    input_steps_per_second: float | None = None,
    storage_steps_per_second: float | None = None,
    updated_whole: Collection[str] = (),
) -> ModelLayout:
    """Return the layout of a job.

    Args:
        spec: the job.
        plan: which parameter server holds which shard, with the traffic of each variable.
        hosts: the emulated host of each replica that has one.
        machine_cores: see `ModelLayout`.
        batch_size: examples in a step.
        steps_in_flight: the steps that each trainer has under way at once.
        input_steps_per_second: see `ModelLayout`.
        storage_steps_per_second: see `ModelLayout`.
        updated_whole: the tables that each update changes in all rows.

    Raises:
        ValueError: the plan is for another number of servers, or its traffic was not measured.
    """
    moved = plan.step_bytes()
    replicas = spec.replicas()
    servers = [replica for replica in replicas if replica.role is Role.PS]
    if len(servers) != plan.servers:
        raise ValueError(f"the plan is for {plan.servers} parameter servers, the job has {len(servers)}")
    if moved is None:
        raise ValueError("the traffic of variables was not measured")
    emulated = {host.name for host in spec.hosts}
    places = {replica: hosts.get(replica) if hosts.get(replica) in emulated else None for replica in replicas}
    trainers = [replica for replica in replicas if replica.role in (Role.CHIEF, Role.WORKER)]
    return ModelLayout(
        servers=tuple(
            ParameterServer(
                cores=_cores(spec, server),
                host=places[server],
                step_bytes=step_bytes,
                step_rows=step_rows,
                whole_bytes=_whole_bytes(plan, server.index, updated_whole),
            )
            for server, step_bytes, step_rows in zip(servers, moved, plan.step_rows(), strict=True)
        ),
        trainers=_alike(spec, trainers, places),
        hosts=spec.hosts,
        machine_cores=machine_cores,
        batch_size=batch_size,
        steps_in_flight=steps_in_flight,
        input_steps_per_second=input_steps_per_second,
        storage_steps_per_second=storage_steps_per_second,
    )


def _whole_bytes(plan: Plan, server: int, updated_whole: Collection[str]) -> float:
    own = (each for each in plan.on(server) if each.variable.name in updated_whole)
    return float(sum(each.rows * each.variable.row_bytes for each in own))


def _alike(
    spec: JobSpec, trainers: Sequence[ReplicaId], places: Mapping[ReplicaId, str | None]
) -> tuple[Trainers, ...]:
    found: dict[tuple[float | None, str | None], list[ReplicaId]] = {}
    for each in trainers:
        found.setdefault((_cores(spec, each), places[each]), []).append(each)
    return tuple(
        Trainers(replicas=tuple(alike), cores=cores, host=host) for (cores, host), alike in found.items()
    )


def _cores(spec: JobSpec, replica: ReplicaId) -> float | None:
    return spec.role_of(replica).cpu_cores
