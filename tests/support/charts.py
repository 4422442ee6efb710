"""The Helm chart, linted and rendered by Helm's own library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

helm = pytest.importorskip("helm_python", reason="Helm's library has no wheel for this machine")

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "paceline"
NAMESPACE = "paceline"
ValuesRefused: type[Exception] = helm.HelmValuesError
_WARNING = 2


def rendered(**values: Any) -> list[dict[str, Any]]:
    """Return all objects of a release that is called as the kustomize base calls it."""
    return [each for each in _rendered(values) if not _is_of_test(each)]


def rendered_test(**values: Any) -> list[dict[str, Any]]:
    """Return the objects that ``helm test`` makes for such a release."""
    return [each for each in _rendered(values) if _is_of_test(each)]


def _rendered(values: dict[str, Any]) -> list[dict[str, Any]]:
    with helm.Chart.load(CHART) as chart:
        files = chart.render(values=values, name="paceline", namespace=NAMESPACE)
    texts = (text for path, text in files.items() if path.endswith(".yaml"))
    return [each for text in texts for each in yaml.safe_load_all(text) if each]


def _is_of_test(made: dict[str, Any]) -> bool:
    annotations: dict[str, str] = made["metadata"].get("annotations", {})
    return annotations.get("helm.sh/hook") == "test"


def lint() -> list[str]:
    """Return what Helm finds wrong with the chart."""
    report = helm.lint(CHART, strict=True)
    assert report["total_charts_linted"] == 1
    found = [each["error"] for each in report["messages"] if each["severity"] >= _WARNING]
    return [*found, *report["errors"]]
