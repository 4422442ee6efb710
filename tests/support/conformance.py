"""One TFJob under Kubeflow's operator and, converted, under ours: what replicas see, and how the job ends.

Pods are on nodes that run nothing, so this module does what a kubelet does when a container ends: it starts
the container again, or the pod has ended, as the pod's restart policy says.
"""

from __future__ import annotations

import abc
import dataclasses
import json
import re
import time
from collections.abc import Mapping
from typing import Any

from paceline.agent.paceline_agent import configs, environments
from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.kinds import ResourceKind
from paceline.model.quantities import parse_quantity
from paceline.rendering import config_maps, labels, pods
from support.clusters import apply
from support.real_clusters import NAMESPACE, get, kubectl, objects, status
from support.tfjob_cases import TFJobEnd

TFJOBS = ResourceKind("kubeflow.org", "v1", "TFJob", "tfjobs")
_OF_OPERATORS = ("training.kubeflow.org/", "paceline.dev/", "app.kubernetes.io/")
_REFERENCE = re.compile(r"\$\$|\$\(([^()$]*)\)")
_NOWHERE = "2026-01-01T00:00:00Z"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaView:
    """What the process of a replica is started with, and what its pod asks for.

    Host names are without their domains, which differ always.
    """

    image: str
    command: tuple[str, ...]
    working_dir: str | None
    environment: Mapping[str, str]
    port: int | None
    cluster: Mapping[str, tuple[str, ...]] | None
    task: tuple[str, int] | None
    resources: Mapping[str, Mapping[str, Any]]
    node_selector: Mapping[str, str]
    tolerations: tuple[Mapping[str, Any], ...]
    volumes: Mapping[str, Any]
    grace_seconds: float
    labels: Mapping[str, str]


class JobOnCluster(abc.ABC):
    """A job under one operator.

    Args:
        name: of the job.
    """

    #: The name of the container that trains, and the labels that say whose pod it is.
    container = job_label = role_label = index_label = ""

    def __init__(self, name: str) -> None:
        self.name = name
        self._ended: set[tuple[str, int]] = set()

    def pods(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the pods that are not being deleted, each with the name of its replica."""
        return [
            (f"{pod_labels[self.role_label]}-{pod_labels[self.index_label]}", pod)
            for pod in objects(kinds.PODS, f"{self.job_label}={self.name}")
            if "deletionTimestamp" not in pod["metadata"]
            for pod_labels in [pod["metadata"]["labels"]]
        ]

    @abc.abstractmethod
    def phase(self) -> str:
        """Return the phase, as `TFJobEnd` names it; other phases are named in any way."""

    @abc.abstractmethod
    def view(self, pod: Mapping[str, Any]) -> ReplicaView:
        """Return what a pod shows."""

    def views(self) -> dict[str, ReplicaView]:
        """Return what is seen of each replica."""
        return {replica: self.view(pod) for replica, pod in self.pods()}

    def end(self) -> TFJobEnd:
        """Return where the job stands now."""
        by_phase: dict[str, set[str]] = {}
        for replica, pod in self.pods():
            by_phase.setdefault(pod["status"]["phase"], set()).add(replica)
        running = by_phase.get("Running", set())
        ended = by_phase.get("Succeeded", set()) | by_phase.get("Failed", set())
        return TFJobEnd(phase=self.phase(), running=frozenset(running), ended=frozenset(ended - running))

    def ends(self, replica: str, code: int) -> bool:
        """End the container of a replica with this code, if one runs that has not been ended before."""
        for owner, pod in self.pods():
            start = (pod["metadata"]["uid"], _restarts(pod))
            if owner == replica and pod["status"]["phase"] == "Running" and start not in self._ended:
                self._ended.add(start)
                _end_container(pod, self.container, code)
                return True
        return False


class KubeflowJob(JobOnCluster):
    """A job under Kubeflow's operator."""

    container = "tensorflow"
    job_label, role_label, index_label = (
        f"training.kubeflow.org/{name}" for name in ("job-name", "replica-type", "replica-index")
    )

    def touch(self) -> None:
        """Change something that means nothing."""
        own = ("tfjob", self.name, "-n", NAMESPACE)
        kubectl("annotate", *own, "--overwrite", f"touched={time.monotonic()}")

    def phase(self) -> str:
        job = get(TFJOBS, self.name)
        if job is None:
            return "gone"
        conditions = (job.get("status") or {}).get("conditions") or []
        return next((each["type"].lower() for each in reversed(conditions) if each["status"] == "True"), "")

    def view(self, pod: Mapping[str, Any]) -> ReplicaView:
        container = _container(pod, self.container)
        environment: dict[str, str] = {}
        for each in container.get("env") or ():
            environment[each["name"]] = _expanded(each.get("value", ""), environment)
        tf_config = json.loads(environment.pop("TF_CONFIG", "null"))
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        return _view(
            pod,
            container,
            command=tuple(_expanded(word, environment) for word in words),
            environment=environment,
            cluster=tf_config and tf_config["cluster"],
            task=tf_config and (tf_config["task"]["type"], tf_config["task"]["index"]),
            grace_seconds=float(pod["spec"]["terminationGracePeriodSeconds"]),
        )


class PacelineJob(JobOnCluster):
    """A job under our operator."""

    container = pods.TRAINING
    job_label, role_label, index_label = labels.JOB, labels.ROLE, labels.INDEX

    def phase(self) -> str:
        return "gone" if get(kinds.TRAINING_JOBS, self.name) is None else str(status(self.name).get("phase"))

    def view(self, pod: Mapping[str, Any]) -> ReplicaView:
        container = _container(pod, self.container)
        told = get(kinds.CONFIG_MAPS, self.name)
        assert told is not None
        files = {f"{config_maps.FOLDER}/{name}": text for name, text in told["data"].items()}
        parts = [word for word in container["command"] if word in files or word.startswith("{")]
        config = configs.parse_config(*(files.get(word, word) for word in parts))
        values = environments.placeholder_values(config, 1)
        own = {name: environments.fill(text, values) for name, text in config.environment.items()}
        own.pop("TMPDIR", None)
        return _view(
            pod,
            container,
            command=tuple(environments.fill(word, values) for word in config.command),
            environment=own,
            cluster=environments.tf_cluster(config),
            task=(config.role, config.index),
            grace_seconds=config.grace_seconds,
        )


def submit_tfjob(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Make a TFJob, and return it as it was sent."""
    tfjob = {
        "apiVersion": TFJOBS.api_version,
        "kind": "TFJob",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": dict(spec),
    }
    apply([tfjob])
    return tfjob


def _view(
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    *,
    command: tuple[str, ...],
    environment: Mapping[str, str],
    cluster: Mapping[str, list[str]] | None,
    task: tuple[str, int] | None,
    grace_seconds: float,
) -> ReplicaView:
    spec = pod["spec"]
    mounted = {each["name"]: each for each in container.get("volumeMounts") or ()}
    ports = [each["containerPort"] for each in container.get("ports") or () if each["name"] != "metrics"]
    return ReplicaView(
        image=container["image"],
        command=command,
        working_dir=container.get("workingDir"),
        environment=environment,
        port=ports[0] if ports else None,
        cluster=None if cluster is None else {role: _hosts(cluster[role]) for role in sorted(cluster)},
        task=task,
        resources={
            kind: {name: parse_quantity(amount) for name, amount in amounts.items()}
            for kind, amounts in (container.get("resources") or {}).items()
        },
        node_selector=spec.get("nodeSelector") or {},
        # Kubernetes takes a toleration without an operator for this one.
        tolerations=tuple({"operator": "Equal", **each} for each in spec.get("tolerations") or ()),
        volumes={
            each["name"]: (each["hostPath"], mounted[each["name"]])
            for each in spec.get("volumes") or ()
            if "hostPath" in each
        },
        grace_seconds=grace_seconds,
        labels={
            key: value
            for key, value in pod["metadata"]["labels"].items()
            if not key.startswith(_OF_OPERATORS)
        },
    )


def _hosts(addresses: list[str]) -> tuple[str, ...]:
    return tuple(f"{address.partition('.')[0]}:{address.rpartition(':')[2]}" for address in addresses)


def _container(pod: Mapping[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in pod["spec"]["containers"] if each["name"] == name)


def _expanded(text: str, values: Mapping[str, str]) -> str:
    """Return a text as a kubelet passes it to a container."""
    return _REFERENCE.sub(lambda match: "$" if match[1] is None else values.get(match[1], match[0]), text)


def _restarts(pod: Mapping[str, Any]) -> int:
    return sum(each["restartCount"] for each in pod["status"].get("containerStatuses") or ())


def _end_container(pod: Mapping[str, Any], container: str, code: int) -> None:
    """Set the status that a kubelet sets when the container of a pod has ended."""
    ended = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}
    policy, restarts = pod["spec"]["restartPolicy"], _restarts(pod)
    begins_again = policy == "Always" or (policy == "OnFailure" and code != 0)
    state = {"running": {"startedAt": _NOWHERE}} if begins_again else ended
    container_status = {
        "name": container, "image": "i", "imageID": "", "ready": begins_again, "state": state,
        "restartCount": restarts + 1 if begins_again else restarts,
        **({"lastState": ended} if begins_again else {}),
    }  # fmt: skip
    phase = "Running" if begins_again else "Failed" if code else "Succeeded"
    patch = json.dumps({"status": {"phase": phase, "containerStatuses": [container_status]}})
    own = (pod["metadata"]["name"], "-n", pod["metadata"]["namespace"])
    kubectl("patch", "pod", *own, "--subresource=status", "-p", patch)
