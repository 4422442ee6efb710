"""The end of groups of pods in queues of Kueue.

Kueue takes a pod of a group that ends for one that will be replaced: it keeps the pod, and the quota of the
group. Only the controller that makes the pods knows that none will come any more.
Source: Kueue's documentation, "Run a group of Pods"; ``pkg/controller/jobs/pod`` (Kueue 0.19).
"""

from __future__ import annotations

import collections
from collections.abc import Iterable

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clusters import Cluster, Object, missing_is_fine
from paceline.rendering import kueue

#: By this finalizer Kueue keeps a pod of a group.
FINALIZER = "kueue.x-k8s.io/managed"


async def end(cluster: Cluster, pods: Iterable[Object]) -> None:
    """Tell Kueue that none of these pods will be replaced, as far as it still keeps them.

    A pod that never ran cannot end by itself. A group with such a pod ends with its workload, and all pods of
    the group are deleted then. The pods of other groups keep their logs.

    Raises:
        ClusterError: a request has to be tried again.
    """
    kept: dict[tuple[str, str], list[Object]] = collections.defaultdict(list)
    for pod in pods:
        metadata = pod["metadata"]
        group = (metadata.get("labels") or {}).get(kueue.GROUP)
        if group and FINALIZER in (metadata.get("finalizers") or ()):
            kept[metadata["namespace"], group].append(pod)
    for (namespace, group), members in kept.items():
        if any("nodeName" not in (pod.get("spec") or {}) for pod in members):
            await _delete_workload(cluster, group, namespace)
        else:
            await _mark(cluster, members[0])


async def _delete_workload(cluster: Cluster, name: str, namespace: str) -> None:
    for kind in (kinds.WORKLOADS, kinds.OLD_WORKLOADS):
        with missing_is_fine():
            await cluster.delete(kind, name, namespace)
            return


async def _mark(cluster: Cluster, pod: Object) -> None:
    metadata = pod["metadata"]
    changes = {"metadata": {"annotations": {kueue.RETRIABLE: "false"}}}
    with missing_is_fine():
        await cluster.patch(kinds.PODS, metadata["name"], metadata["namespace"], changes)
