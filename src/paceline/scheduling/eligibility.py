"""Eligibility: which nodes a job may use at all, whatever is free on them."""

from __future__ import annotations

from paceline.model.jobs.nodes import Node
from paceline.model.jobs.placements import PodPlacement

_KEEPS_AWAY = ("NoSchedule", "NoExecute")


def obstacle(node: Node, placement: PodPlacement) -> str | None:
    """Return why a node is closed to a job; None when it is open."""
    if not node.is_ready:
        return "not ready"
    if node.is_cordoned:
        return "cordoned"
    for key, value in placement.node_selector.items():
        if node.labels.get(key) != value:
            return f"no label {key}={value}"
    for taint in node.taints:
        if taint.effect in _KEEPS_AWAY and not taint.is_tolerated(placement.tolerations):
            return f"taint {taint} is not tolerated"
    return None
