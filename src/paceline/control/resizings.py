"""Resizes of a running job: other cores and memory for replicas, whether it can have them, the new spec."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from paceline.errors import InvalidInput
from paceline.model import quantities
from paceline.model.explanations.causes import FieldChange
from paceline.model.jobs.adjustments import Adjustment, Knob
from paceline.model.jobs.job_specs import CpuPolicy, JobSpec, Override
from paceline.model.roles import ReplicaId, Role


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """A request for other cores or memory.

    Attributes:
        target: a replica, such as ``ps-0``, or a role for all of its replicas, including later ones.
        cpu_cores, memory_bytes: the limits of each replica; None: unchanged.
    """

    target: str
    cpu_cores: float | None = None
    memory_bytes: int | None = None

    @property
    def replica(self) -> ReplicaId | None:
        """Return the replica that it changes; None: it changes a role."""
        return None if self.target in tuple(Role) else ReplicaId.parse(self.target)

    @property
    def role(self) -> Role:
        """Return the role that it changes, or the role of the replica that it changes."""
        return Role(self.target) if self.replica is None else self.replica.role


def asked(target: str, *, cpu_cores: float | None = None, memory_bytes: int | None = None) -> Resize:
    """Return the resize that a user asks for.

    Raises:
        InvalidInput: the target names neither a replica nor a role, or nothing is to change.
    """
    found = Resize(target=target, cpu_cores=cpu_cores, memory_bytes=memory_bytes)
    try:
        found.role  # noqa: B018
    except ValueError as error:
        raise InvalidInput(
            f"{target!r} names neither a replica nor a role", "ps-0 is a replica, ps all parameter servers"
        ) from error
    if cpu_cores is None and memory_bytes is None:
        raise InvalidInput("nothing is to change: neither cores nor memory were given", "--cpu 2")
    return found


def targets(spec: JobSpec, resize: Resize) -> Sequence[ReplicaId]:
    """Return the replicas that a resize changes."""
    if resize.replica is not None:
        return (resize.replica,)
    return [each for each in spec.replicas() if each.role is resize.role]


def conflict(spec: JobSpec, resize: Resize) -> str | None:
    """Return why a running job cannot be resized this way on any engine; None when it can."""
    if resize.replica is not None and not spec.has(resize.replica):
        names = ", ".join(f"{role.role}-0 to {role.role}-{role.replicas - 1}" for role in spec.roles)
        return f"it has no {resize.target} (it has {names})"
    role = spec.role(resize.role)
    if role is None:
        return f"it has no {resize.target}"
    if resize.cpu_cores is not None and role.cpu_policy is CpuPolicy.EXCLUSIVE:
        return (
            f"the cores of its {role.role} are exclusive (cpu_policy), and are given when a replica begins; "
            "change the job file and let it go on from its checkpoint"
        )
    if resize.cpu_cores is not None and resize.cpu_cores < quantities.LEAST_CORES:
        return f"a replica needs at least {quantities.quantity_cores(quantities.LEAST_CORES)} CPU"
    bounds = spec.core_range(role.role)
    if (
        resize.replica is None
        and resize.cpu_cores is not None
        and bounds is not None
        and not bounds.low <= resize.cpu_cores <= bounds.high
    ):
        low, high = map(quantities.quantity_cores, (bounds.low, bounds.high))
        return f"autoscale keeps the cores of each {role.role} between {low} and {high}"
    if resize.memory_bytes is not None and resize.memory_bytes < quantities.LEAST_PROCESS_BYTES:
        least = quantities.format_bytes(quantities.LEAST_PROCESS_BYTES)
        return f"a replica needs at least {least} of memory to start at all"
    if resized(spec, resize) == spec:
        return f"{sentence(resize)} is what it has already"
    return None


def resized(spec: JobSpec, resize: Resize) -> JobSpec:
    """Return the job with the requested cores and memory.

    A resize of a role changes the role, and drops earlier settings of the same resource for single replicas.
    """
    if resize.replica is not None:
        resized_override = _changed(spec.overrides.get(resize.replica, Override()), resize)
        return dataclasses.replace(
            spec, overrides=_given({**spec.overrides, resize.replica: resized_override})
        )
    roles = tuple(
        dataclasses.replace(
            role,
            cpu_cores=role.cpu_cores if resize.cpu_cores is None else resize.cpu_cores,
            memory_bytes=role.memory_bytes if resize.memory_bytes is None else resize.memory_bytes,
        )
        if role.role is resize.role
        else role
        for role in spec.roles
    )
    left = {
        replica: _without(override, resize) if replica.role is resize.role else override
        for replica, override in spec.overrides.items()
    }
    return dataclasses.replace(spec, roles=roles, overrides=_given(left))


def taken_over(spec: JobSpec, wanted: JobSpec) -> JobSpec:
    """Return a job whose replicas have the cores and the memory of another job's replicas."""
    sizes = {role.role: (role.cpu_cores, role.memory_bytes) for role in wanted.roles}
    roles = tuple(
        dataclasses.replace(role, cpu_cores=sizes[role.role][0], memory_bytes=sizes[role.role][1])
        if role.role in sizes
        else role
        for role in spec.roles
    )
    return dataclasses.replace(spec, roles=roles, overrides=wanted.overrides)


def has_other_memory(before: JobSpec, after: JobSpec, replica: ReplicaId) -> bool:
    """Whether a replica has different memory in two jobs."""
    return before.role_of(replica).memory_bytes != after.role_of(replica).memory_bytes


def differences(before: JobSpec, after: JobSpec) -> Iterator[str]:
    """Yield for users which replicas have other cores or memory: ``ps-0 has 1500m CPU (had 1 CPU)``."""
    for replica in before.replicas():
        old, new = before.role_of(replica), after.role_of(replica)
        if old.cpu_cores != new.cpu_cores:
            has, had = (_cores(each.cpu_cores) for each in (new, old))
            yield f"{replica} has {has} (had {had})"
        if old.memory_bytes != new.memory_bytes:
            has, had = (_memory(each.memory_bytes) for each in (new, old))
            yield f"{replica} has {has} (had {had})"


def _cores(cores: float | None) -> str:
    return "any CPU" if cores is None else f"{quantities.quantity_cores(cores)} CPU"


def _memory(memory: int | None) -> str:
    return "any memory" if memory is None else f"{quantities.format_bytes(memory)} of memory"


def changes(spec: JobSpec, resize: Resize) -> tuple[FieldChange, ...]:
    """Return the changes that a resize makes in the job file."""
    cores, memory = resize.cpu_cores, resize.memory_bytes
    given = {
        "cpu": None if cores is None else quantities.plain(quantities.quantity_cores(cores)),
        "memory": None if memory is None else quantities.plain(quantities.quantity_bytes(memory)),
    }
    where = ("roles", str(resize.role)) if resize.replica is None else ("overrides", resize.target)
    field_changes = [
        FieldChange(path=("spec", *where, field), value=value)
        for field, value in given.items()
        if value is not None
    ]
    after = resized(spec, resize)
    for replica, override in spec.overrides.items() if resize.replica is None else ():
        left = after.overrides.get(replica)
        path = ("spec", "overrides", str(replica))
        if left is None:
            field_changes.append(FieldChange(path=path, value=None))
        elif left != override:
            field = "memory" if left.memory_bytes != override.memory_bytes else "cpu"
            field_changes.append(FieldChange(path=(*path, field), value=None))
    return tuple(field_changes)


def adjustments(spec: JobSpec, resize: Resize, *, until: float) -> tuple[Adjustment, ...]:
    """Return the adjustments that make a resize for a limited time, up to ``until`` (Unix seconds)."""
    wanted = ((Knob.CPU, resize.cpu_cores), (Knob.MEMORY, resize.memory_bytes))
    return tuple(
        Adjustment(knob=knob, target=str(replica), value=float(value), until=until)
        for replica in targets(spec, resize)
        for knob, value in wanted
        if value is not None
    )


def between(before: JobSpec, after: JobSpec, *, until: float) -> tuple[Adjustment, ...] | None:
    """Return the adjustments that give a job's replicas the cores of another job's, up to ``until``.

    ``until`` is in Unix seconds. None: the jobs differ in something else, too, or not at all.
    """
    if taken_over(before, after) != dataclasses.replace(after, name=before.name):
        return None
    core_adjustments = []
    for replica in before.replicas():
        old, new = before.role_of(replica), after.role_of(replica)
        if old.memory_bytes != new.memory_bytes or old.cpu_policy is CpuPolicy.EXCLUSIVE:
            return None
        if old.cpu_cores != new.cpu_cores:
            if new.cpu_cores is None:
                return None
            knob, target = Knob.CPU, str(replica)
            core_adjustments.append(Adjustment(knob=knob, target=target, value=new.cpu_cores, until=until))
    return tuple(core_adjustments) or None


def resizes(before: JobSpec, after: JobSpec) -> Iterator[Resize]:
    """Yield the resizes that turn the cores and memory of one job into another's, whole roles first."""
    now = before
    for role in after.roles:
        old = now.role(role.role)
        if old is not None and (old.cpu_cores, old.memory_bytes) != (role.cpu_cores, role.memory_bytes):
            resize = Resize(target=str(role.role), cpu_cores=role.cpu_cores, memory_bytes=role.memory_bytes)
            now = resized(now, resize)
            yield resize
    for replica in now.replicas():
        own, wanted = now.role_of(replica), after.role_of(replica)
        if (own.cpu_cores, own.memory_bytes) != (wanted.cpu_cores, wanted.memory_bytes):
            yield Resize(target=str(replica), cpu_cores=wanted.cpu_cores, memory_bytes=wanted.memory_bytes)


def _changed(own: Override, resize: Resize) -> Override:
    return Override(
        cpu_cores=own.cpu_cores if resize.cpu_cores is None else resize.cpu_cores,
        memory_bytes=own.memory_bytes if resize.memory_bytes is None else resize.memory_bytes,
    )


def _without(own: Override, resize: Resize) -> Override:
    return Override(
        cpu_cores=own.cpu_cores if resize.cpu_cores is None else None,
        memory_bytes=own.memory_bytes if resize.memory_bytes is None else None,
    )


def _given(overrides: Mapping[ReplicaId, Override]) -> dict[ReplicaId, Override]:
    return {replica: own for replica, own in overrides.items() if own != Override()}


def sentence(resize: Resize) -> str:
    """Return a resize for users: ``ps-0 with 1500m CPU``."""
    cores = [] if resize.cpu_cores is None else [_cores(resize.cpu_cores)]
    memory = [] if resize.memory_bytes is None else [_memory(resize.memory_bytes)]
    each = "" if resize.replica is not None else "each "
    return f"{each}{resize.target} with {' and '.join((*cores, *memory))}"
