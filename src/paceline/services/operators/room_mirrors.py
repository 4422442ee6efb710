"""The room in a cluster, followed by watches: its nodes, its quotas, and what pods take of the nodes.

A cluster of thousands of nodes has megabytes of objects. So they are listed once, each is read once when it
changes, and of each only the numbers are kept.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from paceline.engines.kubernetes import cluster_states, kinds, pod_states
from paceline.engines.kubernetes.clusters import Cluster, Object
from paceline.engines.kubernetes.mirrors import Key, Mirror, key_of
from paceline.model.jobs.nodes import Node, Quota, Resources
from paceline.rendering import labels
from paceline.services.cluster.admissions import ClusterRoom

T = TypeVar("T")

log = logging.getLogger(__name__)


class PodUse(NamedTuple):
    """What a pod takes of its node, and whether it is a replica of a job."""

    node: str
    takes: Resources
    is_replica: bool


def use_of(pod: Object) -> PodUse | None:
    """Return what a pod takes of its node; None: it has no node yet, or has ended, or cannot be read."""
    host = _read(cluster_states.host_of, pod)
    takes = _read(cluster_states.requests, pod) if host is not None else None
    if host is None or takes is None:
        return None
    return PodUse(host, takes, labels.JOB in (pod["metadata"].get("labels") or {}))


class _UsedNodes:
    """Nodes, by name, with what some of the pods use of them."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        #: Also of nodes that are not known yet: a pod may be seen before its node.
        self._used: dict[str, Resources] = {}

    def put(self, name: str, node: Node | None) -> bool:
        """Note a node as it is now, None if it is gone; return whether that changes anything."""
        wanted = node and dataclasses.replace(node, used=self._used.get(name, Resources()))
        if wanted == self.nodes.get(name):
            return False
        if wanted is None:
            del self.nodes[name]
        else:
            self.nodes[name] = wanted
        return True

    def add(self, name: str, takes: Resources) -> None:
        """Note that more is used of a node, or less if the amounts are negative."""
        used = self._used.pop(name, Resources()) + takes
        if used != Resources():
            self._used[name] = used
        self.put(name, self.nodes.get(name))


class RoomMirror:
    """Follows the room in a cluster.

    Args:
        cluster: the cluster.
        on_silence: called when a node has fallen silent or answers again.
    """

    def __init__(self, cluster: Cluster, *, on_silence: Callable[[], None]) -> None:
        self._on_silence = on_silence
        #: Since when a node has not answered, in Unix seconds, by node.
        self.silent: Mapping[str, float] = {}
        self._nodes = Mirror(cluster, kinds.NODES, on_change=self._node_changed, trimmed=_trimmed_node)
        self._quotas = Mirror(cluster, kinds.QUOTAS, on_change=self._quota_changed, trimmed=_trimmed_quota)
        self._uses: dict[Key, PodUse] = {}
        #: The nodes with what all pods use, and with what those use that are no replicas.
        self._all, self._without_jobs = _UsedNodes(), _UsedNodes()
        self._revision = 0

    async def run(self) -> None:
        """Follow nodes and quotas until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._nodes.run())
            tasks.create_task(self._quotas.run())

    async def wait_for_nodes(self) -> None:
        """Wait until all nodes were seen once, so that it is known which are silent."""
        await self._nodes.is_filled.wait()

    async def read(self) -> ClusterRoom:
        """Return the present room; this waits until all nodes and quotas were seen once."""
        await self.wait_for_nodes()
        await self._quotas.is_filled.wait()
        quotas: defaultdict[str, list[Quota]] = defaultdict(list)
        for each in self._quotas:
            if each["quota"] is not None:
                quotas[key_of(each)[0]].append(each["quota"])
        return ClusterRoom(
            nodes=tuple(self._all.nodes.values()),
            without_jobs=tuple(self._without_jobs.nodes.values()),
            quotas=quotas,
            revision=self._revision,
        )

    def pod_changed(self, key: Key, use: PodUse | None) -> None:
        """Note what a pod takes now; None: nothing, or there is no such pod any more."""
        before = self._uses.get(key)
        if before == use:
            return
        self._revision += 1
        if before is not None:
            self._add(before, -1)
            del self._uses[key]
        if use is not None:
            self._add(use, 1)
            self._uses[key] = use

    def _add(self, use: PodUse, sign: int) -> None:
        self._all.add(use.node, use.takes * sign)
        if not use.is_replica:
            self._without_jobs.add(use.node, use.takes * sign)

    def _node_changed(self, found: Object) -> None:
        name = found["metadata"]["name"]
        present = self._nodes.get(("", name))
        node: Node | None = None if present is None else present["node"]
        for known in (self._all, self._without_jobs):
            self._revision += known.put(name, node)
        since = None if present is None else present["silent_since"]
        if since != self.silent.get(name):
            others = {each: at for each, at in self.silent.items() if each != name}
            self.silent = others if since is None else {**others, name: since}
            self._on_silence()

    def _quota_changed(self, _quota: Object) -> None:
        self._revision += 1


def _trimmed_node(node: Object) -> Object:
    metadata = {name: node["metadata"].get(name) for name in ("name", "resourceVersion")}
    silent_since = pod_states.silent_nodes([node]).get(metadata["name"])
    return {"metadata": metadata, "node": _read(cluster_states.node, node), "silent_since": silent_since}


def _trimmed_quota(quota: Object) -> Object:
    metadata = {name: quota["metadata"].get(name) for name in ("namespace", "name", "resourceVersion")}
    return {"metadata": metadata, "quota": _read(cluster_states.quota, quota)}


def _read(read: Callable[[Object], T], found: Object) -> T | None:
    """Return what an object says; None if it does not have the API's format: then it is left out."""
    try:
        return read(found)
    except ValueError as error:
        log.warning("an object is left out of the room of the cluster: %s", error)
        return None
