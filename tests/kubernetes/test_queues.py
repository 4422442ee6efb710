"""A job in a queue of Volcano: a real API server with its own PodGroup, but without its scheduler."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.operator_scenes import job
from support.queued_jobs import queue_rights
from support.real_clusters import (
    NAMESPACE,
    OperatorProcess,
    found,
    kubectl,
    objects,
    pods,
    status,
    submit,
    until,
)  # fmt: skip

from paceline.engines.kubernetes import kinds
from paceline.model.jobs.job_specs import SchedulingSpec

QUEUES = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: queues.scheduling.volcano.sh}
spec:
  group: scheduling.volcano.sh
  scope: Cluster
  names: {kind: Queue, listKind: QueueList, plural: queues, singular: queue}
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
NIGHT = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: night}\n"


@pytest.fixture
def volcano(upstream: None) -> Iterator[None]:
    kubectl("create", "-f", "-", given=QUEUES)
    kubectl("wait", "--for=condition=Established", "crd/queues.scheduling.volcano.sh", "--timeout=30s")
    with queue_rights():
        yield
    kubectl("delete", "crd", "queues.scheduling.volcano.sh")


def test_a_job_goes_through_volcano_once_its_queue_is_there(volcano: None, operator: OperatorProcess) -> None:
    submit(job("queued", scheduling=SchedulingSpec(queue="night")))
    until(lambda: "no queue night" in status("queued").get("message", ""), lambda: status("queued"))
    assert pods("queued") == []
    kubectl("create", "-f", "-", given=NIGHT)
    until(lambda: len(pods("queued")) == 3, lambda: status("queued"))
    group = found("podgroups.scheduling.volcano.sh", "queued", "-n", NAMESPACE)
    assert group["spec"] == {"minMember": 3, "queue": "night"}
    for pod in pods("queued"):
        assert pod["spec"]["schedulerName"] == "volcano"
        assert "nodeName" not in pod["spec"], "only Volcano may bind it"
        assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "queued"
    kubectl("delete", "tj", "queued", "-n", NAMESPACE)
    until(lambda: objects(kinds.POD_GROUPS) == [], lambda: "the group stays")
