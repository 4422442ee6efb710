"""cAdvisor and DCGM of a cluster together: by what a real cAdvisor answered, and an exporter after DCGM's."""

from __future__ import annotations

from typing import Any

import pytest
from support.memory_clusters import MemoryCluster
from support.recorded import ASKED, PS, PS_0, WORKER, WORKER_0, awaited, text

from paceline.model.measures.samples import Sample
from paceline.model.roles import ReplicaId
from paceline.rendering import labels
from paceline.services.cluster.outside_measurements import OutsideMeasurements
from paceline.sources.readings import Pod

CADVISOR = "/api/v1/nodes/node-1/proxy/metrics/cadvisor"
DCGM = "/api/v1/namespaces/gpus/pods/dcgm-x:9400/proxy/metrics"


def pod(which: Pod, replica: ReplicaId, attempt: int) -> dict[str, Any]:
    own = {labels.ROLE: str(replica.role), labels.INDEX: str(replica.index), labels.ATTEMPT: str(attempt)}
    return {
        "metadata": {"namespace": which.namespace, "name": which.name, "labels": own},
        "spec": {"nodeName": "node-1"},
    }


PODS = [pod(PS, PS_0, 1), pod(WORKER, WORKER_0, 2)]


def exporter(node: str) -> dict[str, Any]:
    metadata = {"namespace": "gpus", "name": "dcgm-x", "labels": {"app": "nvidia-dcgm-exporter"}}
    return {"metadata": metadata, "spec": {"nodeName": node}}


@pytest.fixture
def cluster() -> MemoryCluster:
    made = MemoryCluster()
    made.objects["pods", "gpus", "dcgm-x"] = exporter("node-1")
    return made


class Measured:
    """Measures the recorded pods, whenever the recording of a number is what there is."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.cluster = cluster
        self.now = 0.0
        self.measurements = OutsideMeasurements(cluster, lambda: self.now, exporters="gpus")

    def at(self, number: int, *, without: str = "", after_seconds: float = 0.0) -> dict[Pod, Sample]:
        self.now = ASKED[number] + after_seconds
        answers = {CADVISOR: text(f"cadvisor.{number}.txt"), DCGM: text("dcgm.txt")}
        for path, answer in answers.items():
            self.cluster.pages.pop(path, None)
            if path != without:
                self.cluster.pages[path] = answer.encode()
        return awaited(self.measurements.measure(PODS))


def test_a_sample_has_what_both_say(cluster: MemoryCluster) -> None:
    measured = Measured(cluster)
    assert measured.at(1) == {}, "one reading of counters says nothing"
    samples = measured.at(2)
    assert measured.measurements.troubles == {}
    assert set(samples) == {PS, WORKER}
    worker = samples[WORKER]
    assert (worker.replica, worker.attempt) == (WORKER_0, 2)
    assert (worker.network_sent_bytes, worker.memory_bytes) == (10941504, 688128)
    assert (worker.gpu_utilization, worker.gpu_memory_bytes) == (pytest.approx(0.65), (4845 + 1024) << 20)
    assert ASKED[2] - worker.at == pytest.approx(6.05, abs=0.01), "it is as old as cAdvisor's reading"
    assert samples[PS].gpu_utilization is None


def test_what_is_said_again_is_no_sample(cluster: MemoryCluster) -> None:
    measured = Measured(cluster)
    measured.at(1)
    measured.at(2)
    assert measured.at(2, after_seconds=10.0) == {}, "cAdvisor has not looked again"


def test_gpus_are_measured_where_cadvisor_may_not_be_asked(cluster: MemoryCluster) -> None:
    measured = Measured(cluster)
    measured.at(1, without=CADVISOR)
    samples = measured.at(2, without=CADVISOR)
    assert set(measured.measurements.troubles) == {"cadvisor of node-1"}
    assert set(samples) == {WORKER}
    assert samples[WORKER].gpu_utilization == pytest.approx(0.65)
    assert samples[WORKER].cpu_cores is None


def test_an_exporter_that_does_not_answer_costs_its_gpus_alone(cluster: MemoryCluster) -> None:
    measured = Measured(cluster)
    measured.at(1, without=DCGM)
    samples = measured.at(2, without=DCGM)
    assert set(measured.measurements.troubles) == {"dcgm on node-1"}
    assert set(samples) == {PS, WORKER}
    assert samples[WORKER].gpu_utilization is None


def test_a_node_that_was_silent_once_is_measured_from_then_on(cluster: MemoryCluster) -> None:
    measured = Measured(cluster)
    measured.at(1, without=CADVISOR)
    measured.at(1)
    samples = measured.at(2)
    assert samples[PS].cpu_cores is not None
    assert samples[WORKER].memory_bytes == 688128


def test_an_exporter_of_another_namespace_is_not_asked(cluster: MemoryCluster) -> None:
    liar = exporter("node-1")
    liar["metadata"]["namespace"] = "team-b"
    cluster.objects["pods", "team-b", "dcgm-x"] = liar
    measured = Measured(cluster)
    measured.at(1)
    measured.at(2)
    assert not [path for _, path in cluster.calls if "team-b" in path]
    assert [path for _, path in cluster.calls if "namespaces/gpus" in path], "that of the named one is"


def test_an_exporter_is_believed_for_its_own_node(cluster: MemoryCluster) -> None:
    measurements = OutsideMeasurements(cluster, lambda: 5.0, exporters="gpus")
    cluster.objects["pods", "gpus", "dcgm-x"] = exporter("node-2")
    cluster.pages[DCGM] = text("dcgm.txt").encode()
    elsewhere = {**PODS[0], "spec": {"nodeName": "node-2"}}
    for _ in range(2):
        assert WORKER not in awaited(measurements.measure([elsewhere, PODS[1]])), "it runs on node-1"
    assert [path for _, path in cluster.calls if path == DCGM]


def test_exporters_elsewhere_and_pods_of_others_are_not_asked() -> None:
    cluster = MemoryCluster()
    cluster.objects["pods", "gpus", "dcgm-x"] = exporter("node-2")
    measurements = OutsideMeasurements(cluster, lambda: 0.0, exporters="gpus")
    waiting = {"metadata": PODS[0]["metadata"], "spec": {}}
    other = {"metadata": {"namespace": "a", "name": "b"}, "spec": {"nodeName": "node-9"}}
    assert awaited(measurements.measure([PODS[1], waiting, other])) == {}
    asked = " ".join(path for _, path in cluster.calls)
    assert "dcgm-x" not in asked
    assert "node-9" not in asked
