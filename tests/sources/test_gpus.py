"""DCGM's exporter: GPUs of pods, by percent and MiB."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given
from support.memory_clusters import MemoryCluster
from support.recorded import WORKER, awaited, text

from paceline.sources import gpus
from paceline.sources.gpus import Exporter
from paceline.sources.readings import Pod, TimedFigure

TEXT = text("dcgm.txt")
OTHER = Pod("ml", "clicks-worker-1-1")


def test_the_gpus_of_a_pod_are_taken_together() -> None:
    readings = gpus.parse(TEXT, 1000.0)
    assert set(readings) == {WORKER, OTHER}, "not those that no pod holds"
    worker = readings[WORKER]
    assert worker.gpu_utilization == TimedFigure(pytest.approx(0.65), 1000.0)
    assert worker.gpu_memory_bytes == TimedFigure((4845 + 1024) << 20, 1000.0)


def test_what_dcgm_cannot_measure_is_not_measured() -> None:
    other = gpus.parse(TEXT, 1000.0)[OTHER]
    assert (other.gpu_utilization, other.gpu_memory_bytes) == (None, TimedFigure(512 << 20, 1000.0))


def test_an_exporter_is_asked_through_the_api_server() -> None:
    cluster = MemoryCluster()
    cluster.pages["/api/v1/namespaces/gpus/pods/dcgm-x:9400/proxy/metrics"] = TEXT.encode()
    exporter = Exporter(Pod("gpus", "dcgm-x"), 9400)
    assert set(awaited(gpus.read(cluster, exporter, 5.0, [WORKER, OTHER]))) == {WORKER, OTHER}
    assert set(awaited(gpus.read(cluster, exporter, 5.0, [WORKER]))) == {WORKER}, "of its own node alone"


def test_a_pod_is_an_exporter() -> None:
    pod = {"metadata": {"namespace": "gpus", "name": "dcgm-x"}}
    assert gpus.exporter(pod) == Exporter(Pod("gpus", "dcgm-x"), 9400)


_LINES = st.builds(
    lambda name, labels, value: f"{name}{{{labels}}} {value}",
    st.sampled_from([*gpus.NAMES, "x"]),
    st.sampled_from(
        ['gpu="0",pod="p",namespace="n"', 'gpu="1",pod="p",namespace="n"', 'pod="p', "", 'pod=""']
    ),
    st.sampled_from(["0", "100", "101", "-1", "NaN", "9223372036854775794", "1e308", "x"]),
)


@given(st.lists(_LINES, max_size=12))
def test_anything_near_it_gives_readings_that_make_sense(lines: list[str]) -> None:
    for reading in gpus.parse("\n".join(lines), 5.0).values():
        assert reading.gpu_utilization is None or 0 <= reading.gpu_utilization.value <= 1
        assert reading.gpu_memory_bytes is None or 0 <= reading.gpu_memory_bytes.value < 2**83
