"""Dashboards and rules ask only for metrics that agents, operators or known exporters export."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.memory_clusters import MemoryCluster
from support.monitoring import DASHBOARDS, FOLDER, expressions

from paceline.agent.paceline_agent.metrics import METRICS
from paceline.model import imbalances
from paceline.rendering.surroundings import AgentSetup
from paceline.services.operators.operators import Operator
from paceline.sources import cadvisors, gpus
from paceline.surfaces.probes import HealthProbes

RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((FOLDER / "rules.yaml").read_text())["groups"] for rule in group["rules"]
]
OF_AGENTS = {
    metric.name + "_total" * (metric.kind == "counter") for metrics in METRICS.values() for metric in metrics
}
_OPERATOR = Operator(MemoryCluster(time.time), agent=AgentSetup(image=None), clock=time.time)
OF_OPERATORS = {
    line.split()[0]
    for line in HealthProbes(_OPERATOR, None).figures().decode().splitlines()
    if not line.startswith("#")
}
EXPORTED = OF_AGENTS | OF_OPERATORS | cadvisors.NAMES | set(gpus.NAMES)
RECORDED = {rule["record"] for rule in RULES if "record" in rule}
#: Words of PromQL that are used.
_WORDS = {"sum", "max", "avg", "count", "rate", "increase", "time", "last_over_time", "and", "on", "by"}


def names(expression: str) -> set[str]:
    """Return the metrics of an expression: what is left without strings, labels, durations and words."""
    without = re.sub(r'"[^"]*"', "", expression)
    without = re.sub(r"\{[^{}]*\}|\[[^\]]*\]|\b(by|on)\s*\([^)]*\)", " ", without)
    variable = re.fullmatch(r"label_values\((.*),\s*\w+\)", without)
    without = variable[1] if variable else without
    return set(re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*", without)) - _WORDS


def test_names_are_found_in_expressions() -> None:
    assert names('sum by (a, b) (rate(x_total{c=~"y_total"}[5m])) / on (d) max(a:b:c) > 1.5') == {
        "x_total",
        "a:b:c",
    }
    assert names('label_values(x{job="$job"}, role)') == {"x"}


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_dashboards_ask_for_exported_metrics(path: Path) -> None:
    found = list(expressions(json.loads(path.read_text())))
    assert len(found) > 8
    for each in found:
        assert names(each), each
        assert names(each) <= EXPORTED, each


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("record") or rule.get("alert"))
def test_rules_ask_for_exported_or_recorded_metrics(rule: dict[str, Any]) -> None:
    assert names(rule["expr"]) <= EXPORTED | RECORDED
    if "alert" in rule:
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["labels"]["severity"] in ("info", "warning", "critical")


def test_a_ps_is_hot_from_where_top_calls_it_so() -> None:
    (hot,) = (rule for rule in RULES if rule.get("alert") == "PacelineHotParameterServer")
    assert f"> {imbalances.HOT_OVER_MEAN}" in hot["expr"]


def test_panels_have_titles_and_do_not_lie_over_each_other() -> None:
    for path in DASHBOARDS:
        dashboard = json.loads(path.read_text())
        taken: set[tuple[int, int]] = set()
        for panel in dashboard["panels"]:
            at = panel["gridPos"]
            cells = {
                (x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
            }
            assert panel["title"]
            assert not cells & taken, panel["title"]
            assert max(x for x, _ in cells) < 24
            taken |= cells
        identities = [panel["id"] for panel in dashboard["panels"]]
        assert len(set(identities)) == len(identities)
