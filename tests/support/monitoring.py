"""What is shipped for Prometheus and Grafana."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "deploy" / "monitoring"
DASHBOARDS = sorted(FOLDER.glob("*-dashboard.json"))


def expressions(of: object) -> Iterator[str]:
    """Yield all PromQL within a dashboard."""
    if isinstance(of, dict):
        for name, value in of.items():
            if name in ("expr", "definition"):
                yield value
            else:
                yield from expressions(value)
    elif isinstance(of, list):
        for each in of:
            yield from expressions(each)
