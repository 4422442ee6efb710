"""The optional rights for sources of measurements: each source needs its own, and no other."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.real_clusters import found, kubectl, until
from support.recorded import awaited
from support.rights import Right, rights, without

from paceline.engines.kubernetes.clients import RealCluster
from paceline.engines.kubernetes.clusters import Cluster, ClusterError
from paceline.sources import cadvisors, gpus, kubelets, metrics_servers
from paceline.sources.gpus import Exporter
from paceline.sources.readings import Pod

SHIPPED = list(
    yaml.safe_load_all((Path(__file__).parents[2] / "deploy" / "kustomize" / "monitoring.yaml").read_text())
)
READER = {"kind": "ServiceAccount", "name": "e2e-monitoring", "namespace": "default"}
#: Every source, asked for a thing that is not there: whoever may ask is told so.
SOURCES: dict[Right, list[Callable[[Cluster], Awaitable[object]]]] = {
    Right("get", "nodes/proxy"): [
        lambda cluster: kubelets.read(cluster, "no-such-node"),
        lambda cluster: cadvisors.read(cluster, "no-such-node", 0.0),
    ],
    Right("get", "pods/proxy"): [
        lambda cluster: gpus.read(cluster, Exporter(Pod("default", "no-such-pod"), 9400), 0.0)
    ],
    Right("list", "pods"): [metrics_servers.read],
}


def apply(manifests: list[dict[str, Any]]) -> None:
    """Give the rights to a reader that has no others."""
    bound = [{**each, "subjects": [READER]} if "subjects" in each else each for each in manifests]
    kubectl("apply", "-f", "-", given=yaml.safe_dump_all(bound))


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
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


def refused() -> set[Right]:
    """Return the rights of the sources that the API server refuses."""

    async def ask() -> set[Right]:
        cluster = RealCluster()
        missing: set[Right] = set()
        try:
            for right, sources in SOURCES.items():
                for source in sources:
                    try:
                        await source(cluster)
                    except ClusterError as error:
                        if error.code == 403:
                            missing.add(right)
                        elif not error.is_missing:
                            raise
        finally:
            await cluster.close()
        return missing

    return awaited(ask())


@pytest.mark.parametrize("right", [None, *rights(SHIPPED)], ids=str)
def test_each_right_is_needed_by_its_source_alone(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, right: Right | None
) -> None:
    apply(SHIPPED if right is None else without(right, SHIPPED))
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    expected = set() if right is None else {right}
    until(lambda: refused() == expected, refused, 20.0)
