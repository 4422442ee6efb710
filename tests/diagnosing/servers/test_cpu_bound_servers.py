"""Every parameter server at its CPU limit, which is low."""

from __future__ import annotations

import pytest
from support import cases
from support.cases import found

from paceline.diagnosing.servers.cpu_bound_servers import ps_cpu_bound
from paceline.diagnosing.servers.few_servers import too_few_ps
from paceline.diagnosing.trainers.many_workers import too_many_workers
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import CpuPolicy, Host

FULL = {"cpu_cores": 0.24, "cpu_limit_cores": 0.25, "throttled_seconds": 0.5}
WAITING = {"cpu_cores": 0.25, "cpu_limit_cores": 1.0}
LOADS = {"ps-0": FULL, "ps-1": FULL, "worker-0": WAITING, "worker-1": WAITING}
ROLES = {"ps": {"cpu_cores": 0.25}, "worker": {"cpu_cores": 1.0}}


def test_full_servers_of_a_quarter_core_are_given_what_trainers_at_full_speed_need() -> None:
    (cause,) = found(ps_cpu_bound, cases.recording(LOADS, roles=ROLES))
    assert cause.what == "Every PS is at its CPU limit: they use 96% of 0.25 cores each."
    assert cause.severity is Severity.WARNING
    assert cause.subjects == ("ps-0", "ps-1")
    # Without waiting a step would take 0.3 of its time; 0.24 cores / 0.3 / 0.7 is 1.15.
    assert cause.changes == (FieldChange(path=("spec", "roles", "ps", "cpu"), value=1.2),)
    assert cause.gain is not None
    assert 2 < cause.gain.low <= cause.gain.high <= 1 / 0.27 + 1e-6
    assert [each.text for each in cause.evidence] == [
        "PS use 0.24 of 0.25 cores each, and are throttled for 0.50 s a second",
        "trainers compute or wait for input 27% of their time",
    ]
    assert cause.evidence[0].sources[0].count == 60


def test_less_than_a_worker_has_is_small_too() -> None:
    loads = {
        "ps-0": {"cpu_cores": 0.96, "cpu_limit_cores": 1.0},
        "worker-0": {"cpu_cores": 1.0, "cpu_limit_cores": 4.0},
    }
    (cause,) = found(ps_cpu_bound, cases.recording(loads))
    assert [each.path[-1] for each in cause.changes] == ["cpu"]
    assert not found(too_few_ps, cases.recording(loads))


def test_exclusive_cores_are_whole_and_threads_follow() -> None:
    roles = {"ps": {"cpu_cores": 0.25, "cpu_policy": CpuPolicy.EXCLUSIVE, "threads": 1}}
    (cause,) = found(ps_cpu_bound, cases.recording(LOADS, roles=roles))
    assert {change.path[-1]: change.value for change in cause.changes} == {"cpu": 2, "threads": 2}


def test_cores_of_a_host_are_not_the_job_files_to_give() -> None:
    loads = {"ps-0": {"cpu_cores": 0.48}, "worker-0": WAITING}
    hosts = {"hosts": (Host(name="a", cpu_cores=0.5),)}
    (cause,) = found(ps_cpu_bound, cases.recording(loads, rows={"ps-0": {"host": "a"}}, spec=hosts))
    assert cause.changes == ()
    assert cause.next_steps[0].endswith("for each PS: theirs are those of the host")


@pytest.mark.parametrize(
    "loads",
    [
        pytest.param({"ps-1": {"cpu_cores": 0.02, "cpu_limit_cores": 0.25}}, id="one hot server"),
        pytest.param({name: cases.SERVER for name in ("ps-0", "ps-1")}, id="servers at rest"),
        pytest.param(
            {name: {"cpu_cores": 0.97, "cpu_limit_cores": 1.0} for name in ("worker-0", "worker-1")},
            id="trainers compute all the time",
        ),
        pytest.param(
            {name: {"cpu_cores": 0.15, "cpu_limit_cores": 0.25, "throttled_seconds": 0.4}
             for name in ("ps-0", "ps-1")},
            id="throttled in bursts",
        ),
    ],
)  # fmt: skip
def test_its_likes_are_not_it(loads: dict[str, dict[str, float]]) -> None:
    assert not found(ps_cpu_bound, cases.recording(LOADS | loads))


def test_it_is_neither_too_few_servers_nor_too_many_workers() -> None:
    many = {f"worker-{number}": {"cpu_cores": 0.02, "cpu_limit_cores": 0.3} for number in range(12)}
    recording = cases.recording({"ps-0": FULL, "ps-1": FULL} | many)
    assert found(ps_cpu_bound, recording)
    assert not found(too_few_ps, recording)
    assert not found(too_many_workers, recording)


def test_waiting_for_input_is_no_waiting_for_servers() -> None:
    steps = {name: cases.STEPS | {"input_wait_seconds": 0.7} for name in ("worker-0", "worker-1")}
    assert not found(ps_cpu_bound, cases.recording(LOADS, steps=steps))


def test_without_limits_of_trainers_servers_get_what_twice_the_speed_needs() -> None:
    loads = LOADS | {name: {"cpu_cores": 0.25} for name in ("worker-0", "worker-1")}
    (cause,) = found(ps_cpu_bound, cases.recording(loads))
    assert cause.changes[0].value == 0.7
    assert len(cause.evidence) == 1


def test_without_limits_of_servers_nothing_is_said() -> None:
    loads = LOADS | {name: {"cpu_cores": 1.9} for name in ("ps-0", "ps-1")}
    assert not found(ps_cpu_bound, cases.recording(loads))
    assert not found(ps_cpu_bound, cases.recording(loads, facts=(("cores", "4"),)))


def test_a_full_machine_has_no_more_to_give() -> None:
    (cause,) = found(ps_cpu_bound, cases.recording(LOADS, facts=(("cores", "1"),)))
    assert (cause.severity, cause.gain) == (Severity.INFO, None)
