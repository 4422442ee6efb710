"""What a Prometheus has stored: a recorded answer, and a real one that scrapes what was recorded."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import httpx2
import hypothesis.strategies as st
import pytest
from hypothesis import given
from support import prometheuses as processes
from support.recorded import ASKED, PS, WORKER, WORKER_0, awaited, text

from paceline.errors import InvalidInput, SourceError
from paceline.sources import cadvisors, prometheuses, readings
from paceline.sources.prometheuses import History
from paceline.sources.readings import Pod, Source

RECORDED = text("prometheus.json")
EMPTY = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": []}})


def test_the_readings_of_each_scrape_of_a_real_answer() -> None:
    found = prometheuses.parse([RECORDED, EMPTY, EMPTY])
    assert (set(found.readings), found.broken) == ({PS, WORKER}, 0)
    history = found.readings[WORKER]
    assert [each.at for each in history] == [1795332912.676, 1795332932.16, 1795332948.86, 1795332965.715]
    assert {each.source for each in history} == {Source.PROMETHEUS}
    made = readings.sample(history[-2], history[-1], replica=WORKER_0, attempt=2)
    assert made is not None
    assert ASKED[2] - made.at == pytest.approx(6.05, abs=0.01), (
        "it is as old as cAdvisor's reading, not as the query"
    )
    assert made.interval_seconds == pytest.approx(16.855)
    assert made.cpu_cores == pytest.approx(0.056, abs=0.001)
    assert (made.cpu_limit_cores, made.memory_limit_bytes, made.threads) == (0.2, 64 << 20, 3)
    assert (made.network_sent_bytes, made.network_received_bytes) == (6192826, 178868)
    throttled = readings.sample(history[0], history[1], replica=WORKER_0, attempt=2)
    assert throttled is not None
    assert throttled.throttled_seconds == pytest.approx(1.12, abs=0.01)


def test_what_is_asked() -> None:
    cpu, *gpus = prometheuses.queries("ml", ["b.1", "a"], 89.2)
    assert cpu.endswith(r'",namespace="ml",pod=~"a|b\\.1"}[90s]')
    assert "container_cpu_usage_seconds_total|" in cpu
    assert [re.sub("^.*?,", "", each) for each in gpus] == [
        r'namespace="ml",pod=~"a|b\\.1"}[90s]',
        r'exported_namespace="ml",exported_pod=~"a|b\\.1"}[90s]',
    ]


def read(url: str, at: float = 1000.0) -> History:
    async def run() -> History:
        async with prometheuses.connected(url) as client:
            return await prometheuses.read(client, "ml", [PS.name, WORKER.name], at=at, seconds=120)

    return awaited(run())


@pytest.mark.parametrize("url", ["", "prometheus:9090", "ftp://x", "http://", "http://a:b"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"Prometheus|is no URL"):
        prometheuses.connected(url)


def test_nobody_there_is_an_error_without_the_password() -> None:
    with pytest.raises(SourceError, match=r"Prometheus at 127\.0\.0\.1 does not answer: ") as error:
        read("http://me:secret@127.0.0.1:1/prometheus")
    assert "secret" not in str(error.value)


def test_a_path_before_the_api_is_kept() -> None:
    asked = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append((request.method, request.url.path, request.content))
        return httpx2.Response(200, text=EMPTY)

    async def run() -> History:
        async with httpx2.AsyncClient(
            base_url="http://h/p", transport=httpx2.MockTransport(answer)
        ) as client:
            return await prometheuses.read(client, "ml", ["a"], at=12.5, seconds=60)

    assert awaited(run()) == History({}, 0)
    assert {(method, path) for method, path, _ in asked} == {("POST", "/p/api/v1/query")}
    assert all(content.endswith(b"&time=12.500") for _, _, content in asked)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"status": "error", "errorType": "bad_data", "error": "parse error"}, "refused: parse error"),
        (
            {"status": "success", "data": {"resultType": "vector", "result": []}},
            "'vector', which is no range",
        ),
        ({}, "refused: None"),
    ],
)
def test_what_is_no_range_of_values_is_an_error(answer: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        prometheuses.parse([json.dumps(answer)])
    with pytest.raises(SourceError, match="did not answer in JSON: '404 page"):
        prometheuses.parse(["404 page not found"])


_ANY = st.none() | st.integers() | st.floats() | st.text(max_size=3) | st.lists(st.none(), max_size=2)
_VALUES = st.tuples(st.floats(0, 4e9) | _ANY, st.sampled_from(["1", "NaN", "+Inf", "-1", "x"]) | _ANY)


@given(st.lists(st.fixed_dictionaries({
    "metric": st.fixed_dictionaries({
        "__name__": st.sampled_from(["container_cpu_usage_seconds_total", "DCGM_FI_DEV_GPU_UTIL"]) | _ANY,
        "pod": st.just("p"), "namespace": st.just("n"), "container": st.just("training"),
    }) | _ANY,
    "values": st.lists(_VALUES | _ANY, max_size=3) | _ANY,
}) | _ANY, max_size=4))  # fmt: skip
def test_any_matrix_is_read_without_an_error(result: list[Any]) -> None:
    data = {"resultType": "matrix", "result": result}
    found = prometheuses.parse([json.dumps({"status": "success", "data": data})])
    assert set(found.readings) <= {Pod("n", "p")}


@pytest.mark.slow
def test_a_real_prometheus_that_scrapes_what_was_recorded(tmp_path: Path) -> None:
    """cAdvisor's two readings as if the second were of now, and DCGM's exporter, which is labelled over."""
    shift = round((time.time() - ASKED[2]) * 1000)
    scraped: list[int] = []

    def cadvisor() -> str:
        scraped.append(1)
        recorded = text(f"cadvisor.{min(len(scraped), 2)}.txt")
        return re.sub(r" (1795\d{9})$", lambda at: f" {int(at[1]) + shift}", recorded, flags=re.MULTILINE)

    with processes.serving({"/cadvisor": cadvisor, "/dcgm": lambda: text("dcgm.txt")}) as address:
        exporter = {"namespace": "gpus", "pod": "dcgm-x", "container": "exporter"}
        jobs = [
            {"job_name": "cadvisor", "metrics_path": "/cadvisor", "static_configs": [{"targets": [address]}]},
            {"job_name": "again", "metrics_path": "/cadvisor", "static_configs": [{"targets": [address]}]},
            {
                "job_name": "dcgm",
                "metrics_path": "/dcgm",
                "static_configs": [{"targets": [address], "labels": exporter}],
            },
        ]
        config = {"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}
        with processes.running(config, tmp_path) as url:

            def history() -> tuple[readings.Reading, ...]:
                return read(url, time.time()).readings.get(WORKER, ())

            def sent() -> set[float]:
                return {each.network_sent_bytes.value for each in history() if each.network_sent_bytes}

            processes.until(lambda: len(sent()) > 1 and history()[-1].gpu_utilization, history)
            found = history()
    made = readings.sample(found[-2], found[-1], replica=WORKER_0, attempt=2)
    assert made is not None
    assert (made.gpu_utilization, made.gpu_memory_bytes) == (pytest.approx(0.65), (4845 + 1024) << 20)
    recorded = cadvisors.parse(text("cadvisor.2.txt"), ASKED[2]).readings
    (cpu,) = (each.cpu_seconds for each in recorded if each.pod == WORKER)
    latest = max(each.cpu_seconds for each in found if each.cpu_seconds)
    assert cpu is not None
    assert latest == (cpu.value, pytest.approx(cpu.at + shift / 1000, abs=0.01))
    totals = {each.network_sent_bytes.value for each in found if each.network_sent_bytes}
    assert len(totals) == 2, "scraped twice it is not counted twice"
    assert max(totals) - min(totals) == 10941504
