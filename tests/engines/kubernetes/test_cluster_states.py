"""What a cluster has and what is taken, from objects as the API gives them."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from paceline.engines.kubernetes import cluster_states
from paceline.errors import InvalidInput, NotFound
from paceline.model.jobs.nodes import Quota, Resources, Taint

MIB = 1 << 20


def node(name: str = "n1", **more: Any) -> dict[str, Any]:
    allocatable = {"cpu": "7910m", "memory": "16001Mi", "pods": "110", "nvidia.com/gpu": "2"}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {"zone": "a"}},
        "spec": more,
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def container(cpu: str | int = 0, memory: str | int = 0, **more: Any) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu, "memory": memory}}, **more}


def pod(*containers: dict[str, Any], phase: str = "Running", host: str | None = "n1", **more: Any) -> dict:
    spec = {"nodeName": host, "containers": list(containers), **more}
    return {"kind": "Pod", "metadata": {"name": "p"}, "spec": spec, "status": {"phase": phase}}


def test_a_node_and_what_is_taken_of_it() -> None:
    objects = [
        node(unschedulable=True, taints=[{"key": "gpu", "effect": "NoSchedule"}]),
        pod(container("1500m", "1Gi"), container("0.1", "512Mi")),
        pod(container("250m"), phase="Pending"),
        pod(container(4), phase="Succeeded"),
        pod(container(4), host=None),
    ]
    (found,) = cluster_states.read(objects, "default").nodes
    assert found.allocatable == Resources(millicores=7910, memory_bytes=16001 * MIB, gpus=2, pods=110)
    assert found.used == Resources(millicores=1850, memory_bytes=1536 * MIB, pods=2)
    assert found.free.millicores == 6060
    assert found.taints == (Taint(key="gpu", effect="NoSchedule"),)
    assert (found.is_ready, found.is_cordoned, found.labels) == (True, True, {"zone": "a"})


def test_pods_that_wait_for_cpu() -> None:
    def waiting(name: str, message: str | None, host: str | None = None, status: str = "False") -> dict:
        condition = {"type": "PodScheduled", "status": status, "message": message}
        each = pod(container(4), phase="Pending", host=host)
        metadata = {"name": name, "namespace": "ads"}
        return {**each, "metadata": metadata, "status": {"phase": "Pending", "conditions": [condition]}}

    short = "0/3 nodes are available: 1 Insufficient memory, 2 Insufficient cpu."
    objects = [
        waiting("short", short),
        waiting("other", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."),
        waiting("unsaid", None),
        waiting("bound", short, host="n1"),
        waiting("scheduled", short, status="True"),
        {**pod(container(4), host=None), "status": {"phase": "Pending"}},
    ]
    assert cluster_states.read(objects, "default").short_of_cpu == ("ads/short",)


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_node_that_does_not_answer(status: str) -> None:
    each = node()
    each["status"]["conditions"] = [{"type": "Ready", "status": status}]
    (found,) = cluster_states.read([each], "default").nodes
    assert not found.is_ready


@pytest.mark.parametrize(
    ("inits", "millicores"),
    [
        ([container(3)], 3000),  # one after the other, before the containers: the larger of both
        ([container(1)], 2000),
        ([container(1, restartPolicy="Always")], 3000),  # a sidecar: beside them
        ([container(1, restartPolicy="Always"), container(3)], 4000),
        ([container(3), container(1, restartPolicy="Always")], 3000),
    ],
)
def test_init_containers(inits: list[dict[str, Any]], millicores: int) -> None:
    assert cluster_states.requests(pod(container(2), initContainers=inits)).millicores == millicores


def test_overhead_of_a_runtime_counts() -> None:
    assert cluster_states.requests(pod(container(2), overhead={"cpu": "250m"})).millicores == 2250


def test_quotas_of_the_namespace() -> None:
    def quota(name: str, namespace: str, hard: dict, used: dict, **spec: Any) -> dict[str, Any]:
        metadata = {"name": name, "namespace": namespace}
        status = {"hard": hard, "used": used}
        return {"kind": "ResourceQuota", "metadata": metadata, "spec": spec, "status": status}

    objects = [
        quota(
            "team", "ads", {"requests.cpu": "10", "limits.cpu": "12", "count/pods": "5"}, {"limits.cpu": 9}
        ),
        quota("other", "search", {"cpu": "1"}, {}),
        quota("best effort", "ads", {"pods": "0"}, {}, scopes=["BestEffort"]),
        quota("gpus", "ads", {"requests.nvidia.com/gpu": "4"}, {"requests.nvidia.com/gpu": "3"}),
    ]
    assert cluster_states.read(objects, "ads").quotas == (
        Quota(name="team", left={"millicores": 3000, "pods": 5}),
        Quota(name="gpus", left={"gpus": 1}),
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "cannot be read as JSON"),
        ("[1, 2]", "no list of Kubernetes objects"),
        ('{"items": [3]}', "no list of Kubernetes objects"),
        ('{"items": [{"kind": "Node", "metadata": 7}]}', "Node: there is no metadata.name"),
        (json.dumps({"items": [node(), pod(container("many"))]}), "Pod p: 'many' is not a quantity"),
    ],
)
def test_files_that_say_something_else(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=r"cluster\.json") as caught:
        cluster_states.load(path, "default")
    assert says in caught.value.message
    assert "kubectl get" in (caught.value.hint or "")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        cluster_states.load(tmp_path / "nothing.json", "default")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["metadata", "spec", "status", "name", "containers", "taints", "resources"])
            | st.sampled_from(
                ["requests", "allocatable", "cpu", "memory", "nodeName", "initContainers", "hard"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.sampled_from(["Node", "Pod", "ResourceQuota", "Secret"]),
    st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), anything),
)
def test_hostile_objects_are_read_or_refused(kind: str, body: dict[str, Any]) -> None:
    with contextlib.suppress(ValueError):
        cluster_states.read([{**body, "kind": kind}], "default")
