"""How a job's resource on a cluster is shown."""

from __future__ import annotations

import dataclasses

from support.operator_scenes import job

from paceline.control.reconciliations import ReconcileProgress
from paceline.control.states import ReplicaState, initial
from paceline.model.jobs.statuses import ReplicaPhase
from paceline.model.roles import ReplicaId, Role
from paceline.services.cluster import records, resources
from paceline.specs.job_file import custom_resources


def test_a_list_counts_only_replicas_that_the_job_still_has() -> None:
    spec = job(workers=2)
    state = initial(spec)
    former = [
        ReplicaState(replica=each, phase=ReplicaPhase.STOPPED, attempt=1)
        for each in (ReplicaId(Role.WORKER, 2), ReplicaId(Role.EVALUATOR, 0))
    ]
    state = dataclasses.replace(state, replicas=(*state.replicas, *former))
    record = records.JobRecord(progress=ReconcileProgress(state=state))
    metadata = {"name": "clicks", "namespace": "default"}
    resource = {
        **custom_resources.resource(spec, "default"),
        "metadata": {**metadata, "creationTimestamp": "2026-11-25T12:00:00Z"},
        "status": records.status(record, {}, generation=1, now=1.8e9),
    }
    assert resources.summary(resource).replicas == "ps 0/1, worker 0/2"
