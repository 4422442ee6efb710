"""What becomes of pods in a cluster in memory: bound, run, ended, removed."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable, Mapping
from typing import Any

from paceline.engines.kubernetes import kinds
from support.memory_clusters import MemoryCluster

Pod = Mapping[str, Any]


def node(name: str, *, cpu: str = "4", memory: str = "8Gi") -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {},
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2027-01-15T08:00:00Z"}],
        },
    }


_SHORT = {
    "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient cpu.",
}  # fmt: skip


class Kubelet:
    """All nodes of a cluster, and its scheduler, which looks at nothing.

    Args:
        cluster: the cluster.
        exit_code: says of a running pod with which code it ends, if it ends now.

    `leaves` says of a pod that is asked to end whether it does now. While it `is_full`, no node has CPU left.
    """

    def __init__(
        self, cluster: MemoryCluster, exit_code: Callable[[Pod], int | None] = lambda pod: None
    ) -> None:
        self._cluster = cluster
        self.exit_code = exit_code
        self.leaves: Callable[[Pod], bool] = lambda pod: True
        self.dead: set[str] = set()
        self.is_full = False

    async def run(self) -> None:
        while True:
            for name, pod in self._cluster.of_kind(kinds.PODS).items():
                self._look_after(name, pod)
            await asyncio.sleep(0.005)

    def _look_after(self, name: str, pod: Pod) -> None:
        host, phase = pod["spec"].get("nodeName"), pod["status"]["phase"]
        if host in self.dead:
            return
        is_leaving = "deletionTimestamp" in pod["metadata"] and self.leaves(pod)
        if is_leaving and pod["metadata"].get("finalizers"):
            if host is not None and phase not in (
                "Succeeded",
                "Failed",
            ):  # Without a node no kubelet ends it.
                self._change(pod, status=_status("Failed", terminated={"exitCode": 143, "reason": "Error"}))
        elif is_leaving:
            self._cluster.remove(kinds.PODS, name, pod["metadata"]["namespace"])
        elif host is None and self.is_full:
            self._change(pod, status={"phase": phase, "conditions": [_SHORT]})
        elif host is None:
            self._change(pod, spec={**pod["spec"], "nodeName": _pinned(pod) or "n0"})
        elif phase == "Pending":
            self._change(pod, status=_status("Running", running={"startedAt": "2027-01-15T08:00:00Z"}))
        elif phase == "Running" and (code := self.exit_code(pod)) is not None:
            state = {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}
            self._change(pod, status=_status("Failed" if code else "Succeeded", terminated=state))

    def _change(self, pod: Pod, **parts: Any) -> None:
        metadata = pod["metadata"]
        self._cluster.change(kinds.PODS, metadata["name"], metadata["namespace"], **parts)


def silence(cluster: MemoryCluster, name: str, since: float) -> None:
    """Have a node not answer any more."""
    found = cluster.of_kind(kinds.NODES)[name]
    time = datetime.datetime.fromtimestamp(since, datetime.UTC).isoformat()
    condition = {"type": "Ready", "status": "Unknown", "lastTransitionTime": time}
    cluster.change(kinds.NODES, name, "", status={**found["status"], "conditions": [condition]})


def _status(phase: str, **state: Any) -> dict[str, Any]:
    return {"phase": phase, "containerStatuses": [{"name": "training", "state": state}]}


def _pinned(pod: Pod) -> str | None:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity")
    if not affinity:
        return None
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return str(term["matchFields"][0]["values"][0])
