"""Checks whether the nodes of a cluster really give exclusive cores: how their kubelets are configured."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence

from paceline.engines.kubernetes import cluster_states, cpu_managers, kinds, requests
from paceline.engines.kubernetes.clusters import Cluster, ClusterError
from paceline.engines.kubernetes.cpu_managers import CpuManager
from paceline.model.explanations.checkups import Check, CheckState
from paceline.model.jobs.job_specs import CpuPolicy, JobSpec
from paceline.model.jobs.nodes import Node
from paceline.scheduling import eligibility

NAME = "Exclusive cores"
#: The most kubelets that are asked; kubelets of a cluster are mostly configured alike.
MOST_ASKED = 50
_SET_IT = (
    "on these nodes set cpuManagerPolicy: static and reservedSystemCPUs in the kubelet's configuration, "
    "drain the node, remove /var/lib/kubelet/cpu_manager_state and restart the kubelet"
)
_ASK_FOR_IT = "it takes the right to get nodes/proxy, and kubelets that answer; else ask who set up the nodes"
_KEEP_TO_THEM = "keep the job to the nodes that have it: spec.placement.node_selector"

Answers = Mapping[str, CpuManager | str]


async def check(cluster: Cluster, spec: JobSpec | None) -> Check:
    """Check the kubelets of the nodes that a job may run on, or of all nodes."""
    if spec is not None and not _widest(spec):
        return Check(
            name=NAME, state=CheckState.OK, detail=f"{spec.name} asks for none (cpu_policy: exclusive)"
        )
    try:
        found = cluster_states.read((await cluster.list(kinds.NODES)).objects, "").nodes
    except ClusterError as error:
        return Check(name=NAME, state=CheckState.MISSING, detail=f"not known: {error.message}")
    nodes = [each for each in found if spec is None or eligibility.obstacle(each, spec.placement) is None]
    if not nodes:
        return Check(
            name=NAME, state=CheckState.FAILED, detail="no node lets the job in", advice="paceline fit FILE"
        )
    answers = await _ask(cluster, [each.name for each in nodes[:MOST_ASKED]])
    return verdict(spec, nodes, answers)


async def _ask(cluster: Cluster, nodes: Sequence[str]) -> dict[str, CpuManager | str]:
    """Return the CPU manager of each node, or why it is not known."""

    async def ask(node: str) -> CpuManager | str:
        try:
            return await cpu_managers.read(cluster, node)
        except ValueError as error:
            return str(error)

    answers = await requests.answers(map(ask, nodes))
    return {
        node: (each.message.partition("cannot be read: ")[2] or each.message)
        if isinstance(each, ClusterError)
        else each
        for node, each in zip(nodes, answers, strict=True)
    }


def verdict(spec: JobSpec | None, nodes: Sequence[Node], answers: Answers) -> Check:
    """Return what the kubelets' answers mean for a job, or for any job.

    Args:
        spec: the job; None: any job.
        nodes: the nodes that it may run on.
        answers: by node, its CPU manager, or why it is not known.
    """
    static = {name: each for name, each in answers.items() if isinstance(each, CpuManager) and each.is_static}
    others = [name for name, each in answers.items() if isinstance(each, CpuManager) and not each.is_static]
    unknown = {name: each for name, each in answers.items() if isinstance(each, str)}
    detail = "; ".join(_parts(static, others, unknown, len(nodes) - len(answers)))
    if not static:
        wanted = spec is not None and not unknown
        return Check(
            name=NAME,
            state=CheckState.FAILED if wanted else CheckState.MISSING,
            detail=detail,
            advice=_SET_IT if others else _ASK_FOR_IT,
        )
    wide = _too_wide(spec, nodes, static)
    if wide:
        return Check(
            name=NAME, state=CheckState.FAILED, detail=f"{detail}; {wide}",
            advice="ask for fewer cores: what is reserved is not given to pods",
        )  # fmt: skip
    if others:
        return Check(
            name=NAME, state=CheckState.MISSING, detail=detail, advice=f"{_KEEP_TO_THEM}; or {_SET_IT}"
        )
    return Check(name=NAME, state=CheckState.OK, detail=detail)


def _parts(
    static: Mapping[str, CpuManager], others: Sequence[str], unknown: Mapping[str, str], unasked: int
) -> Iterable[str]:
    if static:
        reserved = sorted({each.reserved for each in static.values() if each.reserved})
        kept = f" (reserved: {', '.join(reserved)})" if reserved else ""
        yield f"given by the static CPU manager on {_some(list(static))}{kept}"
        if any(each.gives_full_cores for each in static.values()):
            yield "only in full physical cores (full-pcpus-only): ask for all threads of each"
    if others:
        yield f"never given on {_some(others)}: the CPU manager's policy is none"
    reasons = collections.defaultdict(list)
    for name, reason in unknown.items():
        reasons[reason].append(name)
    for reason, names in reasons.items():
        yield f"not known of {_some(names)}, because {reason}"
    if unasked:
        yield f"{unasked} more nodes were not asked"


def _too_wide(spec: JobSpec | None, nodes: Sequence[Node], static: Iterable[str]) -> str:
    """Return why no node with a static CPU manager is large enough for a job; empty if one is."""
    if spec is None:
        return ""
    names = set(static)
    most = max(each.allocatable.millicores // 1000 for each in nodes if each.name in names)
    wanted = _widest(spec)
    if wanted <= most:
        return ""
    return f"a replica asks for {wanted} cores, and pods get at most {most} on such a node"


def _widest(spec: JobSpec) -> int:
    """Return the most exclusive cores that a replica of a job asks for."""
    exclusive = (role for role in spec.roles if role.cpu_policy is CpuPolicy.EXCLUSIVE)
    return max((round(role.cpu_cores or 0) for role in exclusive), default=0)


def _some(names: Sequence[str]) -> str:
    more = len(names) - 3
    return f"{', '.join(sorted(names)[:3])}{f' and {more} more' if more > 0 else ''}"
