"""Requests and metrics as functions: whatever comes in."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from paceline.agent.paceline_agent import configs, requests
from paceline.agent.paceline_agent.metrics import METRICS, Metrics

CONFIG = configs.Config(
    {
        "job": 'odd "name"\\\n', "role": "ps", "index": 0, "attempt": 2, "command": ["x"], "cluster": {},
        "spool": "s", "exit": "e", "reports": "r",
    }
)  # fmt: skip
FIELDS = sorted({field for metrics in METRICS.values() for m in metrics for field in m.fields.values()})
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400)
LINES = st.lists(
    st.tuples(
        st.sampled_from(["sample", "step", "evaluation", "other"]),
        st.dictionaries(st.sampled_from(FIELDS), VALUES),
    )
)


@given(lines=LINES)
def test_metrics_of_whatever_scripts_report_can_be_read(lines: list[tuple[str, dict[str, Any]]]) -> None:
    metrics = Metrics(CONFIG)
    for kind, fields in lines:
        metrics.take({"type": kind, **fields})
    for family in text_string_to_metric_families(metrics.text()):
        for sample in family.samples:
            assert sample.labels["job"] == CONFIG.job
            assert sample.labels["attempt"] == "2"
            # Sums may go beyond what a float holds, single values not.
            assert family.type == "counter" or math.isfinite(sample.value)
            assert family.type == "gauge" or sample.value >= 0


@given(data=st.binary(max_size=100))
def test_a_request_is_read_or_is_none(data: bytes) -> None:
    request = requests.parse_request(data)
    assert request is None or request.path.startswith("/")


def test_requests() -> None:
    found = requests.parse_request(b"GET /spool?offset=7&again=x&last= HTTP/1.1\r\nHost: a\r\n\r\n")
    assert (found.method, found.path) == ("GET", "/spool")
    assert (found.number("offset"), found.number("again"), found.number("last")) == (7, None, None)
    assert requests.parse_request(b"GET spool HTTP/1.1\r\n") is None
    assert requests.parse_request(b"GET / HTTP/2\r\n") is None


def test_every_metric_has_a_name_of_its_own() -> None:
    names = [metric.name for metrics in METRICS.values() for metric in metrics]
    assert len(names) == len(set(names))
    assert json.dumps(names).islower()
