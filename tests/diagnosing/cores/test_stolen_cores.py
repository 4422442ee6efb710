"""Cores that a hypervisor gives to other machines."""

from __future__ import annotations

from typing import Any

from support import cases
from support.cases import found, on_kubernetes

from paceline.diagnosing import catalogues, chains
from paceline.diagnosing.cores.noisy_neighbours import noisy_neighbour
from paceline.diagnosing.cores.stolen_cores import stolen_cores
from paceline.diagnosing.trainers.slow_hosts import slow_host
from paceline.model.explanations.findings import Severity
from paceline.model.measures.recordings import Recording

#: Of a machine with 2 cores the job uses 1.1 to 1.2, and 0.8 are stolen; threads wait, too.
_MACHINE: dict[str, Any] = {"stolen_cpu_cores": 0.8, "run_delay_seconds": 1.0, "cpu_limit_cores": 1.0}
SERVER = _MACHINE | {"cpu_cores": 0.2, "neighbours_cpu_cores": 1.0}
WORKER = _MACHINE | {"cpu_cores": 0.5, "neighbours_cpu_cores": 0.6}
LOADS = {"ps-0": SERVER, "worker-0": WORKER, "worker-1": WORKER}
ASKED: dict[str, dict[str, Any]] = {"ps": {"cpu_cores": 1.0}, "worker": {"cpu_cores": 1.0}}


def _recording(loads: dict[str, dict[str, Any]] = LOADS, **more: Any) -> Recording:
    return cases.recording(loads, roles=ASKED, facts=(("cores", "2"),), **more)


def _with(**fields: Any) -> dict[str, dict[str, Any]]:
    return {name: load | fields for name, load in LOADS.items()}


def test_stolen_cores_are_named_and_no_neighbour_is_blamed() -> None:
    (cause,) = found(stolen_cores, _recording())
    assert cause.what == (
        "The hypervisor gives 0.80 cores of this machine to other machines, and ps-0, worker-0, worker-1 get "
        "less than they may use."
    )
    assert (cause.severity, cause.changes) == (Severity.WARNING, ())
    assert [each.text for each in cause.evidence] == [
        "this machine: for 42% of the time for which there is work on its cores they are given to others "
        "(0.80 cores on average)",
        "worker-0 gets 0.50 of the 1.00 cores that it may use",
    ]
    assert cause.gain is not None
    assert (cause.gain.low, round(cause.gain.high, 2)) == (1.0, 1.73)
    assert not found(noisy_neighbour, _recording())


def test_a_job_that_gets_nothing_at_all_is_promised_nothing() -> None:
    (cause,) = found(stolen_cores, _recording(_with(cpu_cores=0.0, neighbours_cpu_cores=0.0)))
    assert "for 100% of the time" in cause.evidence[0].text
    assert cause.gain is None or cause.gain.high == 1.0


def test_a_little_is_noise() -> None:
    assert not found(stolen_cores, _recording(_with(stolen_cpu_cores=0.1)))
    assert not found(stolen_cores, _recording(_with(stolen_cpu_cores=0.0)))


def test_who_gets_all_that_it_may_use_loses_nothing() -> None:
    assert not found(stolen_cores, _recording(_with(cpu_cores=0.95)))
    (cause,) = found(stolen_cores, _recording(LOADS | {"ps-0": SERVER | {"cpu_cores": 0.95}}))
    assert (cause.severity, cause.gain) == (Severity.INFO, None)
    assert cause.subjects == ("worker-0", "worker-1")


def test_on_a_cluster_the_host_is_named_and_explains_its_slow_worker() -> None:
    calm = _with(stolen_cpu_cores=0.0, run_delay_seconds=0.0, neighbours_cpu_cores=0.0)
    recording = on_kubernetes(
        _recording(
            calm | {"worker-1": WORKER | {"neighbours_cpu_cores": 0.0, "cpu_cores": 0.2}},
            rows={name: {"host": f"node-{name}"} for name in LOADS},
            steps={"worker-0": cases.STEPS, "worker-1": cases.STEPS | {"steps": 16, "examples": 8_192}},
        )
    )
    causes = [*found(stolen_cores, recording), *found(slow_host, recording)]
    (root,) = chains.chained(causes, catalogues.EXPLAINS)
    assert root.what == (
        "The hypervisor gives 0.80 cores of host node-worker-1 to other machines, and worker-1 gets less "
        "than it may use."
    )
    (effect,) = root.effects
    assert effect.name == "slow-host"
    assert any("the hypervisor gives 0.80 cores to others" in each.text for each in effect.evidence)


def test_agents_that_do_not_tell_leave_it_open() -> None:
    case = cases.Case.of(_recording(_with(stolen_cpu_cores=None)))
    assert [need.what for need in stolen_cores.lacks(case)] == [
        "what a hypervisor gives to others of the same cores"
    ]
