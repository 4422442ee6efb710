"""The state that the operator keeps of a job in its resource's status: for users, and to continue from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.control.events import Timer, TimerKind
from paceline.control.reconciliations import ReconcileProgress
from paceline.control.states import JobState, ReplicaState, initial
from paceline.engines.kubernetes import times
from paceline.errors import EngineError
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.statuses import ExitKind, ExitReason, JobPhase, ReplicaPhase
from paceline.model.roles import ReplicaId, Role
from paceline.rendering.labels import given

Object = Mapping[str, Any]
#: The version of the format that `status` writes. An older operator does not touch jobs of a later version.
VERSION = 1
#: The condition of a job that the operator does not touch because it cannot read the job's status.
UNREADABLE = "StatusUnreadable"
_LONGEST_REASON = 500
_HINT = "a job is left alone until its status can be read: use at least the version of Paceline that wrote it"
#: How the message begins that says what is wrong with a spec.
_WRONG_SPEC = "the job is wrong: "
#: In these phases the state has no message, and the status says what the job waits for.
_WITHOUT_MESSAGES = (JobPhase.PENDING, JobPhase.STARTING)
#: The conditions of a job, for `kubectl wait`, and the phases in which each is true.
_CONDITIONS: Mapping[str, tuple[JobPhase, ...]] = {
    "Running": (JobPhase.RUNNING,),
    "Succeeded": (JobPhase.SUCCEEDED,),
    "Failed": (JobPhase.FAILED,),
    "Suspended": (JobPhase.STOPPED,),
}


class UnreadableStatus(EngineError):
    """A newer operator, or a user by hand, wrote a status that this operator cannot continue from.

    Starting such a job again would train it twice and lose its state.
    """

    def __init__(self, job: str, why: str) -> None:
        super().__init__(f"the status of {job} cannot be read: {why}", _HINT)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """All that the operator has to know of a job to continue it.

    Attributes:
        progress: the state of the job, and its timers.
        places: the node that each replica was promised, if it was promised one.
        resumed: the last value of the resume annotation that was acted on.
        changed: the last value of the change annotation that was acted on.
        resumes: how often the job began again.
    """

    progress: ReconcileProgress
    places: Mapping[ReplicaId, str] = dataclasses.field(default_factory=dict)
    resumed: str = ""
    changed: str = ""
    resumes: int = 0

    @property
    def state(self) -> JobState:
        """The state of the job."""
        return self.progress.state


def new(spec: JobSpec) -> JobRecord:
    """Return the record of a job that has not begun."""
    return JobRecord(progress=ReconcileProgress(state=initial(spec)))


def status(
    record: JobRecord,
    before: Object,
    *,
    generation: int,
    now: float,
    message: str = "",
    fault: str = "",
    notes: Sequence[str] = (),
) -> Object:
    """Return the status of a job as a merge patch; None removes a field.

    Args:
        record: the record of the job.
        before: its status until now.
        generation: the generation of the spec that was acted on.
        now: Unix seconds.
        message: the message to use if the state has none.
        fault: what is wrong with the spec that its resource has now, if anything; it is the message then.
        notes: notes for users, added to those of the status before.
    """
    state = record.state
    spec_replicas = [replica for replica in state.replicas if state.spec.has(replica.replica)]
    running = sum(replica.phase is ReplicaPhase.RUNNING for replica in spec_replicas)
    worker = state.spec.role(Role.WORKER)
    started = before.get("startedAt") or (None if state.phase is JobPhase.PENDING else times.text(now))
    finished = (before.get("finishedAt") or times.text(now)) if state.phase.is_final else None
    return {
        "version": VERSION,
        "observedGeneration": generation,
        "phase": str(state.phase),
        "ready": f"{running}/{len(spec_replicas)}",
        "workers": worker.replicas if worker else None,
        "maxWorkers": worker.most_replicas if worker else None,
        "message": _WRONG_SPEC + fault.removeprefix(_WRONG_SPEC)
        if fault
        else state.message or message or None,
        "startedAt": started,
        "finishedAt": finished,
        "outcome": str(state.outcome) if state.outcome else None,
        "resumed": record.resumed or None,
        "changed": record.changed or None,
        "resumes": record.resumes or None,
        "notes": list(dict.fromkeys((*(before.get("notes") or ()), *notes))) or None,
        "conditions": _conditions(state, before, now),
        "replicas": [
            _replica(replica, record.places.get(replica.replica), former=not state.spec.has(replica.replica))
            for replica in state.replicas
        ],
        "timers": [_timer(timer, due) for timer, due in record.progress.timers.items()],
    }


def refused(before: Object, *, generation: int, message: str) -> Object:
    """Return the status of a job whose spec is wrong, and which therefore has no record."""
    return {
        **dict.fromkeys(before),
        "version": VERSION,
        "observedGeneration": generation,
        "phase": str(JobPhase.FAILED),
        "message": message,
    }


def read(found: Object, spec: JobSpec) -> JobRecord | None:
    """Return the record that a status holds; None if it holds none.

    Raises:
        UnreadableStatus: the status is not in the format that `status` writes.
    """
    version = found.get("version", VERSION)
    if version != VERSION:
        raise UnreadableStatus(spec.name, f"its version is {version!r}, and {VERSION} is the one known here")
    try:
        if "replicas" in found:
            return _read(found, spec)
        _check_not_begun(found)
        return None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableStatus(spec.name, f"it is damaged: {error!r}"[:_LONGEST_REASON]) from error


def _check_not_begun(found: Object) -> None:
    """Check that the job of a status without replicas has not begun, or could not begin.

    Raises:
        ValueError: the job has begun.
    """
    phase = found.get("phase")
    if phase not in (None, JobPhase.PENDING, JobPhase.FAILED):
        raise ValueError(f"it is {phase} and has no replicas")


def unreadable(before: Object, error: UnreadableStatus, *, now: float) -> Object:
    """Return the change to a status that cannot be read: one condition reports it, the rest stays."""
    conditions = before.get("conditions")
    kept = [each for each in conditions if isinstance(each, dict)] if isinstance(conditions, list) else []
    old = next((each for each in kept if each.get("type") == UNREADABLE), {})
    condition = {
        "type": UNREADABLE,
        "status": "True",
        "reason": "LeftAlone",
        "message": error.message,
        "lastTransitionTime": old.get("lastTransitionTime") or times.text(now),
    }
    return {"conditions": [*(each for each in kept if each is not old), condition]}


def trouble(found: Object) -> str:
    """Return why the operator does not touch a job; empty if it does."""
    told = (each for each in found.get("conditions") or () if each.get("type") == UNREADABLE)
    return next((each.get("message", "") for each in told if each.get("status") == "True"), "")


def _read(job_status: Object, spec: JobSpec) -> JobRecord:
    replica_statuses = {
        ReplicaId.parse(replica_status["name"]): replica_status for replica_status in job_status["replicas"]
    }
    spec = _scaled(spec, job_status)
    initial_states = initial(spec).replicas
    replicas = [
        _read_replica(replica_statuses.get(replica_state.replica), replica_state)
        for replica_state in initial_states
    ]
    former = [
        _read_replica(replica_statuses[replica], ReplicaState(replica=replica))
        for replica in replica_statuses
        if not spec.has(replica)
    ]
    # A live replica whose role the spec no longer has is left out: the spec that it began with is lost.
    replicas += [
        replica_state
        for replica_state in former
        if spec.role(replica_state.replica.role) or replica_state.phase.is_final
    ]
    state = JobState(
        spec=spec,
        phase=JobPhase(job_status["phase"]),
        replicas=tuple(replicas),
        outcome=JobPhase(job_status["outcome"]) if job_status.get("outcome") else None,
        message=_own_message(job_status),
    )
    timers = dict(_read_timer(saved_timer) for saved_timer in job_status.get("timers", ()))
    places = {
        replica: replica_status["node"]
        for replica, replica_status in replica_statuses.items()
        if "node" in replica_status
    }
    progress = ReconcileProgress(state=state, timers=timers)
    return JobRecord(
        progress=progress,
        places=places,
        resumed=job_status.get("resumed") or "",
        changed=job_status.get("changed") or "",
        resumes=resumes(job_status),
    )


def _own_message(job_status: Object) -> str:
    """Return the message of the state itself; other messages are of the moment, and are found again."""
    message = str(job_status.get("message") or "")
    is_of_the_moment = job_status["phase"] in _WITHOUT_MESSAGES or message.startswith(_WRONG_SPEC)
    return "" if is_of_the_moment else message


def resumes(job_status: Object) -> int:
    """Return how often a job began again, by its status; a status that was edited may not say it."""
    count = job_status.get("resumes")
    return count if isinstance(count, int) else 0


def _scaled(spec: JobSpec, found: Object) -> JobSpec:
    """Return the spec with the number of workers in the status, which may differ from the spec's number."""
    worker, workers, most = spec.role(Role.WORKER), found.get("workers"), found.get("maxWorkers")
    if worker is None or not workers or (workers, most) == (worker.replicas, worker.most_replicas):
        return spec
    return spec.with_workers(int(workers), most=most)


def _replica(state: ReplicaState, node: str | None, *, former: bool) -> Object:
    reason = state.exit
    return given(
        {
            "name": str(state.replica),
            "phase": str(state.phase),
            "attempt": state.attempt,
            "restarts": state.restarts,
            "memoryBytes": state.memory_bytes,
            "former": former or None,
            "node": node,
            "exit": reason
            and given(
                {
                    "kind": str(reason.kind),
                    "code": reason.code,
                    "signal": reason.signal,
                    "message": reason.message or None,
                }
            ),
        }
    )


def _read_replica(found: Object | None, fresh: ReplicaState) -> ReplicaState:
    if found is None:
        return fresh
    reason = found.get("exit")
    return ReplicaState(
        replica=fresh.replica,
        phase=ReplicaPhase(found["phase"]),
        attempt=int(found["attempt"]),
        restarts=int(found["restarts"]),
        memory_bytes=found.get("memoryBytes"),
        exit=reason and ExitReason(**{**reason, "kind": ExitKind(reason["kind"])}),
    )


def _timer(timer: Timer, due: float) -> Object:
    replica = str(timer.replica) if timer.replica else None
    return given({"kind": str(timer.kind), "replica": replica, "attempt": timer.attempt, "due": due})


def _read_timer(found: Object) -> tuple[Timer, float]:
    replica = found.get("replica")
    timer = Timer(
        kind=TimerKind(found["kind"]),
        replica=ReplicaId.parse(replica) if replica else None,
        attempt=found.get("attempt"),
    )
    return timer, float(found["due"])


def _conditions(state: JobState, before: Object, now: float) -> list[Object]:
    known = {each["type"]: each for each in before.get("conditions") or ()}
    found: list[Object] = []
    for name, phases in _CONDITIONS.items():
        value = "True" if state.phase in phases else "False"
        old = known.get(name, {})
        since = old["lastTransitionTime"] if old.get("status") == value else times.text(now)
        reason = str(state.phase).capitalize()
        found.append({"type": name, "status": value, "reason": reason, "lastTransitionTime": since})
    return found
