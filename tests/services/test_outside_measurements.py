"""All sources of a cluster together, by what real ones answered."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from support.memory_clusters import MemoryCluster
from support.recorded import ASKED, PS, PS_0, WORKER, WORKER_0, awaited, text

from paceline.model.roles import ReplicaId
from paceline.rendering import labels
from paceline.services.outside_measurements import OutsideMeasurements, Samples
from paceline.sources import precedences
from paceline.sources.readings import Pod, Source

CADVISOR = "/api/v1/nodes/node-1/proxy/metrics/cadvisor"
SUMMARY = "/api/v1/nodes/node-1/proxy/stats/summary"
METRICS = "/apis/metrics.k8s.io/v1beta1/pods?labelSelector=paceline.dev%2Fjob"
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


def measured_twice(cluster: MemoryCluster, *paths: str) -> tuple[Samples, dict[str, str]]:
    """Measure at the time of the first recording and of the second; some paths do not answer."""
    times = {"number": 1}
    measurements = OutsideMeasurements(cluster, lambda: ASKED[times["number"]])

    async def run() -> Samples:
        for number in (1, 2):
            times["number"] = number
            answers = {
                CADVISOR: text(f"cadvisor.{number}.txt"),
                SUMMARY: text(f"summary.{number}.json"),
                METRICS: text("metrics-server.json"),
                DCGM: text("dcgm.txt"),
            }
            cluster.pages.update({path: each.encode() for path, each in answers.items() if path not in paths})
            found = await measurements.measure(PODS)
        return found

    return awaited(run()), measurements.troubles


@pytest.fixture
def cluster() -> MemoryCluster:
    made = MemoryCluster()
    made.objects["pods", "gpus", "dcgm-x"] = exporter("node-1")
    return made


def test_each_source_says_its_own(cluster: MemoryCluster) -> None:
    samples, troubles = measured_twice(cluster)
    assert troubles == {}
    assert set(samples[WORKER]) == {Source.CADVISOR, Source.DCGM}, "metrics-server said nothing newer"
    assert (samples[WORKER][Source.CADVISOR].replica, samples[WORKER][Source.CADVISOR].attempt) == (
        WORKER_0,
        2,
    )
    joined = precedences.joined(samples[WORKER])
    assert joined is not None
    assert (joined.sample.network_sent_bytes, joined.sample.gpu_utilization) == (
        10941504,
        pytest.approx(0.65),
    )
    assert joined.origins["gpu_utilization"].source is Source.DCGM
    assert ASKED[2] - joined.origins["memory_bytes"].at == pytest.approx(6.05, abs=0.01)
    assert ("GET", CADVISOR) in cluster.calls
    assert ("GET", SUMMARY) not in cluster.calls, "cAdvisor said it all"


def test_without_cadvisor_the_summary_is_read(cluster: MemoryCluster) -> None:
    samples, troubles = measured_twice(cluster, CADVISOR)
    assert set(troubles) == {"cadvisor of node-1"}
    assert set(samples[PS]) == {Source.KUBELET}
    assert samples[PS][Source.KUBELET].cpu_cores == pytest.approx(0.034, abs=0.001)


def test_sources_that_are_not_there_cost_nothing_else(cluster: MemoryCluster) -> None:
    samples, troubles = measured_twice(cluster, SUMMARY, CADVISOR, METRICS)
    assert set(troubles) == {"cadvisor of node-1", "kubelet of node-1", "metrics-server"}
    assert {pod: set(found) for pod, found in samples.items()} == {WORKER: {Source.DCGM}}


@pytest.mark.parametrize("namespace", [None, "ml"])
def test_metrics_server_alone_measures_the_first_time(namespace: str | None) -> None:
    cluster = MemoryCluster()
    path = METRICS if namespace is None else METRICS.replace("/pods", f"/namespaces/{namespace}/pods")
    cluster.pages[path] = text("metrics-server.json").encode()
    measurements = OutsideMeasurements(cluster, lambda: ASKED[1], namespace=namespace)
    samples = awaited(measurements.measure(PODS))
    assert samples[PS][Source.METRICS_SERVER].interval_seconds == 15.047
    assert samples[WORKER][Source.METRICS_SERVER].cpu_cores == pytest.approx(0.056)


def test_exporters_elsewhere_and_pods_of_others_are_not_asked() -> None:
    cluster = MemoryCluster()
    cluster.objects["pods", "gpus", "dcgm-x"] = exporter("node-2")
    measurements = OutsideMeasurements(cluster, lambda: 0.0)
    waiting = {"metadata": PODS[0]["metadata"], "spec": {}}
    other = {"metadata": {"namespace": "a", "name": "b"}, "spec": {"nodeName": "node-9"}}
    assert awaited(measurements.measure([PODS[1], waiting, other])) == {}
    asked = " ".join(path for _, path in cluster.calls)
    assert "dcgm-x" not in asked
    assert "node-9" not in asked


@pytest.mark.parametrize(("status", "body"), [(200, text("prometheus.json")), (503, "gone")])
def test_a_prometheus_has_the_reading_before_as_well(status: int, body: str) -> None:
    empty = '{"status": "success", "data": {"resultType": "matrix", "result": []}}'

    def answer(request: httpx2.Request) -> httpx2.Response:
        is_of_gpus = b"DCGM" in request.content
        return httpx2.Response(status, text=empty if is_of_gpus and status == 200 else body)

    async def run() -> tuple[Samples, dict[str, str]]:
        transport = httpx2.MockTransport(answer)
        async with httpx2.AsyncClient(base_url="http://prometheus", transport=transport) as client:
            measurements = OutsideMeasurements(MemoryCluster(), lambda: ASKED[2], prometheus=client)
            found = await measurements.measure(PODS)
            assert await measurements.measure(PODS) == {}, "it said nothing newer"
            return found, measurements.troubles

    samples, troubles = awaited(run())
    if status == 200:
        assert samples[WORKER][Source.PROMETHEUS].network_sent_bytes == 6192826
    else:
        assert samples == {}
        assert "did not answer in JSON: 'gone'" in troubles["prometheus for ml"]
