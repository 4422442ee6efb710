"""A server over a cluster, and who may do what there: one table for clusters in memory and real ones."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from paceline.engines.kubernetes import loops
from paceline.engines.kubernetes.clusters import Cluster
from paceline.engines.kubernetes.loops import Loop
from paceline.services.cluster.measurements import ClusterMeasurements
from paceline.surfaces.web.cluster_gates import KubernetesGate
from paceline.surfaces.web.gates import Gate
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.sites import ClusterSite
from support.access import Access

USERS = Path(__file__).parents[2] / "deploy" / "server" / "users.yaml"
#: In which the users of the table have their roles; in the other one no user has any. `unbound` has none.
NAMESPACE, OTHER = "ads", "search"
_ASKED = {ApiOperation.ASK}
_LOOKS = {*_ASKED, ApiOperation.LIST, ApiOperation.GET, ApiOperation.LOGS, ApiOperation.QUOTAS}
_CHANGES = {each for each in ApiOperation if each.changes}
#: What each role may in its namespace. Nodes are the cluster's: a role of a namespace does not show them.
MAY: dict[str, set[ApiOperation]] = {
    "unbound": _ASKED,
    "view": _LOOKS,
    "edit": _LOOKS | _CHANGES,
    "admin": _LOOKS | _CHANGES | {ApiOperation.AUDITS},
}
#: What the built-in roles have already, of what is asked for here.
_BUILT_IN: dict[str, list[dict[str, Any]]] = {
    "view": [
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["resourcequotas"], "verbs": ["get", "list", "watch"]},
    ],
    "edit": [],
    "admin": [],
}
_ORDER = ("view", "edit", "admin")


def token(role: str) -> str:
    """Return the token of the user with a role."""
    return f"token-of-{role}"


def fill(access: Access) -> None:
    """Make the users of the table known, bound to the roles that are shipped."""
    shipped = {each["metadata"]["name"]: each["rules"] for each in yaml.safe_load_all(USERS.read_text())}
    access.add(token("unbound"), "unbound")
    access.add(token("cluster-admin"), "root", "system:masters")
    access.bind("system:masters", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}], None)
    for place, role in enumerate(_ORDER):
        access.add(token(role), role)
        for each in _ORDER[: place + 1]:
            access.bind(role, [*shipped[f"paceline-{each}"], *_BUILT_IN[each]], NAMESPACE)


def kubernetes_gate(cluster: Cluster, loop: Loop) -> Gate:
    return KubernetesGate(cluster, loop, time.monotonic)


@contextlib.contextmanager
def opened(
    cluster: Cluster,
    folder: Path,
    gate: Callable[[Cluster, Loop], Gate] | None = None,
) -> Iterator[ClusterSite]:
    """Give what a server over a cluster stands on."""
    with loops.threaded() as loop:
        measurements = ClusterMeasurements(cluster, store_url=f"sqlite:///{folder / 'kept.db'}", home=folder)
        try:
            made = (gate or kubernetes_gate)(cluster, loop)
            yield ClusterSite(cluster, loop, measurements, made, namespace=NAMESPACE)
        finally:
            measurements.close()
