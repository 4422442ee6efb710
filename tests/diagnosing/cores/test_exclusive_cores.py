"""Exclusive cores that were asked for and not given."""

from __future__ import annotations

import dataclasses
from typing import Any

from support import cases
from support.cases import found, on_kubernetes

from paceline.diagnosing.cases import Case
from paceline.diagnosing.cores import exclusive_cores
from paceline.diagnosing.cores.exclusive_cores import exclusive_not_got
from paceline.engines.local import engine, machines
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import CpuPolicy
from paceline.model.measures.recordings import Recording

LOADS = {"ps-0": cases.SERVER, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}
EXCLUSIVE = {"worker": {"cpu_policy": CpuPolicy.EXCLUSIVE, "cpu_cores": 1.0}}
GIVEN = {"worker-0": {"cores": (0,)}, "worker-1": {"cores": (1,)}}


def test_replicas_without_cores_are_named() -> None:
    (cause,) = found(exclusive_not_got, cases.recording(LOADS, roles=EXCLUSIVE))
    assert cause.what == (
        "worker-0, worker-1 should have cores of their own (cpu_policy: exclusive), and share them with "
        "others."
    )
    assert (cause.severity, cause.changes, cause.gain) == (Severity.WARNING, (), None)
    assert cause.evidence[0].text == "no cores were given to worker-0"


def test_a_role_that_does_not_say_how_many_is_given_a_number() -> None:
    roles = {"worker": {"cpu_policy": CpuPolicy.EXCLUSIVE}}
    (cause,) = found(exclusive_not_got, cases.recording(LOADS, roles=roles))
    assert cause.changes == (FieldChange(path=("spec", "roles", "worker", "cpu"), value=1),)


def test_who_has_its_cores_or_asked_for_none_is_content() -> None:
    assert not found(exclusive_not_got, cases.recording(LOADS, roles=EXCLUSIVE, rows=GIVEN))
    assert not found(exclusive_not_got, cases.recording(LOADS))


def test_cores_that_could_not_be_enforced_were_not_given() -> None:
    machine = machines.Machine(
        cores=(0, 1), memory_bytes=None, cgroups=None, lacks_cgroups="no rights", lacks_namespaces=""
    )
    recording = cases.recording(LOADS, roles=EXCLUSIVE, rows=GIVEN)
    notes = tuple(engine.notes(recording.run.spec, machine))
    assert notes[0].startswith(exclusive_cores.NOT_LIMITED)
    limited = dataclasses.replace(recording, run=dataclasses.replace(recording.run, notes=notes))
    (cause,) = found(exclusive_not_got, limited)
    assert cause.evidence[0].text == notes[0]


def _on_nodes(allowed: int | None, **more: Any) -> Recording:
    load = cases.TRAINER | {"allowed_cpus": allowed, "neighbours_cpu_cores": 3.0}
    loads = {"ps-0": cases.SERVER, "worker-0": load, "worker-1": load}
    return on_kubernetes(cases.recording(loads, roles=EXCLUSIVE, **more))


def test_on_a_node_its_cpus_tell_that_a_replica_shares_them() -> None:
    (cause,) = found(exclusive_not_got, _on_nodes(64))
    assert cause.evidence[0].text == "worker-0 may run on 64 CPUs, as others may, and not on 1 of its own"
    assert cause.next_steps == (
        "paceline doctor --engine kubernetes FILE says which kubelets give exclusive cores",
        "spec.roles.worker.memory: without a memory no cores are given",
    )


def test_on_a_node_a_replica_on_its_core_is_content_whatever_daemons_run_there() -> None:
    assert not found(exclusive_not_got, _on_nodes(1))


def test_on_a_node_that_does_not_tell_its_cpus_nothing_is_known() -> None:
    assert exclusive_not_got.lacks(Case.of(_on_nodes(None)))
    assert not exclusive_not_got.lacks(Case.of(cases.recording(LOADS, roles=EXCLUSIVE)))
