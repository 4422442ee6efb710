"""The Kubernetes cluster of KUBECONFIG, by kubectl, with what is shipped installed, and hollow nodes in it.

Hollow nodes run nothing: KWOK keeps them alive and has their pods run and end. They have the label
``paceline.dev/hollow=true`` and 80 cores each.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from paceline.model.jobs.job_specs import API_VERSION, CleanUp, JobSpec, RoleSpec
from paceline.model.jobs.placements import PlacementStrategy, PodPlacement
from paceline.model.roles import Role
from paceline.rendering import labels
from paceline.specs.job_file import custom_resources
from support.kills import until
from support.prerequisites import NotHere

NAMESPACE = "bench"
HOLLOW = {"paceline.dev/hollow": "true"}
NODES = 20
_OPERATOR_NAMESPACE = "paceline"
_DEPLOY = Path(__file__).parents[2] / "deploy" / "kustomize"
_GONE_SECONDS = 300.0

Object = dict[str, Any]


class KubectlError(RuntimeError):
    """What kubectl complained of."""


def kubectl(*arguments: str, given: str | None = None, timeout_seconds: float = 240.0) -> str:
    """Return what kubectl prints.

    Raises:
        KubectlError: it was refused.
    """
    done = subprocess.run(
        ["kubectl", *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )
    if done.returncode:
        raise KubectlError(f"kubectl {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def found(*arguments: str) -> Object:
    """Return what kubectl gets."""
    return dict(json.loads(kubectl("get", *arguments, "-o", "json")))


def objects(*arguments: str) -> list[Object]:
    """Return the objects of a list that kubectl gets."""
    return list(found(*arguments)["items"])


def apply(made: Iterable[Mapping[str, Any]]) -> None:
    """Make objects, or change them."""
    kubectl("apply", "-f", "-", given=as_list(made))


def as_list(made: Iterable[Mapping[str, Any]]) -> str:
    """Return objects as kubectl takes them."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(made)})


def hollow_nodes(*, quick: bool) -> list[str]:
    """Return the names of the hollow nodes of the cluster: `NODES` of them, or in a quick run all there are.

    Raises:
        NotHere: there is no cluster, or it has too few.
    """
    how = f"tests/kubernetes/with-cluster makes one with HOLLOW_NODES={NODES}"
    if not os.environ.get("KUBECONFIG"):
        raise NotHere(f"it needs a Kubernetes cluster, and KUBECONFIG is not set ({how})")
    selector = ",".join(f"{name}={value}" for name, value in HOLLOW.items())
    try:
        ready = [node["metadata"]["name"] for node in objects("nodes", "-l", selector) if _is_ready(node)]
    except (KubectlError, FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise NotHere(f"the cluster of KUBECONFIG does not answer: {error}") from error
    wanted = 2 if quick else NODES
    if len(ready) < wanted:
        raise NotHere(f"it needs {wanted} hollow nodes, and the cluster has {len(ready)} ({how})")
    return sorted(ready)[:NODES]


def _is_ready(node: Object) -> bool:
    conditions = node["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def install(*namespaces: str) -> None:
    """Apply what is shipped, but the deployment, whose image is not there; and make namespaces for jobs."""
    kubectl("apply", "-f", "-", given=yaml.safe_dump(custom_resources.definition()))
    kubectl("wait", "--for=condition=Established", "crd/trainingjobs.paceline.dev", "--timeout=30s")
    kubectl("apply", "-f", str(_DEPLOY / "namespace.yaml"), "-f", str(_DEPLOY / "rbac.yaml"))
    for name in namespaces:
        apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])


def service_token(account: str, namespace: str = _OPERATOR_NAMESPACE) -> str:
    """Return a token of a service account, which is there."""
    name = f"{account}-process"
    noted = {"kubernetes.io/service-account.name": account}
    metadata = {"name": name, "namespace": namespace, "annotations": noted}
    secret_type = "kubernetes.io/service-account-token"
    apply([{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": secret_type}])

    def token() -> str:
        secret = found("secret", name, "-n", namespace)
        return str((secret.get("data") or {}).get("token", ""))

    return base64.b64decode(until(token)).decode()


def operator_kubeconfig(path: Path, *, port: int | None = None, account: str = "paceline-operator") -> Path:
    """Write a kubeconfig with the rights of the operator's own service account, and no more.

    Args:
        path: where.
        port: of a proxy on this machine that speaks plain HTTP; None: the API server as we reach it.
        account: another service account beside the operator's.
    """
    config = yaml.safe_load(kubectl("config", "view", "--raw", "--flatten", "--minify"))
    config["users"] = [{"name": "operator", "user": {"token": service_token(account)}}]
    config["contexts"][0]["context"].update(user="operator", namespace=_OPERATOR_NAMESPACE)
    if port is not None:
        config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{port}"}
    path.write_text(yaml.safe_dump(config))
    return path


def job(
    name: str,
    *,
    ps: RoleSpec,
    workers: RoleSpec,
    strategy: PlacementStrategy = PlacementStrategy.ANY,
) -> JobSpec:
    """Return a job for hollow nodes: what it runs does not matter to them, and it never ends by itself."""
    return JobSpec(
        name=name,
        image="localhost/work:1",
        command=("sleep", "3600"),
        roles=(ps, workers),
        placement=PodPlacement(strategy=strategy, node_selector=HOLLOW),
        clean_up=CleanUp.ALL,
        termination_grace_seconds=1.0,
    )


def sized(role: Role, replicas: int, cores: float, memory_mib: int = 256) -> RoleSpec:
    """Return replicas of a size."""
    return RoleSpec(role=role, replicas=replicas, cpu_cores=cores, memory_bytes=memory_mib << 20)


def resource(spec: JobSpec) -> Mapping[str, Any]:
    """Return the resource of a job in the namespace of benchmarks."""
    return custom_resources.resource(spec, NAMESPACE)


def pods(job_name: str | None = None) -> list[Object]:
    """Return the pods of a job, or those of all jobs of the namespace."""
    selector = f"{labels.JOB}={job_name}" if job_name else labels.JOB
    return objects("pods", "-n", NAMESPACE, "-l", selector)


def clear() -> None:
    """Remove all jobs and pods from the namespace of benchmarks, and wait until they are gone."""
    core, group = f"/api/v1/namespaces/{NAMESPACE}", f"/apis/{API_VERSION}/namespaces/{NAMESPACE}"
    # Whole collections: kubectl deletes their objects one by one.
    for each in (f"{group}/trainingjobs", f"{core}/pods?gracePeriodSeconds=1", f"{core}/configmaps"):
        until(functools.partial(_deleted, each), seconds=_GONE_SECONDS)
    kubectl("delete", "services", "--all", "-n", NAMESPACE, "--wait=false")

    def is_empty() -> bool:
        return not kubectl("get", "trainingjobs,pods", "-n", NAMESPACE, "--no-headers").strip()

    until(is_empty, seconds=_GONE_SECONDS)


def _deleted(path: str) -> bool:
    """Whether a collection is deleted; a large one may take longer than a request may."""
    try:
        kubectl("delete", "--raw", path)
    except KubectlError as error:
        if not re.search(r"\(Timeout\)|context deadline exceeded", str(error)):
            raise
        return False
    return True


def replica_of(pod: Mapping[str, Any]) -> str:
    """Return the name of the replica that a pod is an attempt of."""
    own = pod["metadata"]["labels"]
    return f"{own[labels.JOB]}/{own[labels.ROLE]}-{own[labels.INDEX]}"


def is_live(pod: Mapping[str, Any]) -> bool:
    """Whether a pod has not ended: one that is being ended still counts."""
    return pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")


def is_running(pod: Mapping[str, Any]) -> bool:
    """Whether a pod runs, and is not being ended."""
    status, metadata = pod.get("status", {}), pod["metadata"]
    return status.get("phase") == "Running" and "deletionTimestamp" not in metadata
