"""A real API server: that of KUBECONFIG (``make e2e`` provides one).

Only one operator may act on it, so one process runs all tests that need the operator.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import clusters, real_clusters, upstream_definitions
from support.real_clusters import NAMESPACE, OperatorProcess, Shift

#: Tests wait for conditions on a machine that may be busy with anything; this only ends one that hangs.
_SECONDS = 900.0


def pytest_itemcollected(item: pytest.Item) -> None:
    """All tests here need a cluster; without one they say so."""
    item.add_marker(pytest.mark.kubernetes)
    if item.get_closest_marker("timeout") is None:
        item.add_marker(pytest.mark.timeout(_SECONDS))
    if not os.environ.get("KUBECONFIG"):
        item.add_marker(pytest.mark.skip(reason="no cluster: KUBECONFIG is not set (make e2e)"))


@contextlib.contextmanager
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have other workers wait that would do the same to the cluster."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with (shared / "cluster.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What is shipped, applied: but the deployment, whose image is not there."""
    with alone(tmp_path_factory):
        clusters.install(NAMESPACE)


@pytest.fixture(scope="session")
def upstream(installed: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The kinds of Kubeflow and Volcano."""
    with alone(tmp_path_factory):
        upstream_definitions.install()


@pytest.fixture(scope="session")
def operator_kubeconfig(installed: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rights of the operator's own service account, and no more."""
    return clusters.operator_kubeconfig(tmp_path_factory.mktemp("operator") / "kubeconfig")


@pytest.fixture(scope="session")
def shift(operator_kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shift]:
    """Who acts as the operator, from test to test."""
    made = Shift(operator_kubeconfig, tmp_path_factory.mktemp("operators"))
    yield made
    made.end()


@pytest.fixture(scope="session")
def operator_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where operators keep samples and output."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def operator(shift: Shift, operator_home: Path) -> Iterator[OperatorProcess]:
    with shift.of("--agent-image", "none", "--home", str(operator_home)) as made:
        yield made


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    if os.environ.get("KUBECONFIG"):
        real_clusters.clear()
