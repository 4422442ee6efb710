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
        #: What is used on each node by all pods, and by those that are no replicas.
        self._used: defaultdict[str, Resources] = defaultdict(Resources)
        self._used_by_others: defaultdict[str, Resources] = defaultdict(Resources)
        #: The nodes with the one and with the other, by name.
        self._all: dict[str, Node] = {}
        self._without_jobs: dict[str, Node] = {}
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
            nodes=tuple(self._all.values()),
            without_jobs=tuple(self._without_jobs.values()),
            quotas=quotas,
            revision=self._revision,
        )

    def pod_changed(self, key: Key, use: PodUse | None) -> None:
        """Note what a pod takes now; None: nothing, or there is no such pod any more."""
        before = self._uses.pop(key, None)
        if before == use:
            if use is not None:
                self._uses[key] = use
            return
        self._revision += 1
        if before is not None:
            self._add(before, -1)
        if use is not None:
            self._uses[key] = use
            self._add(use, 1)

    def _add(self, use: PodUse, sign: int) -> None:
        changed = [(self._used, self._all)]
        if not use.is_replica:
            changed.append((self._used_by_others, self._without_jobs))
        for used, nodes in changed:
            used[use.node] += use.takes * sign
            if use.node in nodes:
                nodes[use.node] = dataclasses.replace(nodes[use.node], used=used[use.node])
            if used[use.node] == Resources():
                del used[use.node]

    def _node_changed(self, found: Object) -> None:
        name = found["metadata"]["name"]
        present = self._nodes.get(("", name))
        node: Node | None = None if present is None else present["node"]
        for used, nodes in ((self._used, self._all), (self._used_by_others, self._without_jobs)):
            wanted = None if node is None else dataclasses.replace(node, used=used.get(name, Resources()))
            if wanted == nodes.get(name):
                continue
            self._revision += 1
            if wanted is None:
                del nodes[name]
            else:
                nodes[name] = wanted
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
