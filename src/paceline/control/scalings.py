"""Whether a running job can have another number of workers."""

from __future__ import annotations

from paceline.model.jobs.job_specs import Framework, JobSpec
from paceline.model.roles import Role

#: The consistency mode without waiting. In other modes trainers learn their number when they begin, and wait
#: for each other.
_WITHOUT_WAITING = "asynchronous"


def conflict(spec: JobSpec, workers: int) -> str | None:
    """Return why a running job cannot go on with a number of workers; None when it can."""
    role = spec.role(Role.WORKER)
    if role is None:
        return "it has no workers"
    if workers < 1:
        return f"it keeps at least 1 worker, so it cannot have {workers}"
    if workers > role.most_replicas:
        return (
            f"its parameter servers were told of {role.most_replicas} workers at most, not {workers} "
            "(spec.roles.worker.max_replicas, when it begins)"
        )
    if spec.framework is Framework.PYTORCH:
        return "its replicas are told how many they are when they begin (framework: pytorch)"
    if spec.scheduling.queue is not None:
        return f"its pods are one group in the queue {spec.scheduling.queue}, whose size is fixed"
    consistency = (spec.training or {}).get("consistency") or {}
    mode = consistency.get("mode", _WITHOUT_WAITING)
    if mode != _WITHOUT_WAITING:
        return f"its trainers wait for each other (training.consistency: {mode}), so their number is fixed"
    return None
