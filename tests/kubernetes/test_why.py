"""What ``paceline why`` says of jobs on a real API server, with a real scheduler."""

from __future__ import annotations

import dataclasses
from typing import Any

from support import queued_jobs
from support.real_clusters import (
    NAMESPACE,
    OperatorProcess,
    found,
    kubectl,
    status,
    submit,
    until,
    until_phase,
)  # fmt: skip

from paceline.model.jobs.job_specs import FitPolicy, JobSpec, RestartPolicy, RoleSpec, SchedulingSpec
from paceline.model.jobs.placements import PodPlacement
from paceline.model.roles import Role

HOLLOW = {"paceline.dev/hollow": "true"}


def job(cores: float = 1.0, **more: Any) -> JobSpec:
    restart = RestartPolicy(limit=3, backoff_seconds=3600.0)
    roles = tuple(
        RoleSpec(role=role, cpu_cores=cores, memory_bytes=1 << 28, restart=restart)
        for role in (Role.PS, Role.WORKER)
    )
    return JobSpec(
        name="clicks", image="localhost/work:1", command=("sleep", "3600"), roles=roles,
        placement=PodPlacement(node_selector=HOLLOW), termination_grace_seconds=1.0, **more,
    )  # fmt: skip


def why() -> dict[str, Any]:
    return queued_jobs.why("clicks")


def cause() -> dict[str, Any]:
    (only,) = why()["causes"]
    return dict(only)


def test_it_waits_for_room(operator: OperatorProcess) -> None:
    submit(job(cores=200.0))
    until(lambda: "it waits for room" in status("clicks").get("message", ""), lambda: status("clicks"))
    seen = cause()
    assert seen["name"] == "no-room"
    assert "too little CPU for 200 cores" in seen["evidence"][0]["text"]


def test_the_scheduler_finds_no_node(operator: OperatorProcess) -> None:
    submit(job(cores=200.0, scheduling=SchedulingSpec(fit=FitPolicy.OFF)))
    until(lambda: [each["name"] for each in why()["causes"]] == ["unschedulable"], why)
    seen = cause()
    assert "Insufficient cpu" in seen["evidence"][0]["text"]
    assert seen["next_steps"][0].startswith("request less")


def test_it_is_suspended(operator: OperatorProcess) -> None:
    submit(job(), suspend=True)
    until_phase("clicks", "stopped")
    assert cause()["name"] == "suspended"


def test_its_spec_is_wrong(operator: OperatorProcess) -> None:
    submit(job(), wroker={"replicas": 1})
    until_phase("clicks", "failed")
    seen = cause()
    assert (seen["name"], seen["evidence"][0]["text"]) == ("wrong-spec", "spec.wroker: unknown key 'wroker'")


def test_a_user_removed_a_pod(operator: OperatorProcess) -> None:
    submit(job())
    until_phase("clicks", "running")
    seen_of_it = why()
    assert seen_of_it["summary"].startswith("nothing is wrong as far as can be seen: clicks runs")
    # Nothing answers on hollow nodes.
    assert seen_of_it["unknown"][0].startswith("what was measured: ")
    kubectl("delete", "pod", "clicks-worker-0-1", "-n", NAMESPACE, "--grace-period=0", "--force")
    until_phase("clicks", "restarting")
    seen = cause()
    assert seen["name"] == "removed"
    assert "restart 1 of 3" in seen["evidence"][0]["text"]


def test_no_operator_runs(operator: OperatorProcess) -> None:
    submit(job())
    until_phase("clicks", "running")
    assert operator.stop() == 0
    try:
        # Its lease is given back.
        assert found("lease", "paceline-operator", "-n", "paceline")["spec"].get("holderIdentity", "") == ""
        assert cause()["name"] == "no-operator"
    finally:
        operator.start()


def test_a_quota_keeps_its_pods_out(operator: OperatorProcess) -> None:
    kubectl("create", "quota", "tight", "--hard=pods=1", "-n", NAMESPACE)
    try:
        off = dataclasses.replace(job(), scheduling=SchedulingSpec(fit=FitPolicy.OFF))
        submit(off)
        until(lambda: "quota" in [each["name"] for each in why()["causes"]], why)
    finally:
        kubectl("delete", "quota", "tight", "-n", NAMESPACE)
