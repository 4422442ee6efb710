"""Nodes that a study has for itself."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest
from support import operator_scenes
from support.kubelets import node
from support.memory_clusters import MemoryCluster

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clusters import ClusterError
from paceline.errors import EngineError
from paceline.model.jobs.job_specs import Host, JobSpec
from paceline.services.cluster import node_labels


def spec(hosts: int) -> JobSpec:
    named = tuple(Host(name=f"host-{index}") for index in range(hosts))
    return dataclasses.replace(operator_scenes.job(), hosts=named)


def held(cluster: MemoryCluster) -> dict[str, str]:
    found = cluster.of_kind(kinds.NODES)
    return {
        each["metadata"]["name"]: each["metadata"]["labels"][node_labels.KEY]
        for each in found.values()
        if node_labels.KEY in (each["metadata"].get("labels") or {})
    }


@pytest.fixture
def cluster() -> MemoryCluster:
    made = MemoryCluster()

    async def fill() -> None:
        for each in (node("n0"), node("n1"), {**node("n2"), "spec": {"unschedulable": True}}, node("n3")):
            await made.create(kinds.NODES, each)

    asyncio.run(fill())
    return made


def lend(cluster: MemoryCluster, hosts: int, study: str = "scenes") -> JobSpec:
    held_by = node_labels.holder("default", study)
    return asyncio.run(node_labels.lend(cluster, "default", spec(hosts), held_by))


def test_a_job_is_confined_to_as_many_nodes_as_it_names_hosts(cluster: MemoryCluster) -> None:
    confined = lend(cluster, 2)
    assert confined.placement.node_selector == {node_labels.KEY: "scenes.default"}
    assert held(cluster) == {"n0": "scenes.default", "n1": "scenes.default"}


def test_the_next_variant_has_its_own_number_and_no_more(cluster: MemoryCluster) -> None:
    lend(cluster, 3)
    lend(cluster, 1)
    assert held(cluster) == {"n0": "scenes.default"}


def test_nodes_of_another_study_are_left_alone(cluster: MemoryCluster) -> None:
    lend(cluster, 2, "others")
    with pytest.raises(EngineError, match=r"names 2 hosts, and 1 nodes are open to it, 2 more are held"):
        lend(cluster, 2)
    lend(cluster, 1)
    assert held(cluster) == {"n0": "others.default", "n1": "others.default", "n3": "scenes.default"}


def test_they_are_given_back(cluster: MemoryCluster) -> None:
    lend(cluster, 2, "others")
    lend(cluster, 1)
    asyncio.run(node_labels.give_back(cluster, "scenes.default"))
    assert set(held(cluster).values()) == {"others.default"}


def test_who_may_not_label_nodes_is_told_what_to_do(cluster: MemoryCluster) -> None:
    def deny(verb: str, plural: str, name: str) -> None:
        if (verb, plural) == ("patch", "nodes"):
            raise ClusterError(f"{plural} {name} is forbidden", code=403, reason="Forbidden")

    cluster.trouble = deny
    with pytest.raises(ClusterError, match="n0 is forbidden") as caught:
        lend(cluster, 1)
    assert "leave spec.hosts out" in (caught.value.hint or "")


def test_the_value_of_the_label_is_one_that_the_api_takes() -> None:
    assert node_labels.holder("n" * 63, "s" * 60) == "s" * 60 + ".nn"
    assert node_labels.holder("default", "s" * 62) == "s" * 62
