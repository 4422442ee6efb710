"""What a real kubelet answered, and what none would."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from support.examples import examples
from support.memory_clusters import MemoryCluster
from support.recorded import PS, PS_0, WORKER, WORKER_0, awaited, text

from paceline.errors import SourceError
from paceline.sources import kubelets, readings
from paceline.sources.readings import Figure


def test_replicas_of_a_real_summary() -> None:
    first, second = (kubelets.parse(text(f"summary.{number}.json")) for number in (1, 2))
    assert first.broken == second.broken == 0
    assert {each.pod for each in second.readings} == {PS, WORKER}, "other pods have no replica"
    before, after = ({each.pod: each for each in found.readings} for found in (first, second))
    worker = readings.sample(before[WORKER], after[WORKER], replica=WORKER_0, attempt=2)
    assert worker is not None
    assert (worker.at, worker.interval_seconds) == (1795332965.0, 33.0)
    assert worker.cpu_cores == pytest.approx(0.059, abs=0.001)
    assert (worker.network_sent_bytes, worker.network_received_bytes) == (10941504, 376268)
    assert worker.memory_bytes == 688128
    assert worker.throttled_seconds is None
    ps = readings.sample(before[PS], after[PS], replica=PS_0, attempt=1)
    assert ps is not None
    assert ps.network_received_bytes is not None
    assert ps.network_received_bytes > worker.network_sent_bytes
    assert ps.memory_bytes == 606208, "of its training container, without the other one"


def test_a_real_node() -> None:
    node = kubelets.parse(text("summary.2.json")).node
    assert node.name == "node-1"
    assert node.cpu_seconds is not None
    assert node.cpu_seconds.at == 1795332970.0
    assert node.memory_bytes is not None
    assert 1e9 < node.memory_bytes.value < 1e12


def test_a_kubelet_is_asked_through_the_api_server() -> None:
    cluster = MemoryCluster()
    cluster.pages["/api/v1/nodes/a%2Fb/proxy/stats/summary"] = text("summary.1.json").encode()
    assert len(awaited(kubelets.read(cluster, "a/b")).readings) == 2


def summary(**pod: Any) -> str:
    return json.dumps({"node": {"nodeName": "n"}, "pods": [{"podRef": PS._asdict(), **pod}]})


def test_what_is_missing_is_not_measured() -> None:
    time = "2026-11-22T07:00:00Z"
    cpu = {"time": time, "usageCoreNanoSeconds": 2_500_000_000}
    text = summary(containers=[{"name": "training", "cpu": cpu, "memory": {"time": time}}])
    (reading,) = kubelets.parse(text).readings
    assert reading.cpu_seconds == Figure(2.5, reading.at or 0)
    assert (reading.memory_bytes, reading.network_sent_bytes) == (None, None)
    assert kubelets.parse(summary(containers=[])).readings == ()
    assert kubelets.parse(summary(containers=[{"name": "training"}])).readings == ()


def test_a_network_without_a_list_of_interfaces() -> None:
    network = {"time": "2026-11-22T07:00:00Z", "name": "eth0", "rxBytes": 7}
    (reading,) = kubelets.parse(summary(containers=[{"name": "training"}], network=network)).readings
    assert (reading.network_received_bytes or reading).at == reading.at
    assert reading.network_received_bytes is not None
    assert (reading.network_received_bytes.value, reading.network_sent_bytes) == (7, None)


@pytest.mark.parametrize("text", ["", "<html>", "[]", "[" * 5000, "null"], ids=lambda each: each[:6])
def test_what_is_no_summary_is_an_error_that_shows_it(text: str) -> None:
    with pytest.raises(SourceError, match=r"the kubelet (did not answer in JSON|answered no JSON object): '"):
        kubelets.parse(text)


def test_pods_that_make_no_sense_are_counted() -> None:
    assert kubelets.parse(json.dumps({"pods": [None, 1, {}, {"podRef": {"name": 1}}]})).broken == 4


_WORDS = st.sampled_from(
    [
        "pods", "node", "podRef", "name", "namespace", "training", "containers", "cpu", "memory", "network",
        "time", "usageCoreNanoSeconds", "workingSetBytes", "rxBytes", "interfaces",
        "2026-11-22T07:00:00Z", "9999-12-31T00:00:00Z",
    ]
)  # fmt: skip
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _WORDS | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_WORDS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=examples(60))
@given(st.dictionaries(_WORDS, _JSON))
def test_any_object_is_read_without_an_error(found: dict[str, Any]) -> None:
    summary = kubelets.parse(json.dumps(found))
    assert all(each.at is not None for each in summary.readings)


@settings(max_examples=examples(60))
@given(st.lists(st.fixed_dictionaries({"podRef": st.just({"namespace": "a", "name": "b"})}, optional={
    "network": _JSON, "containers": st.lists(st.fixed_dictionaries(
        {"name": st.just("training")}, optional={"cpu": _JSON, "memory": _JSON})),
}), max_size=3))  # fmt: skip
def test_any_pod_is_read_without_an_error(pods: list[Any]) -> None:
    kubelets.parse(json.dumps({"pods": pods}))
