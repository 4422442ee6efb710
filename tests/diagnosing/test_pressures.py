"""What the kernel says of waiting is evidence of the rules that it concerns."""

from __future__ import annotations

from typing import Any

import pytest
from support import cases
from support.cases import found

from paceline.diagnosing.cores.noisy_neighbours import noisy_neighbour
from paceline.diagnosing.inputs.slow_storage import slow_storage
from paceline.diagnosing.memory.memory_limits import memory_near_limit
from paceline.diagnosing.rules import Rule
from paceline.model.explanations.causes import Evidence

WORKERS = ("worker-0", "worker-1")
CROWDED = {
    "cpu_cores": 0.4, "cpu_limit_cores": 1.0, "neighbours_cpu_cores": 1.6, "run_delay_seconds": 1.6,
}  # fmt: skip
FULL = cases.TRAINER | {"memory_bytes": 950 << 20, "memory_limit_bytes": 1 << 30}
RESTING = {"cpu_cores": 0.25, "cpu_limit_cores": 1.0}


def evidence(rule: Rule, load: dict[str, Any], pressures: dict[str, float | None]) -> tuple[Evidence, ...]:
    """Return the evidence of the one cause that a rule finds in a job; worker-1 has the pressures."""
    loads = {"ps-0": cases.SERVER, "worker-0": load, "worker-1": load | pressures}
    steps = {name: {**cases.STEPS, "input_wait_seconds": 0.6} for name in WORKERS}
    (cause,) = found(rule, cases.recording(loads, steps=steps, facts=(("cores", "2"),)))
    return cause.evidence


@pytest.mark.parametrize(
    ("rule", "load", "field", "text"),
    [
        (noisy_neighbour, CROWDED, "cpu_pressure_seconds", "ready and without a core for 62% of the time"),
        (
            memory_near_limit,
            FULL,
            "memory_pressure_seconds",
            "held up until memory is freed for 62% of the time",
        ),
        (slow_storage, RESTING, "io_pressure_seconds", "held up by a disk for 62% of the time"),
    ],
    ids=["cores", "memory", "disks"],
)
def test_who_waits_longest_is_named(rule: Rule, load: dict[str, Any], field: str, text: str) -> None:
    seen = evidence(rule, load, {field: 0.62})
    assert f"at least one thread of worker-1 is {text}" in [each.text for each in seen]
    assert field in {source.field for each in seen for source in each.sources}
    without = evidence(rule, load, {field: None})
    assert len(without) == len(seen) - 1
