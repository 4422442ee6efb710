"""Reserves nodes for a study by a label: as many as the job file names hosts.

On this machine hosts are emulated; on a cluster they are real nodes. So an experiment file whose variants use
one host, five hosts, or five hosts and five others, means the same on both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clusters import Cluster, ClusterError
from paceline.errors import EngineError
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.nodes import Node
from paceline.scheduling import eligibility
from paceline.services.cluster import admissions

KEY = "paceline.dev/experiment"
#: The longest label value that the API accepts.
_LONGEST = 63


def holder(namespace: str, study: str) -> str:
    """Return the value of the label, which names the study that holds the nodes."""
    return f"{study}.{namespace}"[:_LONGEST].rstrip("-.")


async def lend(cluster: Cluster, namespace: str, spec: JobSpec, held_by: str) -> JobSpec:
    """Label exactly as many nodes as a job has hosts; return the job, confined to these nodes.

    The nodes are chosen from those that are open to the job and held by no other study, with the most free
    cores first. Ties are broken by name, so that the variants of a study differ in nothing else.

    Raises:
        EngineError: there are not enough such nodes.
        ClusterError: the cluster cannot be read, or its nodes may not be labelled.
    """
    nodes = (await admissions.look(cluster, namespace)).nodes
    chosen = _chosen(nodes, spec, held_by)
    await _label(cluster, nodes, chosen, held_by)
    selector = {**spec.placement.node_selector, KEY: held_by}
    return dataclasses.replace(spec, placement=dataclasses.replace(spec.placement, node_selector=selector))


async def give_back(cluster: Cluster, held_by: str) -> None:
    """Take the label from every node that has it.

    Raises:
        ClusterError: the cluster refuses it.
    """
    labelled = await cluster.list(kinds.NODES, selector=f"{KEY}={held_by}")
    for each in labelled.objects:
        await _patch(cluster, each["metadata"]["name"], None)


def _chosen(nodes: Sequence[Node], spec: JobSpec, held_by: str) -> list[str]:
    host_count = len(spec.hosts)
    is_open = [node for node in nodes if eligibility.obstacle(node, spec.placement) is None]
    free = [node for node in is_open if node.labels.get(KEY) in (None, held_by)]
    if len(free) < host_count:
        taken = len(is_open) - len(free)
        held = f", {taken} more are held by other experiments" if taken else ""
        raise EngineError(
            f"the job names {host_count} hosts, and {len(free)} nodes are open to it{held}",
            "name fewer spec.hosts, or see with kubectl get nodes what keeps the others",
        )
    free.sort(key=lambda node: (node.used.millicores - node.allocatable.millicores, node.name))
    return [node.name for node in free[:host_count]]


async def _label(cluster: Cluster, nodes: Sequence[Node], chosen: Sequence[str], held_by: str) -> None:
    for each in nodes:
        has = each.labels.get(KEY) == held_by
        if has != (each.name in chosen):
            await _patch(cluster, each.name, None if has else held_by)


async def _patch(cluster: Cluster, node: str, value: str | None) -> None:
    try:
        await cluster.patch(kinds.NODES, node, None, {"metadata": {"labels": {KEY: value}}})
    except ClusterError as error:
        if error.is_forbidden:
            hint = "ask for the right to patch nodes, or leave spec.hosts out of the job file"
            raise ClusterError(error.message, code=error.code, reason=error.reason, hint=hint) from error
        if not error.is_missing:  # A node that is gone needs no label.
            raise
