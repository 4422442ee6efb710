"""What a real cAdvisor answered, and variants of it."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given
from support.memory_clusters import MemoryCluster
from support.recorded import ASKED, PS, PS_0, WORKER, WORKER_0, awaited, text

from paceline.sources import cadvisors, readings
from paceline.sources.readings import Pod, PodReading, TimedFigure


def test_replicas_of_a_real_node() -> None:
    before, after = (cadvisors.parse(text(f"cadvisor.{number}.txt"), at) for number, at in ASKED.items())
    assert set(after) == {PS, WORKER}, "other pods have no replica"
    worker = readings.sample(before[WORKER], after[WORKER], replica=WORKER_0, attempt=2)
    assert worker is not None
    assert worker.at == 1795332965.715
    assert ASKED[2] - worker.at == pytest.approx(6.05, abs=0.01), "its age"
    assert worker.interval_seconds == pytest.approx(33.555)
    assert (worker.cpu_limit_cores, worker.memory_limit_bytes) == (0.2, 64 << 20)
    assert worker.cpu_cores is not None
    assert 0.05 < worker.cpu_cores <= 0.2
    assert (worker.network_sent_bytes, worker.network_received_bytes) == (10941504, 376268)
    assert (worker.memory_bytes, worker.threads) == (688128, 3)
    assert after[WORKER].throttled_seconds is not None
    assert after[WORKER].throttled_seconds.value > 1, "its limit was felt"
    ps = readings.sample(before[PS], after[PS], replica=PS_0, attempt=1)
    assert ps is not None
    assert (ps.cpu_limit_cores, ps.memory_bytes, ps.threads) == (0.5, 606208, 2), "of its own container alone"
    assert ps.network_received_bytes is not None
    assert ps.network_received_bytes > worker.network_sent_bytes


def test_a_kubelet_is_asked_through_the_api_server() -> None:
    cluster = MemoryCluster()
    cluster.pages["/api/v1/nodes/node-1/proxy/metrics/cadvisor"] = text("cadvisor.1.txt").encode()
    assert set(awaited(cadvisors.read(cluster, "node-1", ASKED[1], [PS, WORKER]))) == {PS, WORKER}
    assert set(awaited(cadvisors.read(cluster, "node-1", ASKED[1], [PS]))) == {PS}, "of its own pods alone"


OWNER = 'namespace="ml",pod="p",container="training"'
POD = Pod("ml", "p")


def parse(text: str) -> dict[Pod, PodReading]:
    return cadvisors.parse(text, 9.0)


def test_processors_and_interfaces_add_up() -> None:
    network = 'container_network_receive_bytes_total{namespace="ml",pod="p",container="POD",interface='
    reading = parse(
        f'container_cpu_usage_seconds_total{{{OWNER},cpu="cpu00"}} 1.5 1000\n'
        f'container_cpu_usage_seconds_total{{{OWNER},cpu="cpu01"}} 2 1000\n'
        f'{network}"eth0"}} 10 2000\n{network}"net1"}} 5 2000\n{network}"lo"}} 100 2000\n'
    )[POD]
    assert (reading.cpu_seconds, reading.network_received_bytes) == (
        TimedFigure(3.5, 1.0),
        TimedFigure(15.0, 2.0),
    )
    assert reading.at == 2.0


def test_of_an_old_and_a_new_container_the_new_one_counts() -> None:
    reading = parse(
        f'container_memory_working_set_bytes{{{OWNER},id="/new"}} 5 2000\n'
        f'container_memory_working_set_bytes{{{OWNER},id="/old"}} 9 1000\n'
    )[POD]
    assert reading.memory_bytes == TimedFigure(5.0, 2.0)


def test_no_limit_is_none() -> None:
    text = f"container_spec_memory_limit_bytes{{{OWNER}}} 0\ncontainer_spec_cpu_period{{{OWNER}}} 100000\n"
    reading = parse(text + f"container_threads{{{OWNER}}} 3\n")[POD]
    assert (reading.cpu_limit_cores, reading.memory_limit_bytes) == (None, None)
    assert reading.threads == TimedFigure(3.0, 9.0)


def test_limits_alone_are_no_measurement() -> None:
    assert parse(f"container_spec_memory_limit_bytes{{{OWNER}}} 5\n") == {}


_LINES = st.builds(
    lambda name, labels, value, at: f"{name}{{{labels}}} {value}{at}",
    st.sampled_from(sorted(cadvisors.NAMES)),
    st.sampled_from([OWNER, OWNER + ',cpu="0"', OWNER + ',interface="eth0"', 'pod="p"', "", 'pod="p']),
    st.sampled_from(["0", "1", "-5", "NaN", "+Inf", "1e308", "1e999", "x", ""]),
    st.sampled_from(["", " 1000", " NaN", " -1", " x", " 1e999"]),
)


@given(st.lists(_LINES, max_size=12))
def test_anything_near_it_gives_readings_that_make_sense(lines: list[str]) -> None:
    for reading in parse("\n".join(lines)).values():
        for name in ("cpu_seconds", "throttled_seconds", "network_sent_bytes", "memory_bytes"):
            figure = getattr(reading, name)
            assert figure is None or 0 <= figure.value < float("inf")
