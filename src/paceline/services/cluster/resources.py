"""Reads jobs of a cluster as values, from their resources, their pods and their Kubernetes events."""

from __future__ import annotations

import re
from collections.abc import Iterable

from paceline.engines.kubernetes import pod_states
from paceline.engines.kubernetes.clusters import Object
from paceline.model.jobs.runs import KUBERNETES, JobEvent, ReplicaRow, Run, RunSummary, replica_counts
from paceline.model.jobs.statuses import ReplicaPhase
from paceline.model.roles import Role
from paceline.model.studies import trained_models
from paceline.rendering import labels
from paceline.services.cluster import announcements, runs
from paceline.services.cluster.records import JobRecord
from paceline.specs.job_file import custom_resources


def run(resource: Object) -> Run:
    """Return the run of a job.

    Raises:
        InvalidInput: the spec of the job is wrong.
    """
    spec, status = custom_resources.job_spec(resource), resource.get("status") or {}
    namespace, name = resource["metadata"]["namespace"], resource["metadata"]["name"]
    return Run(
        name=name,
        spec=spec,
        source="",
        engine=KUBERNETES,
        directory=f"{namespace}/{name}",
        notes=tuple(status.get("notes") or ()),
        **runs.progress(resource),
    )


def summary(resource: Object) -> RunSummary:
    """Return a job as lists show it."""
    metadata, status = resource["metadata"], resource.get("status") or {}
    return RunSummary(
        name=metadata["name"],
        namespace=metadata["namespace"],
        engine=KUBERNETES,
        directory=f"{metadata['namespace']}/{metadata['name']}",
        ttl_after_finished_seconds=None,
        replicas=replica_counts(
            (each["name"].rpartition("-")[0], each["phase"] == ReplicaPhase.RUNNING)
            for each in status.get("replicas") or ()
            if not each.get("former")
        ),
        labels=metadata.get("labels") or {},
        model=_model(resource),
        **runs.progress(resource),
    )


def replicas(job: str, known: JobRecord, pods: Iterable[Object]) -> list[ReplicaRow]:
    """Return the replicas of a job from the operator's record, with the nodes and addresses of their pods."""
    by_name = {pod["metadata"]["name"]: pod for pod in pods}
    rows = []
    for each in known.state.replicas:
        pod = by_name.get(labels.pod_name(job, each.replica, each.attempt), {})
        row = ReplicaRow(
            replica=each.replica,
            phase=each.phase,
            attempt=each.attempt,
            restarts=each.restarts,
            memory_bytes=each.memory_bytes,
            exit=each.exit,
            host=(pod.get("spec") or {}).get("nodeName"),
            address=(pod.get("status") or {}).get("podIP"),
        )
        rows.append(row)
    return rows


def event(told: Object) -> JobEvent:
    """Return the event of a job from a Kubernetes event."""
    replica, attempt = pod_states.attempt_of(told) or (None, None)
    message = told.get("message", "").removeprefix(f"{replica}: ")
    kind = re.sub(r"(?<!^)(?=[A-Z])", "-", told["reason"]).lower()
    return JobEvent(
        at=announcements.event_time(told),
        kind=kind,
        message="" if message == kind else message,
        replica=replica,
        attempt=attempt,
    )


def _model(resource: Object) -> str:
    """Return which model a job trains, without checking the whole spec, which is too slow for a list."""
    spec = resource.get("spec") or {}
    try:
        roles = spec.get("roles") or {}
        role = roles.get(str(Role.CHIEF)) or roles.get(str(Role.WORKER)) or {}
        label = (resource["metadata"].get("labels") or {}).get(trained_models.LABEL)
        command = role.get("command") or spec.get("command") or ()
        return trained_models.name(label, [str(word) for word in command], spec.get("training") or {})
    except (AttributeError, TypeError):  # The spec is malformed.
        return ""
