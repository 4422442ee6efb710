"""The shape of a job, which is its size and the placement of its variables, and other shapes to consider."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence

from paceline.model import quantities
from paceline.model.explanations.causes import FieldChange
from paceline.model.jobs.job_specs import CpuPolicy, JobSpec, RoleSpec
from paceline.model.roles import ReplicaId, Role
from paceline.model.studies.tunings import Objective

#: The numbers of replicas, and the factors on their cores, that are considered.
_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_TIMES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
#: The largest growth of a number of replicas at once.
_MOST_GROWTH = 4
_ROLES = (Role.PS, Role.WORKER)
#: Keys of the ``training`` section that place variables; without them Paceline distributes variables evenly.
_LYING = ("partitioning", "variable_placement", "variable_plan", "measured_variables")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobShape:
    """The size of a job, and how its variables are placed.

    Attributes:
        servers, workers: the numbers of replicas.
        server_cores, worker_cores: the cores of each replica; None: not limited.
        even: whether variables have Paceline's default placement, and not one from the job file.
    """

    servers: int
    workers: int
    server_cores: float | None
    worker_cores: float | None
    even: bool


def shape(spec: JobSpec) -> JobShape | None:
    """Return the shape of a job; None: it has no parameter servers or no workers."""
    servers, workers = (spec.role(role) for role in _ROLES)
    if servers is None or workers is None or not servers.replicas or not workers.replicas:
        return None
    return JobShape(
        servers=servers.replicas,
        workers=workers.replicas,
        server_cores=servers.cpu_cores,
        worker_cores=workers.cpu_cores,
        even=not _lying(spec),
    )


def _lying(spec: JobSpec) -> tuple[str, ...]:
    return tuple(key for key in _LYING if key in (spec.training or {}))


def beside(spec: JobSpec, objective: Objective) -> Iterator[JobShape]:
    """Yield the shapes within the limits, except the shape of the job itself."""
    now = shape(spec)
    if now is None:
        return
    servers, workers = (role for role in map(spec.role, _ROLES) if role is not None)
    others = sum((role.cpu_cores or 0.0) * role.replicas for role in spec.roles if role.role not in _ROLES)
    sizes = itertools.product(
        _counts(servers), _counts(workers), _cores(spec, servers), _cores(spec, workers), {now.even, True}
    )
    for count, trainers, server_cores, worker_cores, even in sizes:
        candidate = JobShape(
            servers=count,
            workers=trainers,
            server_cores=server_cores,
            worker_cores=worker_cores,
            even=even,
        )
        asked = None
        if server_cores is not None and worker_cores is not None:
            asked = others + count * server_cores + trainers * worker_cores
        if candidate != now and objective.affords(asked):
            yield candidate


def _counts(role: RoleSpec) -> Sequence[int]:
    most = _MOST_GROWTH * role.replicas
    if role.max_replicas is not None:
        most = min(most, role.max_replicas)
    return sorted({role.replicas, *(each for each in _COUNTS if each <= most)})


def _cores(spec: JobSpec, role: RoleSpec) -> Sequence[float | None]:
    if role.cpu_cores is None:
        return (None,)
    found = {round(role.cpu_cores * times, 3) for times in _TIMES}
    if role.cpu_policy is CpuPolicy.EXCLUSIVE:
        found = {float(max(1, math.ceil(each))) for each in found}
    least, most = quantities.LEAST_CORES, float(quantities.MOST_CORES)
    bounds = spec.core_range(role.role)
    if bounds is not None:
        least, most = max(least, bounds.low), min(most, bounds.high)
    return sorted(cores for cores in found if least <= cores <= most or cores == role.cpu_cores)


def reshaped(spec: JobSpec, shape: JobShape) -> JobSpec:
    """Return a job of another shape, without a saved plan of variables if the number of servers changes."""
    sizes = {
        Role.PS: (shape.servers, shape.server_cores),
        Role.WORKER: (shape.workers, shape.worker_cores),
    }
    roles = tuple(
        dataclasses.replace(each, replicas=sizes[each.role][0], cpu_cores=sizes[each.role][1])
        if each.role in sizes
        else each
        for each in spec.roles
    )
    left_out = _left_out(spec, shape)
    training = {key: value for key, value in (spec.training or {}).items() if key not in left_out}
    overrides = {each: own for each, own in spec.overrides.items() if each not in _outdated(spec, shape)}
    return dataclasses.replace(
        spec, roles=roles, overrides=overrides, training=training if left_out else spec.training
    )


def _outdated(spec: JobSpec, wanted: JobShape) -> Sequence[ReplicaId]:
    """Return the replicas whose own settings in the job file do not fit another shape."""
    now = shape(spec)
    sizes = {
        Role.PS: (wanted.servers, now is not None and now.server_cores != wanted.server_cores),
        Role.WORKER: (wanted.workers, now is not None and now.worker_cores != wanted.worker_cores),
    }
    return [
        each
        for each in spec.overrides
        if each.role in sizes and (sizes[each.role][1] or each.index >= sizes[each.role][0])
    ]


def _left_out(spec: JobSpec, wanted: JobShape) -> tuple[str, ...]:
    if wanted.even:
        return _lying(spec)
    servers = spec.role(Role.PS)
    is_other = servers is not None and servers.replicas != wanted.servers
    return ("variable_plan",) if is_other and "variable_plan" in _lying(spec) else ()


def changes(spec: JobSpec, wanted: JobShape) -> tuple[FieldChange, ...]:
    """Return the changes of a job file that give its job another shape."""
    return tuple(_changes(spec, wanted))


def _changes(spec: JobSpec, target: JobShape) -> Iterator[FieldChange]:
    after = reshaped(spec, target)
    for role in _ROLES:
        old, new = spec.role(role), after.role(role)
        if old is None or new is None:
            continue
        path = ("spec", "roles", str(role))
        if new.replicas != old.replicas:
            yield FieldChange(path=(*path, "replicas"), value=new.replicas)
        if new.cpu_cores is not None and new.cpu_cores != old.cpu_cores:
            value = quantities.plain(quantities.quantity_cores(new.cpu_cores))
            yield FieldChange(path=(*path, "cpu"), value=value)
    for replica in _outdated(spec, target):
        yield FieldChange(path=("spec", "overrides", str(replica)), value=None)
    for key in _left_out(spec, target):
        yield FieldChange(path=("spec", "training", key), value=None)


def words(now: JobShape, then: JobShape) -> str:
    """Return the differences for users: ``4 workers (were 2), PS with 1 core (had 0.5)``."""
    differences = []
    if then.servers != now.servers:
        differences.append(f"{then.servers} PS (were {now.servers})")
    if then.workers != now.workers:
        differences.append(f"{then.workers} workers (were {now.workers})")
    for role_name, old, new in (
        ("PS", now.server_cores, then.server_cores),
        ("workers", now.worker_cores, then.worker_cores),
    ):
        if old is not None and new is not None and old != new:
            differences.append(f"{role_name} with {new:g} {'core' if new == 1 else 'cores'} (had {old:g})")
    if then.even and not now.even:
        differences.append("variables cut over all PS")
    return ", ".join(differences)
