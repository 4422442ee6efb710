"""The limits of each replica of a job now, from its spec and its adjustments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.control.states import JobState
from paceline.model.jobs import adjustments
from paceline.model.jobs.adjustments import Adjustment, Allowance, Knob
from paceline.model.jobs.job_specs import CpuPolicy
from paceline.model.roles import ReplicaId


def allowances(state: JobState) -> Sequence[Allowance]:
    """Return the allowances of the live replicas."""
    return [
        allowance(state, each.replica)
        for each in state.replicas
        if each.phase.is_live and state.spec.role(each.replica.role) is not None
    ]


def allowance(state: JobState, replica: ReplicaId) -> Allowance:
    """Return the allowance of a replica.

    Exclusive cores have no quota except while they are adjusted: it would throttle the replica within them.
    """
    job_adjustments, replica_state = state.adjustments, state.replica(replica)
    role = state.spec.role_of(replica)
    role_cores = None if role.cpu_policy is CpuPolicy.EXCLUSIVE else role.cpu_cores
    cores = adjustments.value(job_adjustments, Knob.CPU, replica)
    memory = adjustments.value(job_adjustments, Knob.MEMORY, replica)
    # The limit of a replica that was killed for memory may have grown beyond its spec.
    limit = replica_state.memory_bytes if replica_state is not None else role.memory_bytes
    return Allowance(
        replica=replica,
        cpu_cores=role_cores if cores is None else cores,
        memory_bytes=limit if memory is None else int(memory),
        weight=adjustments.value(job_adjustments, Knob.WEIGHT, replica) or 1.0,
        is_paused=bool(adjustments.value(job_adjustments, Knob.PAUSE, replica)),
    )


def links(known: Sequence[Adjustment]) -> Mapping[str, int]:
    """Return the bits a second of the emulated hosts whose links are adjusted."""
    return {each.target: int(each.value) for each in known if each.knob is Knob.LINK}
