"""Replicas on a real node that get other cores and memory while they run."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from support.real_clusters import (
    NAMESPACE,
    OperatorProcess,
    get,
    kubectl,
    objects,
    pods,
    status,
    submit,
    until,
    until_phase,
)  # fmt: skip

from paceline.control.resizings import Resize
from paceline.engines.kubernetes import kinds
from paceline.errors import Conflict, EngineError
from paceline.model.jobs.job_specs import CpuPolicy, JobSpec, RoleSpec
from paceline.model.jobs.placements import PodPlacement
from paceline.model.jobs.runs import NOT_RESIZED
from paceline.model.roles import Role
from paceline.services.cluster.jobs import ClusterJobs
from paceline.surfaces import composition

MIB = 1 << 20
#: Busybox and nothing else; the nodes of ../shared/ground have it.
BUSYBOX = "localhost/work:1"
HOLLOW = {"paceline.dev/hollow": "true"}
NAME = "sized"


@pytest.fixture(scope="module", autouse=True)
def _resizes(installed: None) -> None:
    if "pods/resize" not in kubectl("get", "--raw", "/api/v1"):
        pytest.skip("this Kubernetes does not resize pods that run")


@pytest.fixture
def jobs() -> Iterator[ClusterJobs]:
    with composition.opened_cluster(namespace=NAMESPACE) as made:
        yield made


def real_node() -> str:
    """Return the name of a node that runs something, or skip the test."""
    names = [
        each["metadata"]["name"]
        for each in objects(kinds.NODES)
        if "paceline.dev/hollow" not in each["metadata"]["labels"]
    ]
    if not names:
        pytest.skip("no node here runs anything")
    return names[0]


def sized_job(where: dict[str, str], policy: CpuPolicy = CpuPolicy.SHARED, cores: float = 0.1) -> JobSpec:
    worker = RoleSpec(role=Role.WORKER, cpu_cores=cores, cpu_policy=policy, memory_bytes=64 * MIB)
    cores_of_ps = None if policy is CpuPolicy.EXCLUSIVE else 0.1
    ps = RoleSpec(role=Role.PS, cpu_cores=cores_of_ps, memory_bytes=64 * MIB)
    return JobSpec(
        name=NAME,
        image=BUSYBOX,
        command=("sleep", "3600"),
        roles=(ps, worker),
        placement=PodPlacement(node_selector=where),
        termination_grace_seconds=1.0,
    )


def here() -> dict[str, str]:
    return {"kubernetes.io/hostname": real_node()}


def pod(replica: str) -> dict[str, Any]:
    (found,) = (each for each in pods(NAME) if each["metadata"]["name"].startswith(f"{NAME}-{replica}-"))
    return found


def asked_limits(pod: dict[str, Any]) -> dict[str, str]:
    return dict(pod["spec"]["containers"][0]["resources"]["limits"])


def limits(replica: str) -> dict[str, str]:
    """Return what the kubelet says that a replica may take."""
    (container,) = pod(replica)["status"]["containerStatuses"]
    return dict(container["resources"]["limits"])


def quota(replica: str) -> int:
    """Return the microseconds of CPU time in 100 ms that the kernel lets a replica take."""
    path = (
        "cpu.max" if "cgroup.controllers" in shell(replica, "ls /sys/fs/cgroup") else "cpu/cpu.cfs_quota_us"
    )
    return int(shell(replica, f"cat /sys/fs/cgroup/{path}").split()[0])


def shell(replica: str, command: str) -> str:
    name = pod(replica)["metadata"]["name"]
    return kubectl("exec", "-n", NAMESPACE, name, "-c", "training", "--", "sh", "-c", command)


def restarts() -> list[int]:
    return [each["status"]["containerStatuses"][0]["restartCount"] for each in pods(NAME)]


def spec() -> dict[str, Any]:
    return dict((get(kinds.TRAINING_JOBS, NAME) or {})["spec"])


def running(job: JobSpec) -> None:
    submit(job)
    until_phase(NAME, "running", 900.0)


def said(jobs: ClusterJobs, kind: str) -> list[str]:
    return [event.message for _, event in jobs.events(NAME) if event.kind == kind]


@pytest.mark.timeout(3600)
def test_a_pod_gets_more_for_good_and_for_a_time_and_does_not_restart(
    operator_with_agents: OperatorProcess, jobs: ClusterJobs
) -> None:
    running(sized_job(here()))
    assert pod("ps-0")["status"]["qosClass"] == "Burstable"
    jobs.resize(NAME, Resize(target="ps-0", cpu_cores=0.2, memory_bytes=96 * MIB))
    assert limits("ps-0") == {"cpu": "200m", "memory": "96Mi"}
    assert limits("worker-0") == {"cpu": "100m", "memory": "64Mi"}
    until(lambda: quota("ps-0") == 20_000, lambda: quota("ps-0"))
    assert spec()["overrides"] == {"ps-0": {"cpu": "200m", "memory": "96Mi"}}
    assert jobs.get(NAME).spec.overrides
    until(lambda: said(jobs, "resized"), lambda: jobs.events(NAME))
    assert "ps-0 has 200m CPU (had 100m CPU)" in said(jobs, "resized")[0]

    jobs.resize(NAME, Resize(target="worker", cpu_cores=0.15), seconds=1.0)
    # It ends by itself, whatever becomes of the operator and of who asked for it.
    operator_with_agents.kill()
    operator_with_agents.start()
    until(lambda: limits("worker-0")["cpu"] == "100m", lambda: limits("worker-0"))
    assert limits("ps-0")["cpu"] == "200m"
    assert restarts() == [0, 0]
    assert status(NAME)["phase"] == "running"

    # What is launched again has what it was resized to.
    kubectl("delete", "pod", pod("ps-0")["metadata"]["name"], "-n", NAMESPACE, "--grace-period=0", "--force")
    until(lambda: len(pods(NAME)) == 2 and status(NAME).get("ready") == "2/2", lambda: status(NAME), 900.0)
    assert asked_limits(pod("ps-0")) == {"cpu": "200m", "memory": "96Mi"}


@pytest.mark.timeout(3600)
def test_what_a_cluster_cannot_give_is_said_and_nothing_changes(
    operator_with_agents: OperatorProcess, jobs: ClusterJobs
) -> None:
    node = real_node()
    running(sized_job(here()))
    before = spec()
    with pytest.raises(EngineError, match=f"ps-0 cannot have 64 CPU: node {node} has"):
        jobs.resize(NAME, Resize(target="ps-0", cpu_cores=64.0))
    with pytest.raises(Conflict, match="at least"):
        jobs.resize(NAME, Resize(target="ps-0", memory_bytes=1024))
    forbid = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": NAMESPACE},
        "spec": {"hard": {"limits.cpu": "250m"}},
    }
    kubectl("apply", "-f", "-", given=json.dumps(forbid))
    try:
        until(
            lambda: (get(kinds.QUOTAS, "small") or {}).get("status", {}).get("used"),
            lambda: get(kinds.QUOTAS, "small"),
        )
        for seconds in (None, 600.0):
            with pytest.raises(EngineError, match=r"ps-0 keeps what it has: .*exceeded quota: small"):
                jobs.resize(NAME, Resize(target="ps-0", cpu_cores=0.2), seconds=seconds)
    finally:
        kubectl("delete", "resourcequota", "small", "-n", NAMESPACE)
    assert spec() == before
    # The quota is gone, and what was refused can be had now.
    jobs.resize(NAME, Resize(target="ps-0", cpu_cores=0.2))
    assert limits("ps-0")["cpu"] == "200m"


@pytest.mark.timeout(3600)
def test_exclusive_cores_are_not_changed(operator_with_agents: OperatorProcess, jobs: ClusterJobs) -> None:
    # One core of the node is the system's, so nothing else fits beside it.
    running(sized_job(here(), CpuPolicy.EXCLUSIVE, cores=1.0))
    with pytest.raises(Conflict, match="the cores of its worker are exclusive"):
        jobs.resize(NAME, Resize(target="worker-0", cpu_cores=0.5))
    with pytest.raises(EngineError, match="gives out cores for good"):
        jobs.resize(NAME, Resize(target="worker-0", memory_bytes=96 * MIB))
    assert limits("worker-0") == {"cpu": "1", "memory": "64Mi"}


def test_many_are_resized_at_once_and_by_one_at_a_time(operator: OperatorProcess, jobs: ClusterJobs) -> None:
    roles = (
        RoleSpec(role=Role.PS, replicas=4, cpu_cores=1.0, memory_bytes=256 * MIB),
        RoleSpec(role=Role.WORKER, replicas=16, cpu_cores=1.0, memory_bytes=256 * MIB),
    )
    placed = PodPlacement(node_selector=HOLLOW)
    running(JobSpec(name=NAME, image=BUSYBOX, command=("train",), roles=roles, placement=placed))
    over = threading.Event()
    say_what_pods_have()
    kubelet = threading.Thread(target=say_it_again_and_again, args=(over,))
    kubelet.start()
    try:
        jobs.resize(NAME, Resize(target="ps", cpu_cores=2.0))
        jobs.resize(NAME, Resize(target="worker-3", cpu_cores=1.5))
    finally:
        over.set()
        kubelet.join()
    has = {each["metadata"]["name"]: asked_limits(each)["cpu"] for each in pods(NAME)}
    assert [has[f"{NAME}-ps-{index}-1"] for index in range(4)] == ["2"] * 4
    assert {name for name, cpu in has.items() if cpu == "1500m"} == {f"{NAME}-worker-3-1"}
    assert not said(jobs, NOT_RESIZED)
    elsewhere = f"paceline.dev/changing={time.time() + 600:.0f} elsewhere/1 probed"
    kubectl("annotate", "tj", NAME, "-n", NAMESPACE, elsewhere)
    with pytest.raises(Conflict, match="is being probed from elsewhere/1"):
        jobs.resize(NAME, Resize(target="ps", cpu_cores=1.0))


def say_it_again_and_again(over: threading.Event) -> None:
    while not over.wait(0.2):
        say_what_pods_have()


def say_what_pods_have() -> None:
    """Say in the status of pods what their containers have, as a kubelet does; hollow nodes do not.

    Without it the API server takes their nodes for ones that cannot resize pods.
    """
    for each in pods(NAME):
        (container,) = each["status"]["containerStatuses"]
        asked = each["spec"]["containers"][0]["resources"]
        if container.get("resources") != asked:
            said = {"status": {"containerStatuses": [{**container, "resources": asked}]}}
            patch = ("--subresource=status", "--type=merge", "-p", json.dumps(said))
            kubectl("patch", "pod", each["metadata"]["name"], "-n", NAMESPACE, *patch)
