"""Who may do what through a server, by the word of a real API server: the table of `cluster_sites`."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import cluster_sites, clusters, rights, site_routes
from support.cluster_sites import MAY
from support.clusters import apply
from support.memory_clusters import MemoryCluster
from support.real_clusters import NAMESPACE, PACELINE, kubectl, until
from support.rights import Right
from support.site_routes import Asked

from paceline.surfaces.web.applications import application
from paceline.surfaces.web.operations import ApiOperation

DEPLOY = Path(__file__).parents[2] / "deploy" / "server"
SHIPPED = [
    each
    for each in yaml.safe_load_all((DEPLOY / "server.yaml").read_text())
    if each["kind"] in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")
]
OTHER = "e2e-other"
JOB = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: clicks}
spec:
  image: localhost/work:1
  command: [sleep, "3600"]
  roles:
    ps: {replicas: 1}
    worker: {replicas: 1, max_replicas: 2}
"""
QUEUED = JOB.replace("name: clicks", "name: queued") + "  scheduling: {queue: night}\n"


def account(role: str) -> list[dict[str, Any]]:
    """Return a service account, bound to a role in the namespace of jobs."""
    api, metadata = "rbac.authorization.k8s.io", {"name": f"user-{role}", "namespace": NAMESPACE}
    made: list[dict[str, Any]] = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}]
    if role != "unbound":
        binding = {
            "apiVersion": f"{api}/v1", "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", **metadata}],
        }  # fmt: skip
        made.append(binding)
    return made


class Server:
    """A server as it is shipped, in a process with its own rights and no more."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        command = [
            *PACELINE, "serve", "--engine", "kubernetes", "--gate", "kubernetes",
            "--host", "paceline.example.com", "--port", "0", "-n", NAMESPACE, "--home", str(folder / "home"),
        ]  # fmt: skip
        self.log = folder / "server.log"
        self._written = self.log.open("w")
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._written, text=True,
            env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        )  # fmt: skip
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url.startswith("http://127.0.0.1:"), self.log.read_text()

    def ask(
        self, method: str, path: str, token: str | None, body: Any = None, host: str | None = None
    ) -> tuple[int, str]:
        """Return the status of an answer, and its text."""
        request = urllib.request.Request(self.url + path, method=method)
        if token is not None:
            request.add_header("Authorization", f"Bearer {token}")
        if host is not None:
            request.add_header("Host", host)
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        while True:
            try:
                with urllib.request.urlopen(request, timeout=300) as answer:
                    return answer.status, answer.read(100_000).decode()
            except urllib.error.HTTPError as error:
                with error:
                    if error.code != HTTPStatus.TOO_MANY_REQUESTS:
                        return error.code, error.read().decode()
                time.sleep(0.1)

    def end(self) -> None:
        with self._written, self._process:
            self._process.terminate()


@pytest.fixture(scope="module")
def server(installed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    kubectl("apply", "-f", str(DEPLOY / "users.yaml"))
    apply([*SHIPPED, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OTHER}}])
    config = clusters.operator_kubeconfig(folder / "kubeconfig", account="paceline-server")
    made = Server(folder, config)
    try:
        yield made
        assert "Traceback" not in made.log.read_text(), made.log.read_text()[-3000:]
    finally:
        made.end()


@pytest.fixture(scope="module")
def tokens(installed: None) -> dict[str, str]:
    for role in MAY:
        apply(account(role))
    return {role: clusters.service_token(f"user-{role}", NAMESPACE) for role in MAY}


@pytest.fixture(scope="module")
def requests(tmp_path_factory: pytest.TempPathFactory) -> list[Asked]:
    with cluster_sites.opened(MemoryCluster(), tmp_path_factory.mktemp("routes")) as site:
        return site_routes.asked(application(site))


def ask(server: Server, each: Asked, namespace: str, token: str | None) -> tuple[int, str]:
    body = {"source": "x", "workers": 1} if each.method in ("POST", "PUT", "PATCH") else None
    return server.ask(each.method, f"{each.path}?namespace={namespace}", token, body)


@pytest.mark.parametrize("role", MAY)
def test_a_role_may_what_the_table_says(
    server: Server, tokens: dict[str, str], requests: list[Asked], role: str
) -> None:
    # The cluster adds what is shipped to its own roles a moment after it was applied.
    looked = Asked("GET", "/api/v1/jobs", ApiOperation.LIST)
    until(lambda: ask(server, looked, NAMESPACE, tokens["view"])[0] == 200, server.log.read_text)
    for each in requests:
        status, said = ask(server, each, NAMESPACE, tokens[role])
        if each.operation in MAY[role]:
            assert status < 500, (each, said)
            assert status not in (401, 403), (each, said)
        else:
            assert status == 403, (each, said)
            assert (
                f"user-{role} may not do this in {NAMESPACE}" in said
                or each.operation is ApiOperation.CLUSTER
            )


@pytest.mark.parametrize("role", MAY)
def test_a_role_in_one_namespace_is_none_in_another(
    server: Server, tokens: dict[str, str], requests: list[Asked], role: str
) -> None:
    for each in requests:
        status, said = ask(server, each, OTHER, tokens[role])
        assert (status == 403) == (each.operation is not ApiOperation.ASK), (each, said)


def test_no_caller_is_let_in_without_a_token_that_is_known(server: Server, requests: list[Asked]) -> None:
    for each in requests[:8]:  # More wrong ones would have to wait.
        for token in (None, "wrong"):
            assert ask(server, each, NAMESPACE, token)[0] == 401, each


def test_a_token_that_is_taken_back_counts_no_more(server: Server, tokens: dict[str, str]) -> None:
    apply(
        [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "gone", "namespace": NAMESPACE}}]
    )
    token = clusters.service_token("gone", NAMESPACE)
    looked = Asked("GET", "/api/v1/codes", ApiOperation.ASK)
    until(lambda: ask(server, looked, NAMESPACE, token)[0] == 200, server.log.read_text)
    kubectl("delete", "serviceaccount", "gone", "-n", NAMESPACE)
    until(lambda: ask(server, looked, NAMESPACE, token)[0] == 401, server.log.read_text)


def test_the_rights_of_the_server_are_enough_for_an_editor(server: Server, tokens: dict[str, str]) -> None:
    token = tokens["edit"]

    def done(method: str, path: str, body: Any = None) -> str:
        status, said = server.ask(method, f"/api/v1{path}", token, body)
        assert status < 300, (method, path, status, said)
        # What the server may not look at it says as unknown.
        assert "paceline-server" not in said, (path, said)
        return said

    for source in (JOB, QUEUED):
        done("POST", "/jobs", {"source": source})
    done("GET", "/jobs/queued/why")
    for path in ("", "/source", "/events", "/snapshot", "/why", "/logs", "/samples", "/changes"):
        done("GET", f"/jobs/clicks{path}")
    done("GET", "/quotas")
    done("POST", "/jobs/clicks/stop")
    done("DELETE", "/jobs/clicks?force=true")


#: What the server asks with each right.
ASKED: dict[Right, tuple[str, str, Any]] = {
    Right("list", "nodes"): ("GET", "/jobs/clicks/why", None),
    Right("get", "namespaces"): ("GET", "/jobs", None),
    Right("get", "trainingjobs"): ("GET", "/jobs/clicks", None),
    Right("list", "trainingjobs"): ("GET", "/jobs", None),
    Right("create", "trainingjobs"): ("POST", "/jobs", {"source": JOB, "name": "another"}),
    Right("patch", "trainingjobs"): ("POST", "/jobs/clicks/stop", None),
    Right("delete", "trainingjobs"): ("DELETE", "/jobs/clicks?force=true", None),
    Right("list", "pods"): ("GET", "/jobs/clicks/why", None),
    Right("list", "events"): ("GET", "/jobs/clicks/why", None),
    Right("list", "resourcequotas"): ("GET", "/quotas", None),
    Right("list", "localqueues"): ("GET", "/quotas", None),
    Right("list", "workloads"): ("GET", "/jobs/queued/why", None),
    Right("list", "podgroups"): ("GET", "/jobs/queued/why", None),
    Right("list", "leases"): ("GET", "/jobs/clicks/why", None),
}


@pytest.mark.parametrize("right", ASKED, ids=str)
def test_each_right_of_the_server_is_needed(server: Server, tokens: dict[str, str], right: Right) -> None:
    method, path, body = ASKED[right]
    for source in (JOB, QUEUED):
        server.ask("POST", "/api/v1/jobs", tokens["edit"], {"source": source})
    refused = f'cannot {right.verb} resource \\"{right.resource}\\"'
    try:
        apply(rights.without(right, [each for each in SHIPPED if each["kind"] == "ClusterRole"]))
        until(
            lambda: refused in server.ask(method, f"/api/v1{path}", tokens["edit"], body)[1],
            lambda: server.ask(method, f"/api/v1{path}", tokens["edit"], body),
        )
    finally:
        apply(SHIPPED)


def test_every_right_is_looked_at() -> None:
    # Hollow nodes have no output to read.
    assert set(rights.rights(SHIPPED)) - ASKED.keys() == {Right("get", "pods/log")}
