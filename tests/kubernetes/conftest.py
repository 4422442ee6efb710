"""A real API server: that of KUBECONFIG (``make e2e`` provides one).

Only one operator may act on it, so one process runs all tests that need the operator.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import clusters, images, real_clusters, upstream_definitions
from support.real_clusters import NAMESPACE, OperatorProcess, Shift, kubectl

from paceline.engines.kubernetes import kinds

#: Tests wait for conditions on a machine that may be busy with anything; this only ends one that hangs.
_SECONDS = 900.0
#: The images that are made for a node here.
IMAGE, AGENT_FILES = "localhost/paceline-training:1", "localhost/paceline-agent:1"


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


@pytest.fixture(scope="module")
def only_real_nodes() -> Iterator[None]:
    """Keep pods from hollow nodes, which run nothing."""
    hollow = [each["metadata"]["name"] for each in real_clusters.objects(kinds.NODES, "paceline.dev/hollow")]
    if hollow:
        kubectl("cordon", *hollow)
    yield
    if hollow:
        kubectl("uncordon", *hollow)


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An image with TensorFlow on the node: the image that a variable names, or one made for a node here."""
    if named := os.environ.get("PACELINE_E2E_IMAGE"):
        return named
    why = "no image with TensorFlow: PACELINE_E2E_IMAGE is not set, and"
    if shutil.which("ctr") is None:
        pytest.skip(f"{why} there is no containerd here")
    if not images.debian().exists():
        pytest.skip(f"{why} tests/kubernetes/fetch-debian has fetched nothing")
    if sys.version_info[:2] != images.VERSION:
        pytest.skip(f"{why} this is not the Python of Debian's image")
    return _imported(IMAGE, tmp_path_factory.mktemp("image") / "training.tar", images.make)


@pytest.fixture(scope="session")
def agent_files(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An image of the agent's files on the node: one that a variable names, or one made here."""
    if named := os.environ.get("PACELINE_E2E_AGENT_FILES"):
        return named
    if shutil.which("ctr") is None:
        return "none"
    return _imported(AGENT_FILES, tmp_path_factory.mktemp("files") / "agent.tar", images.make_agent)


def _imported(name: str, archive: Path, make: Callable[[str, Path], None]) -> str:
    make(name, archive)
    subprocess.run(["ctr", "-n", "k8s.io", "images", "import", archive], check=True)
    archive.unlink()
    return name


@pytest.fixture
def operator_with_agents(
    shift: Shift, image: str, agent_files: str, operator_home: Path
) -> Iterator[OperatorProcess]:
    """An operator whose replicas get their agents from images, as on nodes that run something."""
    named = ("--agent-image", image, "--agent-files", agent_files)
    with shift.of(*named, "--home", str(operator_home)) as made:
        yield made


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    if os.environ.get("KUBECONFIG"):
        real_clusters.clear()
