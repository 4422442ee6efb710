"""The state of a job: all that the state machine knows, and all that a new supervisor needs to go on."""

from __future__ import annotations

import dataclasses

from paceline.model import roles
from paceline.model.jobs import job_specs, statuses
from paceline.model.jobs.adjustments import Adjustment


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """The state of a replica.

    Attributes:
        attempt: launches so far; 0 before the first.
        restarts: launches counted against its restart limit since the job was started or resumed.
        memory_bytes: the limit of the next launch; it grows after out-of-memory kills if the job says so.
        exit: why the latest attempt ended.
    """

    replica: roles.ReplicaId
    phase: statuses.ReplicaPhase = statuses.ReplicaPhase.PENDING
    attempt: int = 0
    restarts: int = 0
    memory_bytes: int | None = None
    exit: statuses.ExitReason | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """The state of a job.

    Attributes:
        spec: the job as it is now, with the number of workers that was last requested.
        replicas: the replicas of the spec, and others that the job had before: workers beyond the spec are
            stopping or ended, and replicas of a role that the job no longer has are ended. A replica that
            comes back continues to count its attempts.
        outcome: the final phase that was decided on; set from ``stopping`` on.
        message: why the job is in this phase, for users.
        adjustments: what replicas and hosts have for a limited time instead of what the spec says.
    """

    spec: job_specs.JobSpec
    phase: statuses.JobPhase = statuses.JobPhase.PENDING
    replicas: tuple[ReplicaState, ...] = ()
    outcome: statuses.JobPhase | None = None
    message: str = ""
    adjustments: tuple[Adjustment, ...] = ()

    def replica(self, replica: roles.ReplicaId) -> ReplicaState | None:
        """Return the state of one replica; None when the job has no such replica."""
        return next((state for state in self.replicas if state.replica == replica), None)


def initial(spec: job_specs.JobSpec) -> JobState:
    """Return the state of a job that was just submitted."""
    replicas = tuple(
        ReplicaState(replica=replica, memory_bytes=spec.role_of(replica).memory_bytes)
        for replica in spec.replicas()
    )
    return JobState(spec=spec, replicas=replicas)


def broken_invariants(state: JobState) -> list[str]:
    """Return the invariants that a state breaks; empty: it is sound. Tests check this after each step."""
    live = statuses.ReplicaPhase
    broken = []
    if state.phase.is_final and not all(r.phase.is_final for r in state.replicas):
        broken.append("a final job has replicas that are not final")
    if state.phase.is_final and state.outcome is not state.phase:
        broken.append("a final job's phase is not its outcome")
    if (state.outcome is not None) != (state.phase.is_final or state.phase is statuses.JobPhase.STOPPING):
        broken.append("an outcome is decided if and only if the job is stopping or final")
    if state.phase is statuses.JobPhase.RUNNING and any(
        r.phase in (live.PENDING, live.STARTING, live.BACKING_OFF) for r in state.replicas
    ):
        broken.append("a running job has replicas that do not run yet")
    if state.phase is statuses.JobPhase.STOPPING:
        broken.extend(_out_of_turn(state))
    for replica in state.replicas:
        spec = state.spec.role(replica.replica.role)
        is_wanted = state.spec.has(replica.replica)
        may_stop = spec is not None and replica.phase is live.STOPPING
        if not (is_wanted or may_stop or replica.phase.is_final):
            broken.append(f"{replica.replica} is not in the spec")
        elif replica.restarts > (spec.restart.limit if spec else 0):
            broken.append(f"{replica.replica} was restarted more often than its limit")
        if replica.phase.is_live and replica.attempt < 1:
            broken.append(f"{replica.replica} lives without an attempt")
        if replica.phase is live.STOPPING and state.phase is statuses.JobPhase.RUNNING and is_wanted:
            broken.append(f"{replica.replica} is stopping in a job that is not")
    missing = set(state.spec.replicas()) - {replica.replica for replica in state.replicas}
    broken.extend(f"{replica} is not there" for replica in sorted(missing))
    return broken


def _out_of_turn(state: JobState) -> list[str]:
    """Return the replicas of a stopping job that were asked to end too early, or not although it is time."""
    alive = [replica for replica in state.replicas if replica.phase.is_live]
    turn = [replica for replica in alive if replica.replica.role is not roles.Role.PS] or alive
    return [
        f"{replica.replica} is {replica.phase}, out of turn"
        for replica in alive
        if (replica.phase is statuses.ReplicaPhase.STOPPING) != (replica in turn)
    ]
