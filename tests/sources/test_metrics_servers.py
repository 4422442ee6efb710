"""metrics-server's list of pods."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from support.memory_clusters import MemoryCluster
from support.recorded import PS, PS_0, WORKER, awaited, text

from paceline.errors import SourceError
from paceline.sources import metrics_servers, readings

LIST = text("metrics-server.json")


def test_replicas_and_the_window_over_which_their_cpu_is_a_mean() -> None:
    answer = metrics_servers.parse(LIST)
    found = {each.pod: each for each in answer.readings}
    assert (set(found), answer.broken) == ({PS, WORKER}, 0)
    ps = readings.sample(None, found[PS], replica=PS_0, attempt=1)
    assert ps is not None
    assert (ps.at, ps.interval_seconds) == (1795332962.0, 15.047)
    assert (ps.cpu_cores, ps.memory_bytes) == (pytest.approx(0.03063631), 592 * 1024)
    worker = found[WORKER]
    assert worker.cpu_cores is not None
    assert (worker.cpu_cores.value, worker.window_seconds) == (pytest.approx(0.056), 60.0)


@pytest.mark.parametrize(("namespace", "where"), [(None, ""), ("ml", "/namespaces/ml")])
def test_only_pods_of_jobs_are_asked_for(namespace: str | None, where: str) -> None:
    cluster = MemoryCluster()
    selector = "labelSelector=paceline.dev%2Fjob"
    cluster.pages[f"/apis/metrics.k8s.io/v1beta1{where}/pods?{selector}"] = LIST.encode()
    assert len(awaited(metrics_servers.read(cluster, namespace)).readings) == 2


@pytest.mark.parametrize(
    "change",
    [{"timestamp": "yesterday"}, {"timestamp": None}, {"window": "0s"}, {"window": "-1s"}, {"metadata": {}}],
    ids=str,
)
def test_pods_that_make_no_sense_are_counted(change: dict[str, Any]) -> None:
    found = json.loads(LIST)
    found["items"][0] |= change
    answer = metrics_servers.parse(json.dumps(found))
    assert ([each.pod for each in answer.readings], answer.broken) == ([WORKER], 1)


def test_what_is_no_list_is_an_error() -> None:
    with pytest.raises(SourceError, match="metrics-server did not answer in JSON: 'x'"):
        metrics_servers.parse("x")


_ANY = st.none() | st.integers() | st.floats() | st.text(max_size=4) | st.lists(st.none(), max_size=1)
_QUANTITY = _ANY | st.sampled_from(["1n", "5Ki", "1e400", "-1", "9E", "1e-999"])


@given(st.lists(st.fixed_dictionaries({
    "metadata": st.just({"name": "a", "namespace": "b"}) | _ANY,
    "timestamp": st.just("2026-11-22T07:00:00Z") | _ANY,
    "window": st.sampled_from(["30s", "1e9s", "9" * 400]) | _ANY,
    "containers": st.lists(st.fixed_dictionaries({
        "name": st.just("training"),
        "usage": st.fixed_dictionaries({"cpu": _QUANTITY, "memory": _QUANTITY}) | _ANY,
    })) | _ANY,
}) | _ANY, max_size=3))  # fmt: skip
def test_any_list_is_read_without_an_error(items: list[Any]) -> None:
    for each in metrics_servers.parse(json.dumps({"items": items})).readings:
        assert each.at is not None
        assert each.window_seconds
