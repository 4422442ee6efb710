"""What is seen of a job at first sight."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable

import pytest
from click.testing import Result
from support import cases
from support.filled_homes import fill

from paceline.model.explanations.causes import Cause, Explanation
from paceline.model.measures import snapshots
from paceline.model.measures.recordings import Recording
from paceline.model.measures.snapshots import Snapshot
from paceline.services.local.state_dirs import Home
from paceline.services.observing import diagnosis_runs
from paceline.surfaces import documents
from paceline.surfaces.views import headlines

Paceline = Callable[..., Result]
LOADS = {
    "ps-0": {**cases.SERVER, "cpu_cores": 0.98},
    "ps-1": {**cases.SERVER, "cpu_cores": 0.05},
    "worker-0": {**cases.TRAINER, "cpu_cores": 0.2},
    "worker-1": {**cases.TRAINER, "cpu_cores": 0.2},
}
MOVED = {("ps-0", "table"): 9_000_000, ("ps-1", "kernel"): 100_000}


def hot(**more: object) -> Recording:
    return cases.recording(LOADS, **more)  # type: ignore[arg-type]


def shown(recording: Recording, width: int | None = 80) -> list[str]:
    return [line.plain for line in headlines.lines(diagnosis_runs.of(recording), width=width)]


def test_the_primary_cause_and_the_split_of_a_step() -> None:
    traces = tuple(cases.trace(MOVED, trainer=f"worker-{index}") for index in range(2))
    finding, split = shown(hot(traces=traces), width=None)
    assert finding.startswith("PS001 The variable table makes ps-0 hot: 100% of what that server does")
    assert split == "step: pull 80%  compute 20%  push 0%  input 0%  other 0%  (traced 25s ago)"
    assert max(map(len, shown(hot(traces=traces)))) <= 80


def test_what_lacks_is_said() -> None:
    finding, split = shown(hot(), width=None)
    assert finding == (
        "PS004 ps-0 is at its limit while ps-1 rests: the variables on ps-0 are what to look at."
    )
    assert split == "step: not traced"
    even = {name: {**load, "cpu_cores": 0.2} for name, load in LOADS.items()}
    finding, _ = shown(cases.recording(even), width=None)
    assert finding.startswith("nothing is found, but not all is known: ")
    assert "not judged: " in finding


def test_nothing_is_wrong_and_what_is_over_is_no_finding() -> None:
    past = Cause(name="out-of-memory", what="worker-0 ran out of memory.", is_past=True)
    found = Explanation(job="clicks", summary="", causes=(past,))
    assert headlines.finding(found).plain == "nothing is wrong"
    assert headlines.finding(dataclasses.replace(found, causes=())).plain == "nothing is wrong"


def test_an_unmeasured_wait_for_input_is_not_zero() -> None:
    trace = cases.trace(MOVED)
    (split,) = trace.splits
    unknown = dataclasses.replace(trace, splits=(dataclasses.replace(split, input_wait_microseconds=None),))
    assert "input -  other" in shown(hot(traces=(unknown,)), width=None)[1]


def test_documents_have_the_finding_and_the_split() -> None:
    look = diagnosis_runs.of(hot(traces=(cases.trace(MOVED),)))
    snapshot = documents.snapshot(looks_snapshot(look), look)
    assert (snapshot["finding"]["code"], snapshot["finding"]["severity"]) == ("PS001", "warning")
    assert snapshot["finding"]["gain"].keys() == {"low", "high"}
    assert snapshot["split"]["pull"] == pytest.approx(0.8)
    assert snapshot["split"]["at"].startswith("2023-11-14")
    unseen = documents.snapshot(looks_snapshot(look))
    assert (unseen["finding"], unseen["split"], unseen["unknown"]) == (None, None, None)


def looks_snapshot(look: diagnosis_runs.DiagnosisRun) -> Snapshot:

    return snapshots.of(look.recording)


def test_top_shows_it(home: Home, paceline: Paceline) -> None:
    fill(home, "clicks", loads=[0.9, 0.1], steps=3)
    lines = paceline("top", "clicks").stdout.splitlines()
    assert "step: not traced" in lines
    assert max(map(len, lines)) <= 80
    document = json.loads(paceline("top", "clicks", "-o", "json").stdout)
    assert {"finding", "unknown", "split"} <= document.keys()
