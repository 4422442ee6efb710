"""The operator's shipped rights: enough for all that it does, and none of them too many."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from support.clusters import apply
from support.real_clusters import (
    NAMESPACE,
    OperatorProcess,
    Shift,
    change,
    get,
    kubectl,
    objects,
    remove,
    status,
    submit,
    until,
)  # fmt: skip
from support.recorded import awaited
from support.rights import Right, rights, roles, without

from paceline.engines.kubernetes import kinds, leases
from paceline.engines.kubernetes.clients import RealCluster
from paceline.engines.kubernetes.clusters import Cluster, ClusterError
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.placements import PodPlacement
from paceline.model.roles import Role
from paceline.rendering import pods, volcano
from paceline.rendering.surroundings import Surroundings
from paceline.sources import agents

DEPLOY = Path(__file__).parents[2] / "deploy" / "kustomize"
SHIPPED = list(yaml.safe_load_all((DEPLOY / "rbac.yaml").read_text()))
QUEUES = list(yaml.safe_load_all((DEPLOY / "queues.yaml").read_text()))


#: What hollow nodes have not, or a cluster without Kueue and Volcano, asked for as the operator does; and
#: what it does to jobs that are scaled by what probes say, which hollow replicas do not answer.
ASKED: dict[Right, Callable[[Cluster], Awaitable[object]]] = {
    Right("patch", "trainingjobs"): lambda it: it.patch(kinds.TRAINING_JOBS, "no-such-job", NAMESPACE, {}),
    Right("get", "pods/proxy"): lambda it: it.read(
        f"{agents.address(NAMESPACE, 'no-such-pod')}/spool", limit_bytes=1000
    ),
    Right("get", "namespaces"): lambda it: it.get(kinds.NAMESPACES, NAMESPACE),
    Right("get", "secrets"): lambda it: it.get(kinds.SECRETS, "no-such-secret", NAMESPACE),
    Right("get", "pods/log"): lambda it: it.logs("no-such-pod", NAMESPACE, pods.TRAINING, last_bytes=1000),
    Right("get", "localqueues"): lambda it: it.get(kinds.LOCAL_QUEUES, "no-such-queue", NAMESPACE),
    Right("get", "queues"): lambda it: it.get(kinds.VOLCANO_QUEUES, "no-such-queue"),
    Right("patch", "pods"): lambda it: it.patch(kinds.PODS, "no-such-pod", NAMESPACE, {}),
    Right("delete", "workloads"): lambda it: it.delete(kinds.WORKLOADS, "no-such-workload", NAMESPACE),
    Right("get", "podgroups"): lambda it: it.get(kinds.POD_GROUPS, "no-such-group", NAMESPACE),
    Right("delete", "podgroups"): lambda it: it.delete(kinds.POD_GROUPS, "no-such-group", NAMESPACE),
    Right("create", "podgroups"): lambda it: it.create(
        kinds.POD_GROUPS, volcano.pod_group(job("no-such-job"), Surroundings(namespace=NAMESPACE), "queue")
    ),
}


class Step(NamedTuple):
    """Something that is done to the cluster, and what is to come of it."""

    do: Callable[[], object]
    holds: Callable[[], Any]


def job(name: str, **more: Any) -> JobSpec:
    return JobSpec(
        name=name,
        image="localhost/work:1",
        command=("sleep", "3600"),
        roles=(RoleSpec(role=Role.WORKER, cpu_cores=1.0, memory_bytes=1 << 28),),
        placement=PodPlacement(node_selector={"paceline.dev/hollow": "true"}),
        termination_grace_seconds=1.0,
        **more,
    )


def phase(name: str) -> Any:
    return status(name).get("phase")


def lose(pod: str) -> None:
    kubectl("delete", "pod", pod, "-n", NAMESPACE, "--grace-period=0", "--force")


def command_told(name: str) -> Any:
    config_map = get(kinds.CONFIG_MAPS, name)
    return config_map and json.loads(config_map["data"]["worker.json"])["command"]


def asked_cores(pod: str) -> Any:
    found = get(kinds.PODS, pod)
    return found and found["spec"]["containers"][0]["resources"]["limits"]["cpu"]


def say_what_it_has(pod: str) -> None:
    """Say in the status of a pod what it has, as a kubelet does; hollow nodes do not, and are not resized."""
    until(lambda: (get(kinds.PODS, pod) or {}).get("status", {}).get("containerStatuses"), lambda: pod)
    found = get(kinds.PODS, pod)
    assert found is not None
    (container,) = found["status"]["containerStatuses"]
    resources = found["spec"]["containers"][0]["resources"]
    said = {"status": {"containerStatuses": [{**container, "resources": resources}]}}
    kubectl(
        "patch", "pod", pod, "-n", NAMESPACE, "--subresource=status", "--type=merge", "-p", json.dumps(said)
    )


def is_renewed(where: str) -> bool:
    lease = get(kinds.LEASES, leases.OPERATOR, where)
    return lease is not None and lease["spec"]["renewTime"] != lease["spec"]["acquireTime"]


def is_told(name: str) -> bool:
    return any(
        event["involvedObject"]["name"] == name and event["reason"] == "Running"
        for event in objects(kinds.EVENTS)
    )


def scenario(operator: OperatorProcess, name: str, lease_in: str = "paceline") -> Iterator[Step]:
    """All that the operator does with the API, once. What it learns to do some day belongs here too."""
    attempts = [f"{name}-worker-0-{attempt}" for attempt in range(5)]
    doomed = f"{name}-doomed"

    def begin() -> None:
        remove(kinds.LEASES, leases.OPERATOR, lease_in)
        submit(job(name))
        # It fails at once, and is removed.
        submit(job(doomed, active_deadline_seconds=0.1, ttl_after_finished_seconds=0.1))
        operator.start()

    yield Step(begin, lambda: phase(name) == "running" and get(kinds.TRAINING_JOBS, doomed) is None)

    yield Step(lambda: lose(attempts[1]), lambda: get(kinds.PODS, attempts[2]))

    def resize() -> None:
        say_what_it_has(attempts[2])
        change(name, overrides={"worker-0": {"cpu": 2}})

    yield Step(resize, lambda: asked_cores(attempts[2]) == "2")
    yield Step(
        lambda: change(name, suspend=True),
        lambda: phase(name) == "stopped" and not get(kinds.PODS, attempts[2]),
    )
    # What it is to do has changed meanwhile, so its config is written anew.
    other = ["sleep", "1800"]
    yield Step(
        lambda: change(name, suspend=False, command=other),
        lambda: phase(name) == "running" and command_told(name) == other and is_renewed(lease_in),
    )

    def begin_again() -> None:
        operator.stop()
        lose(attempts[3])
        operator.start()

    # The next operator knows only what is in the cluster.
    yield Step(begin_again, lambda: get(kinds.PODS, attempts[4]))
    # Each event is told once, so one that was refused for want of a right is not told later.
    yield Step(lambda: None, lambda: is_told(name))


@pytest.fixture
def idle(shift: Shift, operator_kubeconfig: Path, tmp_path: Path) -> Iterator[OperatorProcess]:
    """An operator that is not started yet; the shipped rights are back afterwards."""
    shift.end()
    made = OperatorProcess(operator_kubeconfig, tmp_path / "operator.log", "--agent-image", "none")
    try:
        yield made
    finally:
        if made.is_alive():
            made.stop()
        apply(SHIPPED)


def play(operator: OperatorProcess, steps: Iterator[Step]) -> None:
    for step in steps:
        step.do()
        until(step.holds, lambda: operator.log.read_text()[-3000:])
    assert operator.denied() == set()


def test_the_shipped_rights_are_enough(idle: OperatorProcess) -> None:
    play(idle, scenario(idle, "clicks"))


@pytest.fixture
def confined(idle: OperatorProcess, tmp_path: Path) -> Iterator[OperatorProcess]:
    """An operator with the rights that it is shipped with for one namespace, and none beyond."""
    rules = [rule for role in roles(SHIPPED) for rule in role["rules"]]
    inside = [rule for rule in rules if rule["resources"] not in (["nodes"], ["resourcequotas"])]
    within_one = role_in_namespace(inside)
    kubectl("delete", "clusterrolebinding", "paceline-operator")
    apply(within_one)
    made = OperatorProcess.like(idle, tmp_path / "confined.log", f"--namespace={NAMESPACE}")
    try:
        yield made
    finally:
        if made.is_alive():
            made.stop()
        kubectl("delete", "-f", "-", given=yaml.safe_dump_all(within_one))


def role_in_namespace(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    api, metadata = "rbac.authorization.k8s.io", {"name": "paceline-operator", "namespace": NAMESPACE}
    subject = {"kind": "ServiceAccount", "name": "paceline-operator", "namespace": "paceline"}
    bound = {"apiGroup": api, "kind": "Role", "name": "paceline-operator"}
    return [
        {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        {"apiVersion": f"{api}/v1", "kind": "RoleBinding", "metadata": metadata, "roleRef": bound,
         "subjects": [subject]},
    ]  # fmt: skip


def test_within_one_namespace_rights_in_it_are_enough(confined: OperatorProcess) -> None:
    play(confined, scenario(confined, "clicks", lease_in=NAMESPACE))


@pytest.mark.parametrize("right", [each for each in rights(SHIPPED) if each not in ASKED], ids=str)
def test_each_right_is_needed(idle: OperatorProcess, right: Right) -> None:
    """Without it the API refuses something, and with it back what failed comes about after all."""
    apply(roles(without(right, SHIPPED)))
    for step in scenario(idle, f"no-{right}"):
        step.do()
        until(lambda: idle.denied() or step.holds(), lambda: idle.log.read_text()[-3000:])  # noqa: B023
        if idle.denied():
            break
    assert idle.denied() == {right}, "nothing that the operator does needs it"
    apply(roles(SHIPPED))
    until(step.holds, lambda: idle.log.read_text()[-3000:])


def refused() -> set[Right]:
    """Return the rights among those asked for that the operator has not."""

    async def ask() -> set[Right]:
        cluster = RealCluster()
        missing = set()
        try:
            for right, question in ASKED.items():
                try:
                    await question(cluster)
                except ClusterError as error:
                    if error.code == 403:
                        missing.add(right)
        finally:
            await cluster.close()
        return missing

    return awaited(ask())


@pytest.mark.parametrize("right", ASKED, ids=str)
def test_keeping_and_queues_need_their_rights(
    operator_kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, right: Right
) -> None:
    try:
        apply([*without(right, SHIPPED), *without(right, QUEUES)])
        with monkeypatch.context() as patched:
            patched.setenv("KUBECONFIG", str(operator_kubeconfig))
            until(lambda: refused() == {right}, refused)
    finally:
        apply(SHIPPED)
        kubectl("delete", "-f", "-", "--ignore-not-found", given=yaml.safe_dump_all(QUEUES))


def test_every_optional_right_is_looked_at() -> None:
    assert set(rights(QUEUES)) <= ASKED.keys()
