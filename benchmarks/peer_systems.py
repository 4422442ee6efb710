"""Systems that run a job on a cluster: Paceline, and its peers with the programs of this machine.

The programs of peers are those that ``WITH="kueue volcano kubeflow" tests/kubernetes/with-cluster`` starts.
"""

from __future__ import annotations

import abc
import contextlib
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
from support import clusters, operator_processes
from support.kills import until
from support.operator_processes import Usage
from support.prerequisites import NotHere

from paceline.model.roles import Role
from paceline.rendering import labels

PACELINE = "Paceline"
#: The name of every job.
JOB = "peer"
#: Requests a second that a system may make, and how many at once.
Rate = tuple[int, int]
_QUEUE = "peers"
_SECONDS = 120.0
#: How the audit log of the API server names our operator.
_OF_OPERATOR = "system:serviceaccount:paceline:"


class PeerSystem(abc.ABC):
    """A system that runs jobs on the cluster.

    Attributes:
        name: of the system.
        programs: the names of its programs on this machine.
        agents: how the user agents of its requests begin.
        kind: the kind of its jobs, for kubectl.
        selector: the label of the pods of the job.
    """

    name = ""
    programs: Sequence[str] = ()
    agents: Sequence[str] = ()
    kind = ""
    selector = ""

    @abc.abstractmethod
    def job(self, replicas: int) -> Sequence[Mapping[str, Any]]:
        """Return the objects of a job with so many replicas."""

    @contextlib.contextmanager
    def acting(self, rate: Rate | None) -> Iterator[None]:
        """Have the system act, with a limit of its rate of requests; None: as it was started."""
        with contextlib.ExitStack() as changed:
            for program in self.programs:
                changed.enter_context(_at_rate(program, rate))
            yield

    def usages(self) -> list[Usage]:
        """Return what each of its programs has used so far."""
        return [Usage.of(_process(program).pid) for program in self.programs]

    def is_asking(self, request: Mapping[str, Any]) -> bool:
        """Whether a request in the audit log is the system's."""
        return str(request.get("userAgent")).startswith(tuple(self.agents))


class Paceline(PeerSystem):
    """Our operator, with the rights of its service account."""

    name = PACELINE
    kind = "trainingjobs"
    selector = f"{labels.JOB}={JOB}"

    def __init__(self) -> None:
        self._operator: operator_processes.OperatorProcess | None = None

    def job(self, replicas: int) -> Sequence[Mapping[str, Any]]:
        """See `PeerSystem.job`."""
        servers = _servers(replicas)
        ps, workers = (
            clusters.sized(role, count, 0.5, 64)
            for role, count in ((Role.PS, servers), (Role.WORKER, replicas - servers))
        )
        return [clusters.resource(clusters.job(JOB, ps=ps, workers=workers))]

    @contextlib.contextmanager
    def acting(self, rate: Rate | None) -> Iterator[None]:
        """See `PeerSystem.acting`."""
        with operator_processes.acting(keeping=True) as self._operator:
            yield

    def usages(self) -> list[Usage]:
        """See `PeerSystem.usages`."""
        assert self._operator is not None
        return [self._operator.usage()]

    def is_asking(self, request: Mapping[str, Any]) -> bool:
        """See `PeerSystem.is_asking`."""
        return str(request["user"].get("username")).startswith(_OF_OPERATOR)


class Kubeflow(PeerSystem):
    """Kubeflow's training operator with a TFJob."""

    name = "Kubeflow"
    programs = ("training-operator",)
    agents = ("training-operator",)
    kind = "tfjobs.kubeflow.org"
    selector = f"training.kubeflow.org/job-name={JOB}"

    def job(self, replicas: int) -> Sequence[Mapping[str, Any]]:
        """See `PeerSystem.job`."""
        servers = _servers(replicas)
        # With OnFailure a kubelet would start the container again, and the operator would have no part in it.
        roles = {
            name: {"replicas": count, "restartPolicy": "ExitCode", "template": _pod("tensorflow")}
            for name, count in (("PS", servers), ("Worker", replicas - servers))
        }
        policy = {"cleanPodPolicy": "All"}
        return [_object("kubeflow.org/v1", "TFJob", {"runPolicy": policy, "tfReplicaSpecs": roles})]


class Volcano(PeerSystem):
    """Volcano's controllers, scheduler and webhooks with a job of its own."""

    name = "Volcano"
    programs = ("vc-controller-manager", "vc-scheduler", "vc-webhook-manager")
    agents = ("vc-controller-manager", "vc-scheduler", "vc-webhook-manager")
    kind = "jobs.batch.volcano.sh"
    selector = f"volcano.sh/job-name={JOB}"

    def job(self, replicas: int) -> Sequence[Mapping[str, Any]]:
        """See `PeerSystem.job`."""
        servers = _servers(replicas)
        again = [
            {"event": "PodFailed", "action": "RestartPod"},
            {"event": "PodEvicted", "action": "RestartPod"},
        ]
        tasks = [
            {"name": name, "replicas": count, "template": _pod("training"), "policies": again, "maxRetry": 9}
            for name, count in (("ps", servers), ("worker", replicas - servers))
        ]
        spec = {"schedulerName": "volcano", "minAvailable": replicas, "tasks": tasks}
        return [_object("batch.volcano.sh/v1alpha1", "Job", spec)]


class Kueue(PeerSystem):
    """Kueue, and the controller manager of Kubernetes for the Job that it lets in."""

    name = "Kueue"
    programs = ("kueue", "kube-controller-manager")
    agents = ("kueue", "kube-controller-manager")
    kind = "jobs.batch"
    selector = f"batch.kubernetes.io/job-name={JOB}"

    def job(self, replicas: int) -> Sequence[Mapping[str, Any]]:
        """See `PeerSystem.job`."""
        spec = {
            "parallelism": replicas, "completions": replicas, "completionMode": "Indexed", "suspend": True,
            "backoffLimit": 1000, "template": _pod("training"),
        }  # fmt: skip
        return [_object("batch/v1", "Job", spec, {"kueue.x-k8s.io/queue-name": _QUEUE})]

    @contextlib.contextmanager
    def acting(self, rate: Rate | None) -> Iterator[None]:
        """See `PeerSystem.acting`."""
        # Its manifests' own rates; the cluster of the tests begins it with higher ones.
        per_second, at_once = rate or (50, 100)
        command = _process("kueue").cmdline()
        config = Path(command[command.index("--config") + 1])
        limits = f"clientConnection: {{qps: {per_second}, burst: {at_once}}}"
        config.write_text(re.sub(r"(?m)^clientConnection: .*$", limits, config.read_text()))
        _restart("kueue", command)
        until(_has_queues, seconds=_SECONDS, every_seconds=1.0)
        with _at_rate("kube-controller-manager", rate):
            yield


SYSTEMS: Sequence[Callable[[], PeerSystem]] = (Paceline, Kubeflow, Volcano, Kueue)
_FLAVOUR = {"name": "all", "resources": [{"name": name, "nominalQuota": many} for name, many in (
    ("cpu", "100000"), ("memory", "1000Ti"))]}  # fmt: skip
_QUEUES = [
    {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "all"}},
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": _QUEUE},
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": ["cpu", "memory"], "flavors": [_FLAVOUR]}],
        },
    },
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
        "metadata": {"name": _QUEUE, "namespace": clusters.NAMESPACE}, "spec": {"clusterQueue": _QUEUE},
    },
]  # fmt: skip


def _has_queues() -> bool:
    """Make the queues of Kueue; False: it has been started again, and does not answer yet."""
    try:
        clusters.apply(_QUEUES)
    except clusters.KubectlError:
        return False
    return True


def _servers(replicas: int) -> int:
    return max(1, replicas // 11)


def _pod(container: str) -> Mapping[str, Any]:
    """Return a pod template like that of our job."""
    amounts = {"cpu": "500m", "memory": "64Mi"}
    return {
        "spec": {
            "restartPolicy": "Never",
            "nodeSelector": clusters.HOLLOW,
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": container, "image": "localhost/work:1", "command": ["sleep", "3600"],
                    "resources": {"requests": amounts, "limits": amounts},
                }
            ],
        }
    }  # fmt: skip


def _object(
    version: str, kind: str, spec: Mapping[str, Any], own_labels: Mapping[str, str] | None = None
) -> Mapping[str, Any]:
    metadata = {"name": JOB, "namespace": clusters.NAMESPACE, "labels": dict(own_labels or {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": dict(spec)}


def _process(program: str) -> psutil.Process:
    """Return the process of a program on this machine.

    Raises:
        NotHere: it does not run.
    """
    for process in psutil.process_iter(["cmdline"]):
        if Path((process.info["cmdline"] or [""])[0]).name == program:
            return process
    raise NotHere(f"{program} does not run here (make bench-peers)")


def _with_rate(command: Sequence[str], rate: Rate) -> list[str]:
    """Return a command line with other limits of requests."""
    joined = re.sub(r"--kube-api-(qps|burst)[=\x00][0-9]+\x00?", "", "\x00".join(command)).rstrip("\x00")
    return [*joined.split("\x00"), f"--kube-api-qps={rate[0]}", f"--kube-api-burst={rate[1]}"]


@contextlib.contextmanager
def _at_rate(program: str, rate: Rate | None) -> Iterator[None]:
    """Have a program run with another limit of requests; None: as it was started."""
    if rate is None:
        yield
        return
    command = _process(program).cmdline()
    _restart(program, _with_rate(command, rate))
    try:
        yield
    finally:
        _restart(program, command)


def _restart(program: str, command: Sequence[str]) -> None:
    """End a program and start it again with a command line; it acts some time later."""
    process = _process(program)
    environment, folder = process.environ(), process.cwd()
    log = Path(os.readlink(f"/proc/{process.pid}/fd/2"))
    process.terminate()
    psutil.wait_procs([process], timeout=60)
    with log.open("ab") as output:
        subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
