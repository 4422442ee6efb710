"""Evaluators on the cores of the training."""

from __future__ import annotations

import dataclasses
from typing import Any

from support import cases
from support.cases import START, found, on_kubernetes

from paceline.diagnosing.cores.noisy_neighbours import noisy_neighbour
from paceline.diagnosing.progress.evaluations import evaluation_starves
from paceline.model.explanations.causes import FieldChange
from paceline.model.jobs.job_specs import Host
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import Sample, StepReport
from paceline.model.roles import Role

WORKER = {"cpu_cores": 0.45, "cpu_limit_cores": 1.0}
EVALUATOR = {"cpu_cores": 0.9}
LOADS = {"ps-0": cases.SERVER, "worker-0": WORKER, "worker-1": WORKER, "evaluator-0": EVALUATOR}
FACTS = (("cores", "2"),)


def _in_turns(slow: float, **more: Any) -> Recording:
    """Return the recording of a job whose evaluator works for 10 of each 20 seconds, with such a speed."""

    def computes(at: float) -> bool:
        return int(at - START - 1) % 20 < 10

    def load(sample: Sample) -> Sample:
        if sample.replica.role is not Role.EVALUATOR or computes(sample.at):
            return sample
        return dataclasses.replace(sample, cpu_cores=0.01)

    def step(report: StepReport) -> StepReport:
        return dataclasses.replace(report, steps=round(40 * slow)) if computes(report.at) else report

    return cases.edited(cases.recording(LOADS, seconds=60, **more), samples=load, steps=step)


def test_training_that_is_slower_while_it_evaluates_is_compared() -> None:
    (cause,) = found(evaluation_starves, _in_turns(0.5, facts=FACTS))
    assert cause.subjects == ("evaluator-0", "worker-0", "worker-1")
    assert cause.evidence[0].text == (
        "while it evaluates (50% of the time) trainers make 20.0 steps a second each, else 40.0"
    )
    assert cause.gain is not None
    assert round(cause.gain.low, 2) == round(cause.gain.high, 2) == 1.33


def test_training_that_is_as_fast_meanwhile_does_not_suffer() -> None:
    assert not found(evaluation_starves, _in_turns(1.0, facts=FACTS))
    assert not found(evaluation_starves, _in_turns(0.95, facts=FACTS))


def test_an_evaluator_that_never_rests_on_full_cores_is_told_of() -> None:
    (cause,) = found(evaluation_starves, cases.recording(LOADS, facts=FACTS))
    assert cause.what == "evaluator-0 takes 0.90 cores from ps-0, worker-0, worker-1."
    assert cause.evidence[0].text == "this machine: evaluator-0 used 0.90 cores, the training 1.10, of 2"
    assert cause.changes == (FieldChange(path=("spec", "roles", "evaluator", "cpu"), value="200m"),)
    assert cause.gain is not None
    assert (cause.gain.low, round(cause.gain.high, 2)) == (1.0, 1.82)
    # It is no stranger.
    loads = {
        name: load | {"neighbours_cpu_cores": 2.0 - load["cpu_cores"], "run_delay_seconds": 1.0}
        for name, load in LOADS.items()
    }
    assert not found(noisy_neighbour, cases.recording(loads, facts=FACTS))


def test_several_are_judged_together() -> None:
    half = {"evaluator-0": {"cpu_cores": 0.45}, "evaluator-1": {"cpu_cores": 0.45}}
    (cause,) = found(evaluation_starves, cases.recording(LOADS | half, facts=FACTS))
    assert cause.what == "evaluator-0, evaluator-1 take 0.90 cores from ps-0, worker-0, worker-1."
    assert cause.changes == (FieldChange(path=("spec", "roles", "evaluator", "cpu"), value="100m"),)


def test_on_its_own_emulated_host_it_does_no_harm() -> None:
    hosts = (Host(name="a", cpu_cores=1.5), Host(name="b", cpu_cores=1.0))
    rows = {name: {"host": "b" if name == "evaluator-0" else "a"} for name in LOADS}
    facts = (("cores", "8"),)
    recording = cases.recording(LOADS, rows=rows, spec={"hosts": hosts}, facts=facts)
    assert not found(evaluation_starves, recording)
    together = {key: {"host": "a"} for key in LOADS}
    hosts = (Host(name="a", cpu_cores=2.0), hosts[1])
    (cause,) = found(
        evaluation_starves, cases.recording(LOADS, rows=together, spec={"hosts": hosts}, facts=facts)
    )
    assert cause.evidence[0].text.startswith("host a: evaluator-0 used 0.90 cores")


def test_idle_cores_limits_and_busy_servers_speak_for_it() -> None:
    assert not found(evaluation_starves, cases.recording(LOADS, facts=(("cores", "4"),)))
    at_limit = {
        name: load if name == "evaluator-0" else load | {"cpu_limit_cores": load["cpu_cores"]}
        for name, load in LOADS.items()
    }
    assert not found(evaluation_starves, cases.recording(at_limit, facts=FACTS))
    idle = LOADS | {"evaluator-0": {"cpu_cores": 0.02}}
    assert not found(evaluation_starves, cases.recording(idle, facts=FACTS))


def test_on_another_node_it_does_no_harm() -> None:
    rows = {name: {"host": f"node-{name}"} for name in LOADS}
    assert not found(evaluation_starves, on_kubernetes(_in_turns(0.5, rows=rows)))
    same = {key: {"host": "node"} for key in LOADS}
    assert found(evaluation_starves, on_kubernetes(_in_turns(0.5, rows=same)))


def test_what_was_not_measured_is_not_judged() -> None:
    assert not found(evaluation_starves, cases.recording(LOADS))
    loads = LOADS | {"evaluator-0": {"memory_bytes": 1}}
    assert not found(evaluation_starves, cases.recording(loads, facts=FACTS))
    assert not found(evaluation_starves, cases.recording({"ps-0": cases.SERVER, "worker-0": WORKER}))
