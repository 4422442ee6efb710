"""A real API server: that of KUBECONFIG (``make e2e`` provides one)."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import clusters
from support.real_clusters import NAMESPACE, OperatorProcess, found, kubectl


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
    clusters.install(NAMESPACE)


@pytest.fixture(scope="session")
def operator_kubeconfig(installed: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rights of the operator's own service account, and no more."""
    return clusters.operator_kubeconfig(tmp_path_factory.mktemp("operator") / "kubeconfig")


@pytest.fixture
def operator(operator_kubeconfig: Path, tmp_path: Path) -> Iterator[OperatorProcess]:
    keeping = ("--home", str(tmp_path / "home"))
    made = OperatorProcess(operator_kubeconfig, tmp_path / "operator.log", "--agent-image", "none", *keeping)
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
        # The next job of a name finds the service of the last one taken until it is collected.
        while found("pods,services", "-n", NAMESPACE)["items"] and time.monotonic() < deadline:
            time.sleep(0.5)
