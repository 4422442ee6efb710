"""A real API server: that of KUBECONFIG (``make e2e`` provides one)."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from support.real_clusters import NAMESPACE, OperatorProcess, found, kubectl

from paceline.specs import custom_resources

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy" / "kustomize"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests here need a cluster; without one they say so."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.kubernetes)
            if not os.environ.get("KUBECONFIG"):
                item.add_marker(pytest.mark.skip(reason="no cluster: KUBECONFIG is not set (make e2e)"))


@pytest.fixture(scope="session")
def installed() -> None:
    """What is shipped, applied: but the deployment, whose image is not there."""
    crd = yaml.safe_dump(custom_resources.definition())
    kubectl("apply", "-f", "-", given=crd)
    kubectl("wait", "--for=condition=Established", "crd/trainingjobs.paceline.dev", "--timeout=30s")
    kubectl("apply", "-f", str(DEPLOY / "namespace.yaml"), "-f", str(DEPLOY / "rbac.yaml"))
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    kubectl("apply", "-f", "-", given=json.dumps(namespace))


@pytest.fixture(scope="session")
def operator_kubeconfig(installed: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rights of the operator's own service account, and no more."""
    secret = """
apiVersion: v1
kind: Secret
metadata:
  name: paceline-operator-e2e
  namespace: paceline
  annotations: {kubernetes.io/service-account.name: paceline-operator}
type: kubernetes.io/service-account-token
"""
    kubectl("apply", "-f", "-", given=secret)
    deadline = time.monotonic() + 30
    token = ""
    while not token:
        assert time.monotonic() < deadline, "the service account has no token"
        data = found("secret", "paceline-operator-e2e", "-n", "paceline").get("data") or {}
        token = data.get("token", "")
        time.sleep(0.2)
    config = yaml.safe_load(kubectl("config", "view", "--raw", "--flatten", "--minify"))
    config["users"] = [{"name": "operator", "user": {"token": base64.b64decode(token).decode()}}]
    config["contexts"][0]["context"].update(user="operator", namespace="paceline")
    path = tmp_path_factory.mktemp("operator") / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.fixture
def operator(operator_kubeconfig: Path, tmp_path: Path) -> Iterator[OperatorProcess]:
    made = OperatorProcess(operator_kubeconfig, tmp_path / "operator.log", "--agent-image", "none")
    made.start()
    try:
        yield made
        assert made.is_alive(), made.log.read_text()[-3000:]
        assert "Traceback" not in made.log.read_text(), made.log.read_text()[-3000:]
        assert made.denied() == set(), "the rights that are shipped have to be enough"
    finally:
        if made.is_alive():
            made.stop()


@pytest.fixture(autouse=True)
def _nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if os.environ.get("KUBECONFIG"):
        with contextlib.suppress(AssertionError):
            kubectl("delete", "trainingjobs", "--all", "-n", NAMESPACE, "--wait=false")
            kubectl("delete", "pods", "--all", "-n", NAMESPACE, "--grace-period=0", "--force", "--wait=false")
        deadline = time.monotonic() + 60
        while found("pods", "-n", NAMESPACE)["items"] and time.monotonic() < deadline:
            time.sleep(0.5)
