"""Nodes that are alike, together: what it takes to place a job grows as its replicas, not as the cluster.

Of thousands of nodes most have the same free resources. A job of ten replicas uses no more than ten of these,
so it need not look at the others.
"""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.nodes import Node, Resources, Taint
from paceline.model.jobs.placements import PodPlacement
from paceline.model.roles import ReplicaId
from paceline.scheduling import eligibility
from paceline.scheduling.items import requests


class NodeGroup(NamedTuple):
    """Nodes with the same free resources, by name and in order."""

    free: Resources
    names: Sequence[str]


class _Likeness(NamedTuple):
    """What nodes of a group have in common: all that a placement asks of a node, but for its labels."""

    free: Resources
    taints: tuple[Taint, ...]
    is_ready: bool
    is_cordoned: bool


class NodeGroups:
    """The nodes of a cluster in groups, as jobs take room on them.

    Args:
        nodes: the nodes as they are.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._nodes = {node.name: node for node in nodes}
        #: What is free on each node; less than the node says once jobs have taken room.
        self._free = {name: node.free for name, node in self._nodes.items()}
        self._names: defaultdict[_Likeness, list[str]] = defaultdict(list)
        for name in sorted(self._nodes):
            self._names[self._likeness(name)].append(name)

    def enough(self, placement: PodPlacement, count: int) -> dict[str, Resources]:
        """Return as many open nodes as a job of ``count`` items can use, and what is free on each.

        A packing uses at most one node for each item, and nodes of a group can be exchanged. So as much fits
        on these nodes as on all.
        """
        found = self._open(placement, count)
        return {name: group.free for group in found for name in group.names}

    def open_to(self, placement: PodPlacement) -> list[NodeGroup]:
        """Return all nodes that are open to a job."""
        return [*self._open(placement, None)]

    def closed_to(self, placement: PodPlacement) -> dict[str, list[str]]:
        """Return the nodes that are closed to a job, by the reason."""
        closed: defaultdict[str, list[str]] = defaultdict(list)
        for name, node in self._nodes.items():
            why = eligibility.obstacle(node, placement)
            if why is not None:
                closed[why].append(name)
        return closed

    def take(self, spec: JobSpec, places: Mapping[ReplicaId, str]) -> None:
        """Have replicas of a job take what they request of their nodes; unknown nodes are left out."""
        for replica, name in places.items():
            if name in self._nodes:
                self._regroup(name, self._free[name] - requests(spec.role_of(replica)))

    def _regroup(self, name: str, free: Resources) -> None:
        before = self._likeness(name)
        names = self._names[before]
        del names[bisect.bisect_left(names, name)]
        if not names:
            del self._names[before]
        self._free[name] = free
        bisect.insort(self._names[self._likeness(name)], name)

    def _likeness(self, name: str) -> _Likeness:
        node = self._nodes[name]
        return _Likeness(self._free[name], node.taints, node.is_ready, node.is_cordoned)

    def _open(self, placement: PodPlacement, most: int | None) -> Iterator[NodeGroup]:
        """Yield the nodes that are open to a job; of each group not more than ``most``."""
        for likeness, names in self._names.items():
            if placement.node_selector:  # Nodes of a group have different labels.
                is_open = (name for name in names if self._is_open(name, placement))
                found = [*itertools.islice(is_open, most)]
            else:
                found = names[:most] if self._is_open(names[0], placement) else []
            if found:
                yield NodeGroup(likeness.free, found)

    def _is_open(self, name: str, placement: PodPlacement) -> bool:
        return eligibility.obstacle(self._nodes[name], placement) is None
