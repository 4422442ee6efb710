"""A release of the chart from its installation to its end, by Helm itself, while jobs run."""

from __future__ import annotations

import dataclasses
import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import clusters, images
from support.real_clusters import Shift, kubectl, new_namespace, until

from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.roles import Role
from paceline.specs.job_file import custom_resources

ROOT = Path(__file__).parents[2]
CHART = "deploy/helm/paceline"
REPOSITORY = "localhost/paceline"
BUSYBOX = "localhost/work:1"
MINUTES = 60.0


@dataclasses.dataclass(frozen=True)
class Version:
    """A commit of Paceline: its chart, and the tag of its image, which is on the node."""

    chart: Path
    tag: str


def helm(*arguments: str) -> str:
    """Return what Helm prints."""
    program = shutil.which("helm")
    if program is None:
        pytest.skip("no helm here (../shared/ground/prep.sh helm builds it)")
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=15 * MINUTES, check=False
    )
    assert done.returncode == 0, f"helm {' '.join(arguments)}: {done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def versions(only_real_nodes: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Version, Version]:
    """The previous commit, and what is here."""
    helm("version")
    if shutil.which("ctr") is None:
        pytest.skip("no containerd here, into which an image could be imported")
    if not images.debian().exists():
        pytest.skip("tests/kubernetes/fetch-debian has fetched nothing")
    folder = tmp_path_factory.mktemp("previous")
    archive = subprocess.run(
        ["git", "archive", "HEAD~1", "src", CHART], cwd=ROOT, capture_output=True, check=False
    )
    if archive.returncode:
        pytest.skip(f"the previous commit is not here: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    made = []
    for root, tag in ((folder, "previous"), (ROOT, "present")):
        out = folder / f"{tag}.tar"
        images.make(f"{REPOSITORY}:{tag}", out, extras=("kubernetes",), source=root / "src")
        subprocess.run(["ctr", "-n", "k8s.io", "images", "import", out], check=True)
        out.unlink()
        made.append(Version(root / CHART, tag))
    return made[0], made[1]


@pytest.fixture
def namespace(
    installed: None, shift: Shift, versions: tuple[Version, Version]
) -> Iterator[Callable[[str], str]]:
    """Give a function that makes a namespace; no other operator acts meanwhile."""
    shift.end()
    names: list[str] = []

    def make(purpose: str) -> str:
        names.append(new_namespace(purpose))
        return names[-1]

    yield make
    for name in names:
        for release in json.loads(helm("list", "-n", name, "-o", "json")):
            helm("uninstall", release["name"], "-n", name, "--wait")
        kubectl("delete", "namespace", name, "--wait=false")


def values(version: Version, *settings: str) -> list[str]:
    """Return the chart of a version and how its image is called here, as arguments of Helm."""
    named = [f"image.repository={REPOSITORY}", f"image.tag={version.tag}", "agentFiles=none", *settings]
    return [str(version.chart), *(f"--set={setting}" for setting in named), "--wait", "--timeout=15m"]


def define(version: Version) -> None:
    """Do what the chart's notes ask for: Helm leaves the definition of a TrainingJob as it is."""
    kubectl("apply", "--server-side", "--force-conflicts", "-f", str(version.chart / "crds"))
    kubectl("wait", "--for=condition=Established", "crd/trainingjobs.paceline.dev", "--timeout=900s")


def submit(name: str, namespace: str) -> None:
    """Make a job that runs until it is deleted, and has no Python in its image."""
    worker = RoleSpec(role=Role.WORKER, replicas=2, memory_bytes=64 << 20)
    command = ("sh", "-c", "while true; do echo tick; sleep 1; done")
    spec = JobSpec(name=name, image=BUSYBOX, command=command, roles=(worker,), termination_grace_seconds=1.0)
    clusters.apply([custom_resources.resource(spec, namespace)])


def phase(name: str, namespace: str) -> str | None:
    status = clusters.found("trainingjob", name, "-n", namespace).get("status", {})
    phase: str | None = status.get("phase")
    return phase


def until_phase(name: str, namespace: str, wanted: str) -> None:
    until(
        lambda: phase(name, namespace) == wanted,
        lambda: kubectl("get", "trainingjobs,pods,events", "-n", namespace, "-o", "wide"),
        15 * MINUTES,
    )


def containers(job: str, namespace: str) -> dict[str, tuple[str, int]]:
    """Return the pods of a job by name: which one each is, and how often its container was restarted."""
    return {
        pod["metadata"]["name"]: (
            pod["metadata"]["uid"],
            sum(each["restartCount"] for each in pod["status"].get("containerStatuses", ())),
        )
        for pod in clusters.objects("pods", "-n", namespace, "-l", f"paceline.dev/job={job}")
    }


def operator_images(namespace: str) -> set[str]:
    """Return the images of the operators of a namespace that are not about to end."""
    label = "app.kubernetes.io/name=paceline-operator"
    return {
        pod["spec"]["containers"][0]["image"]
        for pod in clusters.objects("pods", "-n", namespace, "-l", label)
        if "deletionTimestamp" not in pod["metadata"]
    }


def may_create_pods(account: str, namespace: str) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": account,
            "resourceAttributes": {"verb": "create", "resource": "pods", "namespace": namespace},
        },
    }
    said = kubectl("create", "-f", "-", "-o", "jsonpath={.status.allowed}", given=json.dumps(review))
    return said == "true"


@pytest.mark.timeout(60 * MINUTES)
def test_jobs_go_on_while_a_release_comes_changes_and_goes(
    namespace: Callable[[str], str], versions: tuple[Version, Version]
) -> None:
    previous, present = versions
    here, jobs = namespace("release"), namespace("jobs")
    define(previous)
    helm("install", "e2e", "-n", here, *values(previous))
    submit("ticks", jobs)
    until_phase("ticks", jobs, "running")
    running = containers("ticks", jobs)
    assert len(running) == 2

    define(present)
    helm("upgrade", "e2e", "-n", here, *values(present))
    until(lambda: operator_images(here) == {f"{REPOSITORY}:present"}, lambda: operator_images(here))
    assert containers("ticks", jobs) == running
    helm("test", "e2e", "-n", here, "--timeout=15m")

    helm("rollback", "e2e", "-n", here, "--wait", "--timeout=15m")
    until(lambda: operator_images(here) == {f"{REPOSITORY}:previous"}, lambda: operator_images(here))
    assert containers("ticks", jobs) == running

    helm("uninstall", "e2e", "-n", here, "--wait", "--timeout=15m")
    until(lambda: not operator_images(here), lambda: operator_images(here))
    assert containers("ticks", jobs) == running
    assert phase("ticks", jobs) == "running", "the definition of TrainingJob and its jobs stay"

    helm("install", "e2e", "-n", here, *values(present))
    # It knows the job: a replica that is lost comes back beside its fellow, which goes on.
    lost, stays = sorted(running)
    kubectl("delete", "pod", lost, "-n", jobs, "--grace-period=1")
    until(
        lambda: len(containers("ticks", jobs)) == 2 and phase("ticks", jobs) == "running",
        lambda: kubectl("get", "trainingjobs,pods", "-n", jobs),
        15 * MINUTES,
    )
    assert containers("ticks", jobs)[stays] == running[stays]


@pytest.mark.timeout(60 * MINUTES)
def test_releases_of_two_namespaces_know_nothing_of_each_other(
    namespace: Callable[[str], str], versions: tuple[Version, Version]
) -> None:
    present = versions[1]
    define(present)
    teams = [namespace("team") for _ in range(2)]
    for team in teams:
        helm("install", "paceline", "-n", team, *values(present, "namespaced=true", "replicas=1"))
        submit("ticks", team)
    for team, other in (teams, teams[::-1]):
        until_phase("ticks", team, "running")
        account = f"system:serviceaccount:{team}:paceline-operator"
        assert may_create_pods(account, team)
        assert not may_create_pods(account, other)
    first, second = teams
    running = containers("ticks", second)
    helm("uninstall", "paceline", "-n", first, "--wait", "--timeout=15m")
    submit("late", first)
    submit("late", second)
    until_phase("late", second, "running")
    assert not containers("late", first), "its operator is gone, and no other one takes its place"
    assert containers("ticks", second) == running
    assert containers("ticks", first)
