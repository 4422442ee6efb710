"""The operator as it is shipped, with its own rights, on a real API server and nodes."""

from __future__ import annotations

import dataclasses
import random
import time

import pytest
from support.real_clusters import (
    NAMESPACE,
    OperatorProcess,
    change,
    get,
    kubectl,
    pod_names,
    pods,
    status,
    submit,
    until,
    until_phase,
)  # fmt: skip

from paceline import specs
from paceline.engines.kubernetes import kinds, leases
from paceline.model.jobs.job_specs import FitPolicy, JobSpec, RoleSpec, SchedulingSpec
from paceline.model.jobs.placements import PlacementStrategy, PodPlacement
from paceline.model.roles import Role
from paceline.surfaces import composition

HOLLOW = {"paceline.dev/hollow": "true"}


def job(
    name: str = "clicks", *, ps: int = 2, workers: int = 4, cores: float = 1.0, **more: object
) -> JobSpec:
    roles = (
        RoleSpec(role=Role.PS, replicas=ps, cpu_cores=cores, memory_bytes=1 << 28),
        RoleSpec(role=Role.WORKER, replicas=workers, cpu_cores=cores, memory_bytes=1 << 28),
    )
    strategy = more.pop("strategy", PlacementStrategy.ANY)
    return JobSpec(
        name=name,
        image="localhost/work:1",
        command=("sleep", "3600"),
        roles=roles,
        placement=PodPlacement(strategy=strategy, node_selector=HOLLOW),  # type: ignore[arg-type]
        termination_grace_seconds=1.0,
        **more,  # type: ignore[arg-type]
    )


def test_a_job_runs_is_stopped_and_resumed(operator: OperatorProcess) -> None:
    submit(job())
    until_phase("clicks", "running")
    assert status("clicks")["ready"] == "6/6"
    first = pod_names("clicks")
    assert first == [f"clicks-ps-{i}-1" for i in range(2)] + [f"clicks-worker-{i}-1" for i in range(4)]
    change("clicks", suspend=True)
    until_phase("clicks", "stopped")
    until(lambda: not pods("clicks"), lambda: pod_names("clicks"))
    change("clicks", suspend=False)
    until_phase("clicks", "running")
    assert pod_names("clicks") == [each[:-1] + "2" for each in first]
    told = kubectl("describe", "tj", "clicks", "-n", NAMESPACE)
    assert "Suspended" in told or "suspended" in told
    kubectl("delete", "tj", "clicks", "-n", NAMESPACE)
    until(lambda: not pods("clicks"), lambda: pod_names("clicks"))


def test_a_job_that_runs_goes_on_with_another_file(operator: OperatorProcess) -> None:
    submit(job())
    until_phase("clicks", "running")
    other = specs.dump_job(job(ps=1, workers=2))
    with composition.opened_cluster(namespace=NAMESPACE) as jobs:
        jobs.change("clicks", other)
    wanted = ["clicks-ps-0-2", "clicks-worker-0-2", "clicks-worker-1-2"]
    until(
        lambda: status("clicks").get("ready") == "3/3" and pod_names("clicks") == wanted,
        lambda: pod_names("clicks"),
    )
    assert status("clicks")["phase"] == "running"


def test_a_role_that_a_job_drops_and_gets_back_goes_on_from_its_attempts(operator: OperatorProcess) -> None:
    plain = job(ps=1, workers=1)
    evaluator = RoleSpec(role=Role.EVALUATOR, cpu_cores=0.5, memory_bytes=1 << 28)
    evaluated = dataclasses.replace(plain, roles=(*plain.roles, evaluator))
    submit(evaluated)
    until_phase("clicks", "running")
    with composition.opened_cluster(namespace=NAMESPACE) as jobs:
        jobs.change("clicks", specs.dump_job(plain))
        wanted = ["clicks-ps-0-2", "clicks-worker-0-2"]
        until(
            lambda: status("clicks").get("ready") == "2/2" and pod_names("clicks") == wanted,
            lambda: status("clicks"),
        )
        assert [each.replicas for each in jobs.runs()] == ["ps 1/1, worker 1/1"]
        operator.kill()
        operator.start()
        jobs.change("clicks", specs.dump_job(evaluated))
    wanted = ["clicks-evaluator-0-2", "clicks-ps-0-3", "clicks-worker-0-3"]
    until(
        lambda: status("clicks").get("ready") == "3/3" and pod_names("clicks") == wanted,
        lambda: status("clicks"),
    )


def test_an_operator_that_is_killed_at_any_moment_loses_and_doubles_nothing(
    operator: OperatorProcess,
) -> None:
    generator = random.Random(1)
    submit(job(ps=4, workers=8))
    for _ in range(8):
        time.sleep(generator.uniform(0.1, 2.5))
        operator.kill()
        victims = [pod["metadata"]["name"] for pod in pods("clicks")]
        if victims:
            victim = generator.choice(victims)
            kubectl("delete", "pod", victim, "-n", NAMESPACE, "--grace-period=0", "--force")
        operator.start()
    until(lambda: status("clicks").get("ready") == "12/12", lambda: status("clicks"))
    until(lambda: len(pods("clicks")) == 12, lambda: pod_names("clicks"))
    assert len({name.rpartition("-")[0] for name in pod_names("clicks")}) == 12, "two attempts of one replica"


def renewed_at() -> str:
    """Return when the operator that acts said so last."""
    lease = get(kinds.LEASES, leases.OPERATOR, "paceline")
    return str(lease and lease["spec"]["renewTime"])


def test_a_second_operator_waits_and_takes_over(operator: OperatorProcess, tmp_path) -> None:
    submit(job(ps=1, workers=1))
    until_phase("clicks", "running")
    second = OperatorProcess.like(operator, tmp_path / "second.log")
    second.start()
    try:
        until(lambda: "waits for its turn" in second.said(), second.said)
        for _ in range(2):
            before = renewed_at()
            until(lambda before=before: renewed_at() != before, second.said)
        assert second.turns() == 0
        operator.kill(lease_runs_out=False)
        kubectl("delete", "pod", "clicks-worker-0-1", "-n", NAMESPACE, "--grace-period=0", "--force")
        until(lambda: "clicks-worker-0-2" in pod_names("clicks"), lambda: second.log.read_text()[-2000:])
    finally:
        assert second.stop() == 0
        operator.start()


def test_placement(operator: OperatorProcess) -> None:
    spread = job("spread", ps=20, workers=20, strategy=PlacementStrategy.SPREAD_PS)
    submit(spread)
    until_phase("spread", "running")
    of_ps = [pod["spec"]["nodeName"] for pod in pods("spread") if "-ps-" in pod["metadata"]["name"]]
    assert len(set(of_ps)) == 20, "exactly one PS on each node"


def test_jobs_that_do_not_fit_together_run_one_after_the_other(operator: OperatorProcess) -> None:
    """Each takes 60 % of the 20 hollow nodes of 80 cores."""
    for name in ("one", "two"):
        submit(job(name, ps=2, workers=10, cores=79.0))
    until(
        lambda: "running" in (status("one").get("phase"), status("two").get("phase")), lambda: status("one")
    )
    first, second = ("one", "two") if status("one")["phase"] == "running" else ("two", "one")
    until(lambda: "it waits for room" in status(second).get("message", ""), lambda: status(second))
    assert pods(second) == []
    kubectl("delete", "tj", first, "-n", NAMESPACE)
    until_phase(second, "running")


def test_what_cannot_ever_fit_says_so(operator: OperatorProcess) -> None:
    submit(job("huge", cores=200.0, scheduling=SchedulingSpec(fit=FitPolicy.FAIL)))
    until_phase("huge", "failed")
    assert "too little CPU for 200 cores" in status("huge")["message"]


@pytest.mark.parametrize("wrong", ["replicas", "unknown"])
def test_a_wrong_job_is_refused_or_says_what_is_wrong(operator: OperatorProcess, wrong: str) -> None:
    if wrong == "replicas":
        with pytest.raises(AssertionError, match=r"spec.roles.worker.replicas"):
            submit(job(), roles={"worker": {"replicas": -1}})
        return
    submit(job(), wroker={"replicas": 1})
    until_phase("clicks", "failed")
    assert "spec.wroker: unknown key" in status("clicks")["message"]
