"""One server that works while the others rest, whatever is known beside that."""

from __future__ import annotations

import dataclasses

import pytest
from support import cases
from support.cases import found, trace

from paceline.diagnosing import diagnoses
from paceline.diagnosing.cases import Case
from paceline.diagnosing.servers.giant_variables import giant_variable
from paceline.diagnosing.servers.hot_servers import hot_ps
from paceline.diagnosing.servers.uneven_placements import uneven_placement
from paceline.model.explanations.findings import Severity
from paceline.model.measures.recordings import Recording
from paceline.model.variables.variable_plans import PlacementRule, RowPartitioning, plan
from paceline.model.variables.variables import Variable

HOT, COLD = {"cpu_cores": 0.97, "cpu_limit_cores": 1.0}, {"cpu_cores": 0.05, "cpu_limit_cores": 1.0}
WAITING, BUSY = {"cpu_cores": 0.3, "cpu_limit_cores": 1.0}, {"cpu_cores": 0.95, "cpu_limit_cores": 1.0}
LOADS = {"ps-0": COLD, "ps-1": HOT, "ps-2": COLD, "worker-0": WAITING, "worker-1": WAITING}


def from_outside(loads: dict[str, dict[str, float]], *, seconds: int = 120) -> Recording:
    """Return the recording of a job of whose scripts nothing is seen."""
    return cases.recording(loads, steps={}, seconds=seconds)


def test_seen_only_from_outside_it_is_a_warning_that_says_what_to_look_at() -> None:
    (cause,) = found(hot_ps, from_outside(LOADS))
    assert cause.severity is Severity.WARNING
    assert cause.what == (
        "ps-1 is at its limit while ps-0, ps-2 rest: the variables on ps-1 are what to look at."
    )
    assert cause.next_steps == ("paceline trace clicks says which variables these are",)
    assert cause.gain is None


def test_a_server_that_was_not_measured_does_not_rest() -> None:
    (cause,) = found(hot_ps, from_outside(LOADS | {"ps-2": {"cpu_limit_cores": 1.0}}))
    assert cause.what == "ps-1 is at its limit while ps-0 rests: the variables on ps-1 are what to look at."


def test_of_a_job_that_may_still_begin_it_is_a_remark() -> None:
    (cause,) = found(hot_ps, from_outside(LOADS, seconds=60))
    assert cause.severity is Severity.INFO


def test_where_trainers_work_all_the_time_none_waits_for_it() -> None:
    (cause,) = found(hot_ps, from_outside(LOADS | {"worker-0": BUSY, "worker-1": BUSY}))
    assert cause.severity is Severity.INFO


def test_with_steps_the_gain_says_how_bad_it_is() -> None:
    (cause,) = found(hot_ps, cases.recording(LOADS))
    assert cause.severity is Severity.WARNING
    assert cause.gain is not None
    assert cause.gain.high > 1.1


@pytest.mark.parametrize("engine", ["local", "kubernetes"])
def test_without_a_limit_it_is_held_against_trainers(engine: str) -> None:
    """On a machine with many cores, and on a cluster that does not say how many there are."""
    loads = {
        "ps-0": {"cpu_cores": 0.1}, "ps-1": {"cpu_cores": 1.4},
        "worker-0": {"cpu_cores": 0.5}, "worker-1": {"cpu_cores": 0.5},
    }  # fmt: skip
    recording = cases.recording(loads, facts=(("cores", "32"),))
    if engine == "kubernetes":
        recording = cases.on_kubernetes(recording)
    (cause,) = found(hot_ps, recording)
    assert cause.severity is Severity.WARNING
    assert cause.what == ("ps-1 uses 1.40 cores while ps-0 rests: the variables on ps-1 are what to look at.")
    busier = loads | {"worker-0": {"cpu_cores": 2.0}, "worker-1": {"cpu_cores": 2.0}}
    recording = cases.recording(busier, facts=(("cores", "32"),))
    causes = found(hot_ps, cases.on_kubernetes(recording) if engine == "kubernetes" else recording)
    assert all(each.severity is Severity.INFO for each in causes)


def test_one_at_its_limit_is_hot_though_the_others_do_not_rest() -> None:
    """Less than 1.5 times the mean, and the mean is no limit: neither hot nor too small, and yet it binds."""
    some = {"cpu_cores": 0.55, "cpu_limit_cores": 1.0}
    (cause,) = found(hot_ps, cases.recording(LOADS | {"ps-0": some, "ps-2": some}))
    assert cause.severity is Severity.WARNING
    assert cause.what == "ps-1 has 1.4 times the mean load of the PS."
    alike = {"cpu_cores": 0.8, "cpu_limit_cores": 1.0}
    even = cases.recording(LOADS | {"ps-0": alike, "ps-2": alike})
    assert not found(hot_ps, even)


def test_a_trace_without_steps_names_the_variable() -> None:
    """TensorFlow's own profiler on the servers: nothing is seen in the scripts."""
    whole = trace({("ps-1", "ids"): 9_000_000, ("ps-0", "kernel"): 300_000})
    recording = dataclasses.replace(from_outside(LOADS), traces=(whole,))
    (cause,) = found(giant_variable, recording)
    assert (cause.severity, cause.gain) == (Severity.WARNING, None)


def placed(*variables: Variable) -> Recording:
    """Return the recording of an unchanged script: of its variables it is known where TensorFlow has them."""
    asked = plan(variables, servers=3, cut=RowPartitioning(), rule=PlacementRule.BALANCED)
    return cases.recording(LOADS, plan=asked)


def test_where_the_variables_of_an_unchanged_script_are_is_believed() -> None:
    """The job file would have the table cut over all servers; the script has it on ps-1."""
    table = Variable(
        name="ids", shape=(100_000, 16), sparse=True, step_bytes=500_000.0, devices=("/job:ps/task:1",)
    )
    kernel = Variable(name="kernel", shape=(64, 8), step_bytes=4096.0, devices=("/job:ps/task:0",))
    recording = placed(table, kernel)
    (cause,) = found(giant_variable, recording)
    assert cause.subjects == ("ids", "ps-1")
    assert cause.severity is Severity.WARNING
    assert not found(uneven_placement, recording)
    chained = [each for each in diagnoses.slowing(Case.of(recording)) if each.name == "giant-variable"]
    assert "hot-ps" in [each.name for each in chained[0].effects]


def test_busy_variables_of_an_unchanged_script_that_meet_on_one_server_are_misplaced() -> None:
    tables = [
        Variable(
            name=f"ids{number}", shape=(1000, 16), sparse=True, step_bytes=500_000.0,
            devices=("/job:ps/replica:0/task:1/device:CPU:0",),
        )
        for number in range(6)
    ]  # fmt: skip
    (cause,) = found(uneven_placement, placed(*tables))
    assert cause.severity is Severity.WARNING
    assert cause.subjects == ("ps-1",)
