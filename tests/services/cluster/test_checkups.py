"""What a cluster lets Paceline do: over one in memory."""

from __future__ import annotations

import asyncio
import copy
import json
import time
from typing import Any

import pytest
from support.kubelets import node
from support.memory_clusters import MemoryCluster
from support.operator_scenes import job

from paceline.engines.kubernetes import kinds, leases, times
from paceline.engines.kubernetes.clusters import ClusterError
from paceline.model.explanations.checkups import Check, CheckState
from paceline.model.jobs.job_specs import CpuPolicy, JobSpec, RoleSpec
from paceline.model.jobs.placements import PodPlacement
from paceline.model.roles import Role
from paceline.services.cluster import checkups
from paceline.specs.job_file import custom_resources

NOW = 1_800_000_000.0


def exclusive(cores: float = 2.0, **selector: str) -> JobSpec:
    roles = (RoleSpec(role=Role.WORKER, cpu_cores=cores, cpu_policy=CpuPolicy.EXCLUSIVE),)
    return JobSpec(name="clicks", roles=roles, placement=PodPlacement(node_selector=selector))


def lease(renewed: float, holder: str = "operator-1") -> dict[str, Any]:
    return {
        "metadata": {"name": leases.OPERATOR, "namespace": "paceline"},
        "spec": {"holderIdentity": holder, "renewTime": times.micro_text(renewed)},
    }


class World:
    """A cluster where all is as it should be."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster(time.time)
        self.cluster.pages["/version"] = json.dumps({"gitVersion": "v1.37.2"}).encode()
        groups = [{"name": name} for name in ("apps", "kueue.x-k8s.io", "cilium.io")]
        self.cluster.pages["/apis"] = json.dumps({"groups": groups}).encode()
        self.create(kinds.DEFINITIONS, custom_resources.definition())
        self.create(kinds.LEASES, lease(NOW - 3))
        for name, policy in (("n0", "static"), ("n1", "static")):
            self.add(name, policy)

    def create(self, kind: kinds.ResourceKind, made: dict[str, Any]) -> None:
        asyncio.run(self.cluster.create(kind, made))

    def add(self, name: str, policy: str | None) -> None:
        made = node(name)
        made["metadata"]["labels"] = {"cpu": policy or "unknown"}
        self.create(kinds.NODES, made)
        if policy is not None:
            config = {"cpuManagerPolicy": policy, "reservedSystemCPUs": "0"}
            page = json.dumps({"kubeletconfig": config}).encode()
            self.cluster.pages[f"/api/v1/nodes/{name}/proxy/configz"] = page

    def checks(self, spec: JobSpec | None = None) -> dict[str, Check]:
        with asyncio.Runner() as runner:
            found = checkups.checks(self.cluster, "default", spec, now=NOW, run=runner.run)
            return {each.name: each for each in found}


@pytest.fixture
def world() -> World:
    return World()


def test_all_is_as_it_should_be(world: World) -> None:
    found = world.checks()
    assert {each.state for each in found.values()} == {CheckState.OK}
    assert found["API server"].detail == "Kubernetes v1.37.2"
    assert found["Operator"].detail == "operator-1 in paceline, seen 3 s ago"
    assert found["Nodes"].detail == "2 of 2 Ready, 8 cores"
    assert found["Exclusive cores"].detail == "given by the static CPU manager on n0, n1 (reserved: 0)"
    expected = "Kueue; not there: Prometheus operator, Volcano"
    assert found["Beside it"].detail == expected


def test_it_is_not_known_whether_policies_are_enforced(world: World) -> None:
    assert "which Cilium can enforce" in world.checks()["Job ports"].detail
    world.cluster.pages["/apis"] = json.dumps({"groups": [{"name": "apps"}]}).encode()
    found = world.checks()["Job ports"]
    assert (found.state, "docs/security.md" in (found.advice or "")) == (CheckState.MISSING, True)
    del world.cluster.pages["/apis"]
    assert world.checks()["Job ports"].detail.startswith("not known: ")


def test_nothing_more_is_asked_of_a_server_that_does_not_answer(world: World) -> None:
    del world.cluster.pages["/version"]
    found = world.checks()
    assert [each.state for each in found.values()] == [CheckState.FAILED]
    world.cluster.pages["/version"] = b"<html>"
    assert "no API server" in world.checks()["API server"].detail


def test_the_cluster_does_not_know_the_kind(world: World) -> None:
    world.cluster.remove(kinds.DEFINITIONS, "trainingjobs.paceline.dev", "")
    check = world.checks()["TrainingJob"]
    assert (check.state, check.advice) == (CheckState.FAILED, "paceline schema --crd | kubectl apply -f -")


def test_the_kind_is_of_another_version(world: World) -> None:
    old = copy.deepcopy(custom_resources.definition())
    schema = old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    del schema["properties"]["spec"]["properties"]["scheduling"]
    world.cluster.change(kinds.DEFINITIONS, "trainingjobs.paceline.dev", "", spec=old["spec"])
    check = world.checks()["TrainingJob"]
    assert check.state is CheckState.MISSING
    assert "it lacks spec.scheduling" in check.detail


def refuse(world: World, *plurals: str) -> None:
    def trouble(verb: str, plural: str, name: str) -> None:
        if any(each in f"{plural} {name}" for each in plurals):
            raise ClusterError(f"{plural} cannot be read: it is forbidden", code=403, reason="Forbidden")

    world.cluster.trouble = trouble


def test_what_may_not_be_looked_at_is_not_known(world: World) -> None:
    world.cluster.pages["/apis/paceline.dev/v1alpha1"] = b"{}"
    refuse(world, "customresourcedefinitions", "leases", "nodes")
    found = world.checks()
    assert found["TrainingJob"].state is CheckState.OK
    assert "not known" in found["TrainingJob"].detail
    for name in ("Operator", "Nodes", "Exclusive cores"):
        assert found[name].state is CheckState.MISSING
        assert found[name].detail.startswith("not known"), name


@pytest.mark.parametrize(("renewed", "holder"), [(NOW - 300, "operator-1"), (NOW - 1, "")])
def test_no_operator_holds_the_lease(world: World, renewed: float, holder: str) -> None:
    old = world.cluster.of_kind(kinds.LEASES)[leases.OPERATOR]
    changed = {**lease(renewed, holder), "metadata": old["metadata"]}
    world.cluster.change(kinds.LEASES, leases.OPERATOR, "paceline", **changed)
    check = world.checks()["Operator"]
    assert check.state is CheckState.FAILED
    assert "no operator holds the lease paceline/paceline-operator" in check.detail
    world.cluster.remove(kinds.LEASES, leases.OPERATOR, "paceline")
    assert world.checks()["Operator"].detail == "there is none"


def test_rights_are_what_the_api_server_says(world: World) -> None:
    world.cluster.denied = {("get", "nodes/proxy")}
    check = world.checks()["Rights"]
    assert check.state is CheckState.MISSING
    assert check.detail == "in default: no get nodes/proxy (doctor on exclusive cores)"
    world.cluster.denied |= {("create", "trainingjobs")}
    check = world.checks()["Rights"]
    assert (check.state, "no create trainingjobs (submit)" in check.detail) == (CheckState.FAILED, True)


def test_nodes_that_do_not_answer_or_take_no_pods(world: World) -> None:
    for name in ("n0", "n1"):
        world.cluster.change(kinds.NODES, name, "", spec={"unschedulable": True})
    check = world.checks()["Nodes"]
    assert (check.state, "cordoned: n0, n1" in check.detail) == (CheckState.FAILED, True)


def test_no_kubelet_gives_exclusive_cores(world: World) -> None:
    for name in ("n0", "n1"):
        world.cluster.pages[f"/api/v1/nodes/{name}/proxy/configz"] = b'{"kubeletconfig": {}}'
    check = world.checks(exclusive())["Exclusive cores"]
    assert check.state is CheckState.FAILED
    assert check.detail == "never given on n0, n1: the CPU manager's policy is none"
    assert "cpuManagerPolicy: static" in check.advice
    # Who does not ask for them misses nothing that he needs.
    assert world.checks()["Exclusive cores"].state is CheckState.MISSING
    assert world.checks(job())["Exclusive cores"].detail == "clicks asks for none (cpu_policy: exclusive)"


def test_some_kubelets_give_them_and_some_do_not(world: World) -> None:
    world.add("n2", "none")
    check = world.checks(exclusive())["Exclusive cores"]
    assert check.state is CheckState.MISSING
    assert "spec.placement.node_selector" in check.advice
    assert world.checks(exclusive(cpu="static"))["Exclusive cores"].state is CheckState.OK
    assert world.checks(exclusive(cpu="none"))["Exclusive cores"].state is CheckState.FAILED
    assert "no node lets" in world.checks(exclusive(cpu="other"))["Exclusive cores"].detail


def test_a_replica_takes_more_cores_than_a_node_gives(world: World) -> None:
    check = world.checks(exclusive(cores=5.0))["Exclusive cores"]
    assert check.state is CheckState.FAILED
    assert "a replica asks for 5 cores, and pods get at most 4" in check.detail


def test_a_kubelet_that_may_not_be_asked_is_not_known(world: World) -> None:
    world.add("n2", None)
    check = world.checks(exclusive(cpu="unknown"))["Exclusive cores"]
    assert (check.state, check.detail) == (CheckState.MISSING, "not known of n2, because not found")
    refuse(world, "proxy/configz")
    check = world.checks(exclusive())["Exclusive cores"]
    assert (check.state, check.detail) == (
        CheckState.MISSING, "not known of n0, n1, n2, because it is forbidden",
    )  # fmt: skip


def test_only_so_many_kubelets_are_asked(world: World) -> None:
    for number in range(60):
        world.add(f"m{number}", "static")
    assert "12 more nodes were not asked" in world.checks()["Exclusive cores"].detail
