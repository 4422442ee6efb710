"""The optional right to ask cAdvisor is what it takes, and no more."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.real_clusters import found, kubectl, until
from support.recorded import awaited
from support.rights import Right, rights, without

from paceline.engines.kubernetes.clients import RealCluster
from paceline.engines.kubernetes.clusters import ClusterError
from paceline.sources import cadvisors

SHIPPED = list(
    yaml.safe_load_all((Path(__file__).parents[2] / "deploy" / "kustomize" / "monitoring.yaml").read_text())
)
READER = {"kind": "ServiceAccount", "name": "e2e-monitoring", "namespace": "default"}


def apply(manifests: list[dict[str, Any]]) -> None:
    """Give the rights to a reader that has no others."""
    bound = [{**each, "subjects": [READER]} if "subjects" in each else each for each in manifests]
    kubectl("apply", "-f", "-", given=yaml.safe_dump_all(bound))


@pytest.fixture(scope="module")
def kubeconfig(installed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    name = READER["name"]
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": "default"},
    }
    of_account = {"kubernetes.io/service-account.name": name}
    secret = {
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": name, "namespace": "default", "annotations": of_account},
    }  # fmt: skip
    kubectl("apply", "-f", "-", given=yaml.safe_dump_all([account, secret]))

    def token() -> str:
        return str((found("secret", name, "-n", "default").get("data") or {}).get("token", ""))

    until(token, lambda: "the service account has no token")
    config = yaml.safe_load(kubectl("config", "view", "--raw", "--flatten", "--minify"))
    config["users"] = [{"name": name, "user": {"token": base64.b64decode(token()).decode()}}]
    config["contexts"][0]["context"]["user"] = name
    path = tmp_path_factory.mktemp("reader") / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    apply(SHIPPED)
    yield path
    kubectl("delete", "--ignore-not-found", "-f", "-", given=yaml.safe_dump_all([*SHIPPED, account, secret]))


def answer() -> int | None:
    """Return the status of the answer about a node that is not there."""

    async def ask() -> int | None:
        cluster = RealCluster()
        try:
            await cadvisors.read(cluster, "no-such-node", 0.0, [])
        except ClusterError as error:
            return error.code
        finally:
            await cluster.close()
        raise AssertionError("there is such a node")

    return awaited(ask())


def test_who_has_the_right_may_ask_cadvisor(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of_reader() -> int | None:
        with monkeypatch.context() as patched:
            patched.setenv("KUBECONFIG", str(kubeconfig))
            return answer()

    (right,) = rights(SHIPPED)
    assert right == Right("get", "nodes/proxy")
    until(lambda: of_reader() == 404, of_reader)
    apply(without(right, SHIPPED))
    until(lambda: of_reader() == 403, of_reader)
