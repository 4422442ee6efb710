"""A job in a queue of Volcano: a real API server with its own PodGroup, but without its scheduler."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.operator_scenes import job
from support.real_clusters import NAMESPACE, OperatorProcess, found, kubectl, status, submit, until

from paceline.model.jobs import Scheduling

ROOT = Path(__file__).parents[2]
CRDS = ROOT.parent / "shared" / "crds"
POD_GROUPS = CRDS / "podgroups.scheduling.volcano.sh.yaml"
#: What API servers of 2020 do not know yet.
_NEWER = ("x-kubernetes-validations", "x-kubernetes-list-type", "x-kubernetes-list-map-keys")
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


def _without_newer(part: Any) -> Any:
    if isinstance(part, dict):
        return {
            key: _without_newer(value)
            for key, value in part.items()
            if key not in _NEWER and (key, value) != ("default", {})
        }
    return [_without_newer(each) for each in part] if isinstance(part, list) else part


@pytest.fixture
def volcano(installed: None) -> Iterator[None]:
    if not POD_GROUPS.exists():
        pytest.skip(f"Volcano's own definitions are not in {CRDS}")
    definition = _without_newer(yaml.safe_load(POD_GROUPS.read_text()))
    kubectl("create", "--validate=false", "-f", "-", given=json.dumps(definition))
    kubectl("create", "-f", "-", given=QUEUES)
    for name in ("podgroups", "queues"):
        kubectl("wait", "--for=condition=Established", f"crd/{name}.scheduling.volcano.sh", "--timeout=30s")
    kubectl("apply", "-f", str(ROOT / "deploy" / "kustomize" / "queues.yaml"))
    yield
    kubectl("delete", "crd", "podgroups.scheduling.volcano.sh", "queues.scheduling.volcano.sh")


def test_a_job_goes_through_volcano_once_its_queue_is_there(volcano: None, operator: OperatorProcess) -> None:
    submit(job("queued", scheduling=Scheduling(queue="night")))
    until(lambda: "no queue night" in status("queued").get("message", ""), lambda: status("queued"))
    assert found("pods", "-n", NAMESPACE)["items"] == []
    kubectl("create", "-f", "-", given=NIGHT)
    until(lambda: len(found("pods", "-n", NAMESPACE)["items"]) == 3, lambda: status("queued"))
    group = found("podgroup", "queued", "-n", NAMESPACE)
    assert group["spec"] == {"minMember": 3, "queue": "night"}
    for pod in found("pods", "-n", NAMESPACE)["items"]:
        assert pod["spec"]["schedulerName"] == "volcano"
        assert "nodeName" not in pod["spec"], "only Volcano may bind it"
        assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "queued"
    kubectl("delete", "tj", "queued", "-n", NAMESPACE)
    until(lambda: found("podgroups", "-n", NAMESPACE)["items"] == [], lambda: "the group stays")
