"""Checks what a Kubernetes cluster lets Paceline do, as `checkups` does for this machine.

A check that may not be made is ``missing``, with the reason: nothing is known to be wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, NamedTuple

from paceline.engines.kubernetes import cluster_states, kinds, leases, versions
from paceline.engines.kubernetes.clusters import NAMES_BYTES, Cluster, ClusterError, Object
from paceline.engines.kubernetes.kinds import ResourceKind
from paceline.model.explanations.checkups import Check, CheckState
from paceline.model.jobs.job_specs import JobSpec
from paceline.services.cluster import exclusive_cores
from paceline.specs.job_file import custom_resources

_INSTALL = "paceline schema --crd | kubectl apply -f -"


class NamespaceRight(NamedTuple):
    """A right of a user in a namespace, or in all namespaces, and what it is for."""

    verb: str
    kind: ResourceKind
    purpose: str
    subresource: str = ""
    everywhere: bool = False

    @property
    def resource(self) -> str:
        """The kind, with its subresource, as an RBAC role names it."""
        return "/".join(part for part in (self.kind.plural, self.subresource) if part)

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{' of all namespaces' if self.everywhere else ''}"


#: Without these rights nothing works; without one of the others, only its purpose does not.
NEEDED = (
    NamespaceRight("list", kinds.TRAINING_JOBS, "list"),
    NamespaceRight("get", kinds.TRAINING_JOBS, "get"),
    NamespaceRight("create", kinds.TRAINING_JOBS, "submit"),
    NamespaceRight("patch", kinds.TRAINING_JOBS, "stop, resume and scale"),
    NamespaceRight("delete", kinds.TRAINING_JOBS, "delete"),
)
RIGHTS = (
    *NEEDED,
    NamespaceRight("create", kinds.CONFIG_MAPS, "submit of a folder of code"),
    NamespaceRight("delete", kinds.CONFIG_MAPS, "submit of a folder of code that is refused"),
    NamespaceRight("list", kinds.PODS, "get, logs, top and why"),
    NamespaceRight("get", kinds.PODS, "logs", "log"),
    NamespaceRight("get", kinds.PODS, "top, report and trace", "proxy"),
    NamespaceRight("create", kinds.PODS, "trace", "proxy"),
    NamespaceRight("get", kinds.SECRETS, "top, report and trace: the token of a job's agents"),
    NamespaceRight("list", kinds.EVENTS, "describe and why"),
    NamespaceRight("list", kinds.QUOTAS, "fit and why"),
    NamespaceRight("list", kinds.NODES, "fit and why"),
    NamespaceRight("list", kinds.PODS, "fit and why", everywhere=True),
    NamespaceRight("list", kinds.TRAINING_JOBS, "list -A and why", everywhere=True),
    NamespaceRight("list", kinds.LEASES, "doctor and why, on the operator", everywhere=True),
    NamespaceRight("get", kinds.NODES, "doctor on exclusive cores", "proxy"),
    NamespaceRight("get", kinds.NAMESPACES, "--store: which runs are this namespace's"),
)

#: Other software that may be on a cluster, and the API group of each.
_NEIGHBOURS = {
    "Prometheus operator": "monitoring.coreos.com",
    "Kueue": "kueue.x-k8s.io",
    "Volcano": "batch.volcano.sh",
}
#: Plugins that enforce network policies and can be recognized by an API group; kube-router has no group.
_ENFORCERS = {
    "Antrea": "crd.antrea.io",
    "Calico": "crd.projectcalico.org",
    "Cilium": "cilium.io",
    "OVN-Kubernetes": "k8s.ovn.org",
}


def checks(
    cluster: Cluster,
    namespace: str,
    spec: JobSpec | None,
    *,
    now: float,
    run: Callable[[Coroutine[Any, Any, Check]], Check],
) -> Iterator[Check]:
    """Yield every check as it is done; if the API server does not answer, that check is the only one.

    Args:
        cluster: the cluster.
        namespace: where jobs are to run.
        spec: a job that is to run there; None: any job.
        now: Unix seconds.
        run: runs a coroutine to its end.
    """
    first = run(server(cluster))
    yield first
    if first.state is CheckState.FAILED:
        return
    yield run(definition(cluster))
    yield run(operator(cluster, now))
    yield run(rights(cluster, namespace))
    yield run(nodes(cluster))
    yield run(exclusive_cores.check(cluster, spec))
    yield run(job_ports(cluster))
    yield run(neighbours(cluster))


async def server(cluster: Cluster) -> Check:
    """Check that the API server answers, and show its version."""
    try:
        found = await versions.of(cluster)
    except ClusterError as error:
        advice = error.hint or "kubectl version asks the same; see that the kubeconfig is right"
        return Check(name="API server", state=CheckState.FAILED, detail=error.message, advice=advice)
    detail = f"Kubernetes {found.text}"
    if not found.is_supported:
        detail += f"; this Paceline is tested on {versions.supported_text()}, and not on this one"
        return Check(name="API server", state=CheckState.MISSING, detail=detail)
    return Check(name="API server", state=CheckState.OK, detail=detail)


async def definition(cluster: Cluster) -> Check:
    """Check that the cluster has the TrainingJob definition, with all fields that this Paceline has."""
    name = "TrainingJob"
    try:
        found = await cluster.get(kinds.DEFINITIONS, f"{custom_resources.PLURAL}.{custom_resources.GROUP}")
    except ClusterError as error:
        if error.is_forbidden:
            return await _served(cluster, name)
        if not error.is_missing:
            return _unknown(name, error)
        return Check(
            name=name, state=CheckState.FAILED, detail="the cluster does not know what it is", advice=_INSTALL
        )
    ours, theirs = _fields(custom_resources.definition()), _fields(found)
    lacking = sorted(ours - theirs)
    if lacking:
        shown = f"{', '.join(lacking[:3])}{' ...' if len(lacking) > 3 else ''}"
        return Check(
            name=name,
            state=CheckState.MISSING,
            detail=f"of another version than this Paceline: it lacks {shown}",
            advice=_INSTALL,
        )
    return Check(
        name=name, state=CheckState.OK, detail=f"{custom_resources.VERSION}, as this Paceline has it"
    )


async def _served(cluster: Cluster, name: str) -> Check:
    """Check only that the kind is served, which everyone may read, and not its schema."""
    try:
        await cluster.read(
            f"/apis/{custom_resources.GROUP}/{custom_resources.VERSION}", limit_bytes=NAMES_BYTES
        )
    except ClusterError as error:
        if not error.is_missing:
            return _unknown(name, error)
        return Check(
            name=name, state=CheckState.FAILED, detail="the cluster does not know what it is", advice=_INSTALL
        )
    detail = f"{custom_resources.VERSION}; whether as this Paceline has it is not known (may not be read)"
    return Check(name=name, state=CheckState.OK, detail=detail)


def _fields(found: Object) -> set[str]:
    """Return the paths of all fields in the schema of this Paceline's version."""
    versions = (found.get("spec") or {}).get("versions") or ()
    schemas = [each for each in versions if each.get("name") == custom_resources.VERSION]
    paths: set[str] = set()

    def walk(part: Mapping[str, Any], path: str) -> None:
        for name, each in (part.get("properties") or {}).items():
            paths.add(f"{path}{name}")
            walk(each, f"{path}{name}.")

    for each in schemas:
        walk((each.get("schema") or {}).get("openAPIV3Schema") or {}, "")
    return paths


async def operator(cluster: Cluster, now: float) -> Check:
    """Check that an operator runs: its lease is held and renewed."""
    name, advice = "Operator", "paceline operator, or kubectl apply -k deploy/kustomize"
    try:
        holdings = await leases.holdings(cluster, leases.OPERATOR)
    except ClusterError as error:
        return _unknown(name, error)
    if not holdings:
        return Check(name=name, state=CheckState.FAILED, detail="there is none", advice=advice)
    last = holdings[0]
    if last.renewed_at is None or not last.is_held(now):
        age = "" if last.renewed_at is None else f", last renewed {now - last.renewed_at:.0f} s ago"
        detail = f"no operator holds the lease {last.namespace}/{leases.OPERATOR}{age}"
        return Check(name=name, state=CheckState.FAILED, detail=detail, advice=advice)
    seconds = max(0.0, now - last.renewed_at)
    detail = f"{last.holder} in {last.namespace}, seen {seconds:.0f} s ago"
    return Check(name=name, state=CheckState.OK, detail=detail)


async def rights(cluster: Cluster, namespace: str) -> Check:
    """Check the rights of the user in a namespace, by asking the API server itself."""
    name = "Rights"
    try:
        lacking = [each for each in RIGHTS if not await _may(cluster, each, namespace)]
    except ClusterError as error:
        return _unknown(name, error)
    if not lacking:
        return Check(name=name, state=CheckState.OK, detail=f"all that the verbs need in {namespace}")
    detail = "; ".join(f"no {each} ({each.purpose})" for each in lacking)
    failed = not set(NEEDED).isdisjoint(lacking)
    return Check(
        name=name,
        state=CheckState.FAILED if failed else CheckState.MISSING,
        detail=f"in {namespace}: {detail}",
        advice="ask for a role that allows it (kubectl auth can-i --list says what you have)",
    )


async def _may(cluster: Cluster, right: NamespaceRight, namespace: str) -> bool:
    asked = {
        "verb": right.verb,
        "group": right.kind.group,
        "resource": right.kind.plural,
        "subresource": right.subresource,
        **({"namespace": namespace} if right.kind.is_namespaced and not right.everywhere else {}),
    }
    review = {
        "apiVersion": kinds.ACCESS_REVIEWS.api_version,
        "kind": kinds.ACCESS_REVIEWS.name,
        "metadata": {},
        "spec": {"resourceAttributes": asked},
    }
    answered = await cluster.create(kinds.ACCESS_REVIEWS, review)
    return bool((answered.get("status") or {}).get("allowed"))


async def nodes(cluster: Cluster) -> Check:
    """Check how many nodes there are, and that at least one takes pods."""
    name = "Nodes"
    try:
        all_nodes = cluster_states.read((await cluster.list(kinds.NODES)).objects, "").nodes
    except ClusterError as error:
        return _unknown(name, error)
    silent = [node.name for node in all_nodes if not node.is_ready]
    cordoned = [node.name for node in all_nodes if node.is_ready and node.is_cordoned]
    cores = (
        sum(node.allocatable.millicores for node in all_nodes if node.name not in (*silent, *cordoned)) / 1000
    )
    ready = len(all_nodes) - len(silent)
    detail = f"{ready} of {len(all_nodes)} Ready, {cores:g} cores"
    if silent:
        detail += f"; not Ready: {_some(silent)}"
    if cordoned:
        detail += f"; cordoned: {_some(cordoned)}"
    if not all_nodes or ready == len(cordoned):
        return Check(name=name, state=CheckState.FAILED, detail=detail, advice="no node takes pods")
    if silent:
        return Check(
            name=name, state=CheckState.MISSING, detail=detail, advice="kubectl describe node says why"
        )
    return Check(name=name, state=CheckState.OK, detail=detail)


async def job_ports(cluster: Cluster) -> Check:
    """Check whether a job's network policy is enforced, as far as the API groups of the cluster show it."""
    name = "Job ports"
    try:
        groups = await _groups(cluster)
    except (ClusterError, ValueError) as error:
        return _unknown(name, error)
    enforcers = [known for known, group in _ENFORCERS.items() if group in groups]
    if enforcers:
        detail = f"only pods of a job reach it, which {' and '.join(enforcers)} can enforce"
        return Check(name=name, state=CheckState.OK, detail=detail)
    return Check(
        name=name,
        state=CheckState.MISSING,
        detail="not known whether network policies are enforced: no network plugin shows itself that does so",
        advice="without one any pod of the cluster reads and writes files as a job: docs/security.md",
    )


async def neighbours(cluster: Cluster) -> Check:
    """Show which other software that Paceline works with is on the cluster; none of it is needed."""
    name = "Beside it"
    try:
        groups = await _groups(cluster)
    except (ClusterError, ValueError) as error:
        return _unknown(name, error)
    there = [known for known, group in _NEIGHBOURS.items() if group in groups]
    absent = [known for known in _NEIGHBOURS if known not in there]
    parts = [", ".join(there)] if there else []
    parts += [f"not there: {', '.join(absent)}"] if absent else []
    return Check(name=name, state=CheckState.OK, detail="; ".join(parts))


async def _groups(cluster: Cluster) -> set[str]:
    """Return the groups of the API.

    Raises:
        ClusterError, ValueError: the groups cannot be read.
    """
    listed = json.loads(await cluster.read("/apis", limit_bytes=NAMES_BYTES))
    return {str(each.get("name")) for each in listed.get("groups") or ()}


def _unknown(name: str, error: Exception) -> Check:
    message = error.message if isinstance(error, ClusterError) else str(error)
    return Check(name=name, state=CheckState.MISSING, detail=f"not known: {message}")


def _some(names: list[str]) -> str:
    return f"{', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"
