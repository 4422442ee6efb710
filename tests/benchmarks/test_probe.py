"""How rules are held against probes."""

from __future__ import annotations

import pytest
from support import cases, probed_runs

from benchmarks import probe
from paceline.diagnosing.cases import Case
from paceline.model.explanations.causes import Cause
from paceline.model.explanations.findings import Severity

LOADS = {"ps-0": cases.SERVER, "ps-1": cases.SERVER, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}


@pytest.mark.parametrize(
    ("name", "subjects", "said"),
    [
        ("ps-cpu-bound", ("ps-0",), [("ps-cpu-bound", "confirmed")]),
        ("compute-bound", ("worker-0", "worker-1"), [("compute-bound", "refuted")]),
        ("ps-network-bound", ("ps-0",), []),
        ("slow-storage", ("worker-0",), []),
    ],
)
def test_what_a_probe_says_of_what_rules_have_found(
    name: str, subjects: tuple[str, ...], said: list[tuple[str, str]]
) -> None:
    case = Case.of(cases.recording(LOADS))
    cause = Cause(name=name, what="", severity=Severity.WARNING, subjects=subjects)
    assert list(probe.verdicts([cause], probed_runs.probe("clicks"), case)) == said
