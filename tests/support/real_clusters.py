"""A real cluster for tests, by kubectl or by its API, and the operator on it as a process.

Workers of pytest-xdist share the cluster, and each has a namespace of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import re
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import yaml

from paceline.engines.kubernetes import kinds, leases, loops
from paceline.engines.kubernetes.clients import RealCluster
from paceline.engines.kubernetes.clusters import ClusterError
from paceline.engines.kubernetes.kinds import ResourceKind
from paceline.model.jobs.job_specs import JobSpec
from paceline.rendering import labels
from paceline.specs.job_file import custom_resources
from support import clusters, operator_processes, rights
from support.rights import Right

#: Where the jobs of this worker live.
NAMESPACE = "-".join(("e2e", *filter(None, [os.environ.get("PYTEST_XDIST_WORKER")])))
_OPERATOR_NAMESPACE = "paceline"
_DEPLOY = Path(__file__).parents[2] / "deploy" / "kustomize"
_OPTIONAL = set(rights.rights(yaml.safe_load_all((_DEPLOY / "monitoring.yaml").read_text())))
PACELINE = operator_processes.PACELINE
#: As the API server words it (``ForbiddenStatusError`` of k8s.io/apiserver), whatever the kind.
_DENIED = re.compile(r'cannot (\w+) resource "([\w/]+)"')
_POLL_SECONDS, _KEEPER_SECONDS = 0.05, 0.3
#: The last word of an operator that could not renew its lease in time.
_LOST = "the lease is lost: another operator may have taken over"

T = TypeVar("T")


def kubectl(*arguments: str, given: str | None = None) -> str:
    """Return what kubectl prints."""
    try:
        return clusters.kubectl(*arguments, given=given)
    except clusters.KubectlError as error:
        raise AssertionError(str(error)) from error


def new_namespace(purpose: str, labels: dict[str, str] | None = None) -> str:
    """Make a namespace that no earlier test has had, and return its name."""
    metadata = {"generateName": f"e2e-{purpose}-", "labels": labels or {}}
    given = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    return kubectl("create", "-f", "-", "-o", "jsonpath={.metadata.name}", given=given)


def found(*arguments: str) -> dict[str, Any]:
    """Return what kubectl gets."""
    return dict(json.loads(kubectl("get", *arguments, "-o", "json")))


class _Api:
    """The API server, by an administrator: a request takes milliseconds, where kubectl is a process."""

    def __init__(self) -> None:
        self._resources = contextlib.ExitStack()
        self._loop = self._resources.enter_context(loops.threaded())
        self.cluster = RealCluster()
        self._resources.callback(lambda: self.run(self.cluster.close()))
        atexit.register(self._resources.close)

    def run(self, request: Coroutine[Any, Any, T]) -> T:
        return self._loop.run(request)


@functools.cache
def _api() -> _Api:
    return _Api()


def objects(kind: ResourceKind, selector: str = "") -> list[dict[str, Any]]:
    """Return the objects of a kind: those of this worker's namespace, or the cluster's."""
    namespace = NAMESPACE if kind.is_namespaced else None
    listing = _api().run(_api().cluster.list(kind, namespace=namespace, selector=selector))
    return [dict(item) for item in listing.objects]


def get(kind: ResourceKind, name: str, namespace: str = NAMESPACE) -> dict[str, Any] | None:
    """Return an object; None: there is none of that name."""
    try:
        return dict(_api().run(_api().cluster.get(kind, name, namespace)))
    except ClusterError as error:
        if error.is_missing:
            return None
        raise


def pods(job: str) -> list[dict[str, Any]]:
    """Return the pods of a job, by their names."""
    return sorted(objects(kinds.PODS, f"paceline.dev/job={job}"), key=lambda pod: pod["metadata"]["name"])


def pod_names(job: str) -> list[str]:
    """Return the names of the pods of a job, sorted."""
    return [pod["metadata"]["name"] for pod in pods(job)]


def remove(kind: ResourceKind, name: str, namespace: str = NAMESPACE, *, grace_seconds: int = 0) -> None:
    """Delete an object, if there is one."""
    try:
        _api().run(_api().cluster.delete(kind, name, namespace, grace_seconds=grace_seconds))
    except ClusterError as error:
        if not error.is_missing:
            raise


def clear() -> None:
    """Remove the jobs of this worker and all that belongs to them, and return when that is gone."""
    until(lambda: not _removed(), lambda: f"{NAMESPACE} does not become empty: {_removed()}")


def _removed() -> list[str]:
    """Delete what there is of jobs, and return what that was. Once jobs are gone nothing is made for them."""
    left = []
    of_jobs = (kinds.PODS, kinds.SERVICES, kinds.NETWORK_POLICIES, kinds.SECRETS, kinds.CONFIG_MAPS)
    for kind in (kinds.TRAINING_JOBS, *of_jobs):
        # Jobs may be wrong in any way; the cluster's own config map comes back at once.
        present = objects(kind, "" if kind is kinds.TRAINING_JOBS else labels.JOB)
        for each in present:
            remove(kind, each["metadata"]["name"], grace_seconds=1)
        left += [f"{kind.plural}/{each['metadata']['name']}" for each in present]
    return left


class OperatorProcess(operator_processes.OperatorProcess):
    """The operator as it is shipped, in a process that can be killed."""

    _read_bytes = 0
    _is_to_run = False

    def start(self) -> None:
        """Start it; it acts when it holds the lease."""
        super().start()
        self._is_to_run = True

    def stop(self) -> int:
        """End it as Kubernetes does, and return its exit code."""
        self._is_to_run = False
        return super().stop()

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Start it again when it lost its lease, as a deployment does: this machine may be slow."""
        over = threading.Event()
        keeper = threading.Thread(target=self._keep, args=(over,), daemon=True)
        keeper.start()
        try:
            yield
        finally:
            over.set()
            keeper.join()

    def _keep(self, over: threading.Event) -> None:
        while not over.wait(_KEEPER_SECONDS):
            if self._is_to_run and not self.is_alive() and _LOST in self.said()[-len(_LOST) - 100 :]:
                super().start()

    def denied(self) -> set[Right]:
        """What the API server has refused it for want of rights, by its log."""
        said = self.said()
        return {Right(*each) for each in _DENIED.findall(said)}

    def said(self) -> str:
        """Return what it has logged since `turn_page`."""
        return self.log.read_bytes()[self._read_bytes :].decode() if self.log.exists() else ""

    def turn_page(self) -> None:
        """Leave what it has logged so far to the tests before."""
        self._read_bytes += len(self.said().encode())

    def kill(self, *, lease_runs_out: bool = True) -> None:
        """End it without a warning.

        Args:
            lease_runs_out: take its lease away, as if the seconds had passed for which others have to wait.
        """
        self._is_to_run = False
        super().kill()
        if lease_runs_out:
            remove(kinds.LEASES, leases.OPERATOR, _OPERATOR_NAMESPACE)


class Shift:
    """The one operator that acts on the cluster: it stays for the next test that needs the same one.

    Args:
        kubeconfig: its rights.
        folder: where operators log.
    """

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._operator: OperatorProcess | None = None
        self._arguments: tuple[str, ...] = ()

    @contextlib.contextmanager
    def of(self, *arguments: str) -> Iterator[OperatorProcess]:
        """Give an operator with these arguments that acts or is about to; it must still live at the end."""
        if self._operator is None or not self._operator.is_alive() or self._arguments != arguments:
            self.end()
            log = self._folder / f"operator-{len(list(self._folder.iterdir()))}.log"
            self._operator, self._arguments = OperatorProcess(self._kubeconfig, log, *arguments), arguments
            self._operator.start()
        operator = self._operator
        operator.turn_page()
        with operator.kept():
            yield operator
        assert operator.is_alive(), operator.said()[-3000:]
        assert "Traceback" not in operator.said(), operator.said()[-3000:]
        # It asks others about replicas that have been silent for long, as those on hollow nodes are.
        assert operator.denied() <= _OPTIONAL, "the rights that are shipped have to be enough"

    def end(self) -> None:
        """Have no operator act."""
        if self._operator is not None and self._operator.is_alive():
            self._operator.stop()
        self._operator = None


def submit(spec: JobSpec, **more: Any) -> None:
    """Make the resource of a job."""
    made = custom_resources.resource(spec, NAMESPACE)
    made["spec"].update(more)
    kubectl("create", "-f", "-", given=json.dumps(made))


def change(name: str, **spec: Any) -> None:
    """Change the spec of a job, as a user does."""
    kubectl("patch", "tj", name, "-n", NAMESPACE, "--type=merge", "-p", json.dumps({"spec": spec}))


def status(name: str) -> dict[str, Any]:
    return dict((get(kinds.TRAINING_JOBS, name) or {}).get("status") or {})


def until(holds: Callable[[], Any], what: Callable[[], object], seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what()
        time.sleep(_POLL_SECONDS)


def until_phase(name: str, phase: str, seconds: float = 300.0) -> None:
    until(lambda: status(name).get("phase") == phase, lambda: status(name), seconds)
