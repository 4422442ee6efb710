"""More threads than cores."""

from __future__ import annotations

import pytest
from support import cases
from support.cases import found

from paceline.diagnosing.cores.thread_counts import too_many_threads
from paceline.diagnosing.cores.throttlings import throttled
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Severity

BUSY = {"cpu_cores": 0.9, "cpu_limit_cores": 1.0, "threads": 100, "involuntary_switches": 900}
LOADS = {"ps-0": cases.SERVER, "worker-0": BUSY, "worker-1": BUSY}


def test_a_job_file_that_asks_for_more_threads_than_cores_is_named() -> None:
    (cause,) = found(too_many_threads, cases.recording(LOADS, roles={"worker": {"threads": 24}}))
    assert cause.what == "Each worker computes with 24 threads on 1.00 cores."
    assert (cause.severity, cause.subjects) == (Severity.WARNING, ("worker-0", "worker-1"))
    assert cause.changes == (FieldChange(path=("spec", "roles", "worker", "threads"), value="auto"),)
    assert cause.gain is not None
    # What the project measured itself with 24 threads on a core: 1.40 to 1.59.
    assert 1.3 < cause.gain.low < 1.41
    assert 1.5 < cause.gain.high < 1.65
    assert [each.text for each in cause.evidence] == [
        "spec.roles.worker.threads: 24",
        "worker-0, worker-1: 0.90 cores used, and 900 times a second a thread had to make room for another",
    ]


def test_a_variable_of_the_environment_wins_over_threads() -> None:
    environment = {"TF_NUM_INTRAOP_THREADS": "16", "OMP_NUM_THREADS": "{threads}"}
    roles = {"worker": {"threads": 1, "environment": environment}}
    (cause,) = found(too_many_threads, cases.recording(LOADS, roles=roles))
    path = ("spec", "roles", "worker", "environment", "TF_NUM_INTRAOP_THREADS")
    assert cause.changes == (FieldChange(path=path, value=None),)

    (first, _) = found(
        too_many_threads, cases.recording(LOADS, spec={"environment": {"OMP_NUM_THREADS": "16"}})
    )
    assert first.changes == (FieldChange(path=("spec", "environment", "OMP_NUM_THREADS"), value=None),)


def test_the_hundred_threads_that_tensorflow_has_are_not_asked_for() -> None:
    assert not found(too_many_threads, cases.recording(LOADS))


@pytest.mark.parametrize("threads", [1, None])
def test_as_many_as_cores_are_right(threads: int | None) -> None:
    assert not found(too_many_threads, cases.recording(LOADS, roles={"worker": {"threads": threads}}))


def test_two_threads_on_the_rest_of_a_core_are_one_more_than_needed_and_cost_little() -> None:
    loads = LOADS | {"worker-0": {"cpu_cores": 0.3, "cpu_limit_cores": 0.7}}
    (cause,) = found(too_many_threads, cases.recording(loads, roles={"worker": {"threads": 2}}))
    assert (cause.severity, cause.gain) == (Severity.INFO, None)


def test_replicas_that_rest_lose_nothing() -> None:
    (cause,) = found(too_many_threads, cases.recording(LOADS, roles={"ps": {"threads": 2}}))
    assert (cause.severity, cause.gain) == (Severity.INFO, None)


def test_at_its_limit_it_is_not_called_throttled() -> None:
    loads = LOADS | {"worker-0": BUSY | {"throttled_seconds": 1.2}}
    assert not found(throttled, cases.recording(loads, roles={"worker": {"threads": 24}}))


def test_unknown_cores_are_not_too_few() -> None:
    loads = {name: {"cpu_cores": 0.5} for name in LOADS}
    assert not found(too_many_threads, cases.recording(loads, roles={"worker": {"threads": 64}}))
